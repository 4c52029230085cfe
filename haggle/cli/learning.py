"""`haggle eval learning-curve`: joint accuracy of a run's checkpoints against tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from haggle.cli.options import Batch, Quiet, WeightsEngine


def learning_curve(
    run: Annotated[Path, typer.Argument(help="Directory of a training run with checkpoints.")],
    dataset: Annotated[Path, typer.Option(help="A data set: directory or file.")],
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    split: Annotated[str, typer.Option(help="Which split.")] = "test",
    n: Annotated[int, typer.Option("--n", min=1, help="How many turns to draw.")] = 200,
    seed: Annotated[int, typer.Option(help="Which turns.")] = 0,
    before: Annotated[
        int, typer.Option(min=0, help="Tokens of the training that the run started from.")
    ] = 0,
    goal: Annotated[float, typer.Option(help="Joint accuracy to ask the curve for.")] = 0.96,
    engine: WeightsEngine = "llamacpp_batch",
    batch: Batch = 8,
    quiet: Quiet = False,
) -> None:
    """Answer the same turns with each checkpoint, fit a power law, draw it; resumes."""
    from eval.learning_curve import write_learning_curve
    from haggle.cli.tables import print_table
    from pipeline.learning_curve import Asked, run_learning_curve

    asked = Asked(run=run, dataset=dataset, split=split, n=n, seed=seed, engine=engine)
    curve = run_learning_curve(
        asked, out, before=before, goal=goal, batch=batch, progress=not quiet
    )
    for path in write_learning_curve(curve, out):
        typer.echo(str(path))
    print_table("learning curve", told(curve))


def told(curve: dict[str, Any]) -> dict[str, str]:
    """The curve in words: its points, its law, what it forecasts."""
    from haggle.rates import rate_text

    rows = {f"{point['tokens']:,} tokens": rate_text(point["joint"]) for point in curve["points"]}
    law, goal, check = curve["law"], curve["goal"], curve["backtest"]
    rows["error ~ tokens ** -b, b"] = f"{law['b']:.2f} ({law['b_low']:.2f} to {law['b_high']:.2f})"
    for point in curve["forecast"]:
        rows[f"forecast, {point['times']} times the tokens"] = rate_text(point)
    wanted = f"{goal['tokens']:,} tokens" if goal["tokens"] else f"not told: {goal['why']}"
    rows[f"for {100 * goal['joint']:g}%"] = wanted
    if check is not None:
        rows["the last point, forecast from the others"] = (
            f"{rate_text(check)}, measured {100 * check['measured']:.1f}%"
        )
    return rows
