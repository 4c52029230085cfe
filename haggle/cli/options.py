"""Options that several commands have, and what engines with trained weights need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from haggle.core.errors import HaggleError

Engine = Annotated[
    str, typer.Option("--engine", help="A serve config: a name in configs/serve or a YAML file.")
]
Guard = Annotated[str, typer.Option("--guard", help="off, schema or state.")]
Gguf = Annotated[Path | None, typer.Option("--gguf", help="A GGUF file instead of the config's.")]
Method = Annotated[str, typer.Option(help="Prompting method.")]
Confirmation = Annotated[
    str | None,
    typer.Option(
        "--confirmation",
        help="What closes a sale: spoken (words) or explicit (a call of its own); else the shop's.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bars.")]
Batch = Annotated[int, typer.Option(min=1, help="Turns at once.")]
WeightsEngine = Annotated[
    str, typer.Option("--engine", help="A serve config of llama.cpp, transformers or vLLM.")
]


def kind_of_weights(engine: str) -> str:
    """The kind of an engine, which has to be one for weights on this machine."""
    from haggle.cli import serve_config

    kind = str(serve_config(engine, "--engine").engine)
    if kind not in {"llamacpp", "transformers", "vllm"}:
        raise HaggleError(
            f"engine {kind!r} does not read weights from this machine",
            where="--engine",
            hint="take a serve config of llama.cpp, transformers or vLLM",
        )
    return kind


def open_weights(engine: str, weights: Path, target: Path, base: str | None = None) -> Any:
    """An engine with an adapter's or a checkpoint's weights, written to `target` in its form."""
    from haggle.cli import open_engine
    from training.export import export

    gguf = kind_of_weights(engine) == "llamacpp"
    types = ("Q8_0",) if gguf else ()
    result = export(weights, target, base, quantizations=types, verify=False, echo=lambda _: None)
    if gguf:
        return open_engine(engine, result.ggufs["Q8_0"])
    return open_engine(engine, None, str(result.merged))
