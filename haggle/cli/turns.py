"""`haggle eval turns`: answer the turns of a data set with their true history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw wrong turns against needless questions (.png, .svg)."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Answer turns of a data set with their true history, guard off; resumes."""
    from eval.asking import draw_asking
    from eval.plots import plotter
    from eval.turns import run_turns
    from haggle.cli.tables import print_rates
    from haggle.core.errors import HaggleError
    from haggle.dataset import dataset_files
    from serving.engines import ask_below_of, open_engine

    dataset_files(dataset, split)  # a missing one is told before a model is loaded
    draw = None if plot is None else plotter(plot, draw_asking)
    loaded = open_engine(engine, gguf, model)
    try:
        metrics = run_turns(
            dataset, loaded, out, split=split, n=n, seed=seed, batch=batch,
            served=ask_below_of(engine, gguf, model), progress=not quiet,
        )  # fmt: skip
    finally:
        loaded.close()
    print_rates("turns", metrics, ("latency_s", "usage"))
    curve = metrics.get("asking")
    if curve:
        print_asking(curve)
    if draw is not None:
        if not curve:
            raise HaggleError(
                "nothing to draw: no answer has a probability",
                where="--plot",
                hint="llama.cpp and vLLM tell them, for a data set of a method that speaks after "
                "the outcome (astp-stepwise)",
            )
        draw(curve)


def print_asking(curve: dict[str, Any]) -> None:
    """The asking curve at three limits, and the cheapest limit for other costs."""
    from eval.asking import QUESTION, WRONG, limit_text
    from haggle.cli.tables import print_columns
    from haggle.rates import rate_text

    rows = [
        {"asked below": f"{name}: {point['below']:g}", "cost": point["cost"]}
        | {key: rate_text(point[key]) for key in ("asked", "needless", "wrong")}
        for name, point in (
            ("never", curve["points"][0]), ("served", curve["served"]), ("cheapest", curve["best"])
        )
    ]  # fmt: skip
    title = f"asking: a wrong turn costs {WRONG:g} lines, a question {QUESTION:g}, n {curve['n']}"
    print_columns(title, rows, ("asked below", "asked", "needless", "wrong", "cost"))
    saved = curve["saved"]
    told = f"cheapest limits: {limit_text(curve['best'])}"
    if saved["low"] is not None:
        told += f"; they save {saved['value']:.3f} lines a turn beside the served one"
        told += f" ({saved['low']:.3f} to {saved['high']:.3f}; chosen on these turns)"
    typer.echo(told)
    limits = ", ".join(f"{cost}: {below:g}" for cost, below in curve["cheapest"].items())
    typer.echo(f"cheapest limit by what a wrong turn costs: {limits}")
