"""Learning curves: joint accuracy of a run's checkpoints against tokens of training."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from eval.compare import read_answered
from eval.learning_curve import LEAST_POINTS, check_goal
from eval.learning_curve import learning_curve as fit
from eval.turns import run_turns
from haggle.core.config import Record, claim_directory, located
from haggle.core.errors import HaggleError
from haggle.dataset import dataset_files
from pipeline.engines import kind_of_weights, open_weights
from training.checkpoints import whole_checkpoints
from training.curves import read_curve


class Asked(Record):
    """What a directory of a learning curve was asked for; the goal may change."""

    run: Path
    dataset: Path
    split: str
    n: int
    seed: int
    engine: str


def run_learning_curve(
    asked: Asked, out: Path, *, before: int = 0, goal: float = 0.96, batch: int = 8,
    progress: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Answer the same turns with each checkpoint of a run and fit a power law; resumes.

    `before` are the tokens of the training that the run started from. Raises HaggleError where
    the run has too few checkpoints.
    """
    check_goal(goal)
    dataset_files(asked.dataset, asked.split)  # a missing one is told before a model is loaded
    steps = [(line["step"], line["tokens"]) for line in read_curve(asked.run).steps]
    found = whole_checkpoints(asked.run)
    if len(found) < LEAST_POINTS:
        raise HaggleError(
            f"a curve wants {LEAST_POINTS} checkpoints or more, not {len(found)}",
            where=str(asked.run),
            hint="train with a smaller trainer.save_steps and a larger trainer.save_total_limit",
        )
    kind_of_weights(asked.engine)
    claim_directory(out, asked, "the learning curve of another run, or over other turns")
    points = []
    for step, checkpoint in found:
        answers = out / f"step-{step}"
        tokens = before + max((told for at, told in steps if at <= step), default=0)
        if not (answers / "metrics.json").is_file():
            print(f"step {step}, {tokens:,} tokens", flush=True)
            loaded = open_weights(asked.engine, checkpoint, answers / "model")
            try:
                run_turns(
                    asked.dataset, loaded, answers,
                    split=asked.split, n=asked.n, seed=asked.seed, batch=batch, progress=progress,
                )  # fmt: skip
            finally:
                loaded.close()
            shutil.rmtree(answers / "model")
        points.append((tokens, read_answered(answers, answers.name)))
    with located(str(out)):
        return fit(points, goal)
