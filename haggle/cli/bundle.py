"""`haggle bundle`: a training run as one directory for a bare machine with a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from haggle.core.errors import HaggleError


def bundle(
    config: Annotated[str, typer.Argument(help="A config of a fast run (name or file).")] = "fast",
    out: Annotated[Path, typer.Option(help="Directory to write.")] = Path("runs/bundle"),
    python: Annotated[
        list[str] | None,
        typer.Option(help="Python version there (3.12); as often as there are; else this one's."),
    ] = None,
    wheels: Annotated[
        Path | None, typer.Option(help="Directory of wheels for it, instead of asking pip.")
    ] = None,
    part_mb: Annotated[float, typer.Option(min=0.001, max=60, help="Size of a part in MB.")] = 60,
    weights: Annotated[
        str, typer.Option(help="The base as gguf (small), safetensors, or auto.")
    ] = "auto",
) -> None:
    """Pack weights, packages, code and data; `python DIR/run.py` there trains and measures."""
    from haggle.core.config import load_config, located, named_config
    from pipeline.bundle import Weights, make_bundle
    from pipeline.bundle_parts import running_python
    from training.fast_config import FastConfig

    kinds: dict[str, Weights] = {"auto": "auto", "gguf": "gguf", "safetensors": "safetensors"}
    if weights not in kinds:
        raise HaggleError(
            f"{weights!r} is no form", where="--weights", hint="known: " + ", ".join(kinds)
        )
    path = named_config("bundle", config)
    told = load_config(path, FastConfig)
    with located(str(path)):
        make_bundle(
            told,
            out,
            pythons=python or [running_python()],
            wheels=wheels,
            part_mb=part_mb,
            weights=kinds[weights],
        )
