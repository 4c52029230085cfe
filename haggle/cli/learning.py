"""`haggle eval learning-curve`: joint accuracy of a run's checkpoints against tokens."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from haggle.errors import HaggleError


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
    from eval.learning_curve import LEAST_POINTS, write_learning_curve
    from eval.learning_curve import learning_curve as fit
    from eval.turns import digest, run_turns, sample_turns
    from haggle.cli import located, print_table
    from haggle.dataset import dataset_files
    from training.checkpoints import whole_checkpoints
    from training.curves import read_curve

    dataset_files(dataset, split)  # a missing one is told before a model is loaded
    steps = [(line["step"], line["tokens"]) for line in read_curve(run).steps]
    found = whole_checkpoints(run)
    if len(found) < LEAST_POINTS:
        raise HaggleError(
            f"a curve wants {LEAST_POINTS} checkpoints or more, not {len(found)}",
            where=str(run),
            hint="train with a smaller trainer.save_steps and a larger trainer.save_total_limit",
        )
    asked = digest(sample_turns(dataset, split, n, seed))
    points = []
    for step, checkpoint in found:
        answers = out / f"step-{step}"
        tokens = before + max((told for at, told in steps if at <= step), default=0)
        if not _answered(answers, asked):
            typer.echo(f"step {step}, {tokens:,} tokens")
            loaded = _open(engine, checkpoint, answers / "model")
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
    rows = {f"{point['tokens']:,} tokens": _interval(point["joint"]) for point in curve["points"]}
    law, goal, check = curve["law"], curve["goal"], curve["backtest"]
    rows["error ~ tokens ** -b, b"] = f"{law['b']:.2f} ({law['b_low']:.2f} to {law['b_high']:.2f})"
    for point in curve["forecast"]:
        rows[f"forecast, {point['times']} times the tokens"] = _interval(point)
    wanted = f"{goal['tokens']:,} tokens" if goal["tokens"] else f"not told: {goal['why']}"
    rows[f"for {100 * goal['joint']:g}%"] = wanted
    if check is not None:
        rows["the last point, forecast from the others"] = (
            f"{_interval(check)}, measured {100 * check['measured']:.1f}%"
        )
    return rows


def _interval(rate: dict[str, Any]) -> str:
    return f"{100 * rate['value']:.1f}% ({100 * rate['low']:.0f} to {100 * rate['high']:.0f})"


def _answered(answers: Path, asked: str) -> bool:
    """Whether an earlier call has finished this checkpoint, over the same turns."""
    from eval.journal import RUN
    from haggle.storage import read_json

    marker = answers / RUN
    if not ((answers / "metrics.json").is_file() and marker.is_file()):
        return False
    return bool(read_json(marker).get("turns") == asked)


def _open(engine: str, checkpoint: Path, target: Path) -> Any:
    """An engine with the checkpoint's weights, which are written to `target` in its form."""
    from haggle.cli import open_engine, serve_config
    from training.export import export

    kind = serve_config(engine, "--engine").engine
    if kind not in {"llamacpp", "transformers", "vllm"}:
        raise HaggleError(
            f"engine {kind!r} does not read weights from this machine",
            where="--engine",
            hint="take a serve config of llama.cpp, transformers or vLLM",
        )
    types = ("Q8_0",) if kind == "llamacpp" else ()
    result = export(checkpoint, target, quantizations=types, verify=False, echo=lambda _: None)
    if kind == "llamacpp":
        return open_engine(engine, result.ggufs["Q8_0"])
    return open_engine(engine, None, str(result.merged))
