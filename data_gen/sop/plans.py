"""Rows to learn SOP prediction from, vertex by vertex (PCA, 5.2), split by task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from data_gen.config import DataConfig, PlansConfig
from data_gen.language.phrasebook import Split
from haggle.core.errors import HaggleError
from haggle.sop.definition import Definition
from haggle.sop.folds import in_folds, load_definitions, three_ways
from haggle.sop.vertexwise import lesson
from haggle.trade.records import SCHEMA_VERSION

METHOD = "sop-plan"


class PlanSource:
    """One row is one task with the right answer for each of its vertices.

    Row number `k` of `n` tasks is task `k % n`; each further round asks in another order.
    """

    def __init__(self, config: DataConfig) -> None:
        assert config.plans is not None, "opened for such a config alone"
        self.tasks = split_tasks(config.plans)

    def rows(self, split: Split, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
        """One row a number."""
        tasks = list(self.tasks[split].items())
        for index in indices:
            name, task = tasks[index % len(tasks)]
            yield _row(name, task, split, index, index // len(tasks))

    def report(self) -> dict[str, Any]:
        """Nothing is rejected."""
        return {}

    def close(self) -> None:
        """Nothing to free."""


def split_tasks(plans: PlansConfig) -> dict[Split, dict[str, Definition]]:
    """The tasks of a folder for training and test: a fold is the test, or the stated split's.

    Raises HaggleError for a folder without tasks, and for too few of them.
    """
    tasks = load_definitions(plans.tasks)
    if plans.fold is None:
        train, _, test = three_ways(list(tasks), plans.seed)
    else:
        groups = in_folds(list(tasks), plans.folds, plans.seed)
        if plans.fold >= plans.folds:
            hint = f"choose 0 to {plans.folds - 1}"
            raise HaggleError(f"there is no fold {plans.fold}", where="plans.fold", hint=hint)
        test = groups[plans.fold]
        train = [name for name in tasks if name not in test]
    if not train or not test:
        hint = "choose fewer folds, or more tasks"
        raise HaggleError(f"{len(tasks)} tasks are too few", where="plans", hint=hint)
    return {
        "train": {name: tasks[name] for name in train},
        "test": {name: tasks[name] for name in test},
    }


def _row(name: str, task: Definition, split: Split, index: int, seed: int) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "id": f"{split}-{index}-{name}",
        "seed": seed,
        "scenario": METHOD,
        "world": name,
        "method": METHOD,
        "player": "vertices",
        "teacher": "task",
        "messages": [asdict(message) for message in lesson(task, seed)],
        "turns": [],
    }
