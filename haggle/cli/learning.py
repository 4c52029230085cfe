"""`haggle eval learning-curve`: joint accuracy of a run's checkpoints against tokens."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from haggle.config import Record, claim_directory
from haggle.errors import HaggleError


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
    engine: Annotated[
        str,
        typer.Option("--engine", help="A serve config of llama.cpp, transformers or vLLM."),
    ] = "llamacpp_batch",
    batch: Annotated[int, typer.Option(min=1, help="Turns at once.")] = 8,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bars.")] = False,
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
