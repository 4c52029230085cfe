"""`haggle eval turns`: answer the turns of a data set with their true history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from haggle.cli.options import Batch, Engine, Gguf, Model, Quiet


def turns(
    dataset: Annotated[Path, typer.Option(help="A data set: directory or file.")],
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    split: Annotated[str, typer.Option(help="Which split.")] = "test",
    n: Annotated[int, typer.Option("--n", min=1, help="How many turns to draw.")] = 500,
    seed: Annotated[int, typer.Option(help="Which turns.")] = 0,
    engine: Engine = "llamacpp_batch",
    gguf: Gguf = None,
    model: Model = None,
    batch: Batch = 8,
    quiet: Quiet = False,
) -> None:
    """Answer turns of a data set with their true history, guard off; resumes."""
    from eval.turns import run_turns
    from haggle.cli.tables import print_rates
    from haggle.dataset import dataset_files
    from serving.engines import open_engine

    dataset_files(dataset, split)  # a missing one is told before a model is loaded
    loaded = open_engine(engine, gguf, model)
    try:
        metrics = run_turns(
            dataset, loaded, out, split=split, n=n, seed=seed, batch=batch, progress=not quiet
        )
    finally:
        loaded.close()
    print_rates("turns", metrics, ("latency_s", "usage"))
