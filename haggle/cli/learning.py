"""`haggle eval learning-curve`: joint accuracy of a run's checkpoints against tokens."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from haggle.cli.options import Batch, Quiet, WeightsEngine, kind_of_weights, open_weights
from haggle.core.config import Record, claim_directory
from haggle.core.errors import HaggleError


class _Asked(Record):
    """What a directory of a learning curve was asked for; the goal may change."""

    run: Path
    dataset: Path
    split: str
    n: int
    seed: int
    engine: str


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
    from eval.compare import read_answered
    from eval.learning_curve import LEAST_POINTS, check_goal, write_learning_curve
    from eval.learning_curve import learning_curve as fit
    from eval.turns import run_turns
    from haggle.cli import located, print_table
    from haggle.dataset import dataset_files
    from training.checkpoints import whole_checkpoints
    from training.curves import read_curve

    check_goal(goal)
    dataset_files(dataset, split)  # a missing one is told before a model is loaded
    steps = [(line["step"], line["tokens"]) for line in read_curve(run).steps]
    found = whole_checkpoints(run)
    if len(found) < LEAST_POINTS:
        raise HaggleError(
            f"a curve wants {LEAST_POINTS} checkpoints or more, not {len(found)}",
            where=str(run),
            hint="train with a smaller trainer.save_steps and a larger trainer.save_total_limit",
        )
    kind_of_weights(engine)
    asked = _Asked(run=run, dataset=dataset, split=split, n=n, seed=seed, engine=engine)
    claim_directory(out, asked, "the learning curve of another run, or over other turns")
    points = []
    for step, checkpoint in found:
        answers = out / f"step-{step}"
        tokens = before + max((told for at, told in steps if at <= step), default=0)
        if not (answers / "metrics.json").is_file():
            typer.echo(f"step {step}, {tokens:,} tokens")
            loaded = open_weights(engine, checkpoint, answers / "model")
            try:
                run_turns(
                    dataset, loaded, answers,
                    split=split, n=n, seed=seed, batch=batch, progress=not quiet,
                )  # fmt: skip
            finally:
                loaded.close()
            shutil.rmtree(answers / "model")
        points.append((tokens, read_answered(answers, answers.name)))
    with located(str(out)):
        curve = fit(points, goal)
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
