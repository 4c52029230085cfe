"""`haggle generate`: write a labelled data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from haggle.cli.options import Quiet
from haggle.core.errors import HaggleError

if TYPE_CHECKING:
    from data_gen.config import DataConfig


def generate(
    config: Annotated[str, typer.Option(help="A data config (name or file).")] = "default",
    stage: Annotated[
        str | None, typer.Option(help="The data of this stage of a train config.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="runs/data/CONFIG or the stage's data set, if not given."),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option("--n", min=1, help="Train dialogues; test and corpus stay as configured."),
    ] = None,
    character: Annotated[
        str | None, typer.Option(help="merchant, gatekeeper, or a task file of your own.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed instead of the config's.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; as many as pay, if not given.")
    ] = None,
    runner: Annotated[
        str, typer.Option(help="local, or ray (this machine, or the cluster of RAY_ADDRESS).")
    ] = "local",
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Write JSON Lines beside.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write labelled dialogues as sharded Parquet; resumes."""
    from data_gen.config import check, engine_configs, override
    from data_gen.generate import generate as run
    from data_gen.teachers.report import readable
    from haggle.cli.tables import print_table
    from haggle.core.config import located
    from serving.shipped import with_shipped_model

    told, where, usual = _asked(config, stage)
    loaded = override(told, train=n, seed=seed, character=character)
    with located(where):
        check(loaded)
    for engine in engine_configs(loaded).values():
        with_shipped_model(engine)  # a GGUF that has to be built is built before the workers start
    out = out or usual
    summary = run(loaded, out, workers=workers, runner=runner, jsonl=jsonl, progress=not quiet)
    report = summary["report"]
    shown = {k: summary[k] for k in ("splits", "made_now", "seconds", "dialogues_per_second")}
    shown["redrawn"] = report.get("redrawn")
    shown = {key: value for key, value in shown.items() if value is not None}
    print_table("generated", shown | dict(readable(report)))


def _asked(config: str, stage: str | None) -> tuple[DataConfig, str, Path]:
    """The data config asked for, where it is told, and the directory it is usually written to."""
    from data_gen.config import DataConfig, load_data_config
    from haggle.core.config import located, named_config, parse
    from training.recipes import load_stages

    with located("--config"):
        path = named_config("data" if stage is None else "train", config)
    if stage is None:
        return load_data_config(path), str(path), Path("runs/data") / path.stem
    (found,) = load_stages(path, stage)
    where = f"{found.where}.data"
    if not found.data:
        raise HaggleError("names no data to generate", where=where, hint="add `data:` to the stage")
    return parse(found.data, DataConfig, where), where, found.config.dataset
