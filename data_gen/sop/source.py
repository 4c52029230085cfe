"""Dialogues of characters with a procedure, as rows of a data set."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from data_gen.config import DataConfig
from data_gen.language.phrasebook import Split
from data_gen.sop.rows import tasks_of, to_row
from data_gen.sop.users import SimulatedUser, draw_person, phrases_of, right_action
from data_gen.sop.variety import varied
from haggle.core.agent import complete
from haggle.core.engine import Generation
from haggle.sop.domain import SOP, SopTurn, Talk
from haggle.sop.task import Task


class SopSource:
    """Simulated users before a character that makes no mistake."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        self.tasks: dict[Split, list[Task]] = {
            "train": tasks_of(config.character, "train"),
            "test": tasks_of(config.character, "test"),
        }
        for task in (*self.tasks["train"], *self.tasks["test"]):
            phrases_of(task)

    def rows(self, split: Split, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
        """One row a number; the tasks take turns."""
        for index in indices:
            yield self._row(split, index)

    def _row(self, split: Split, index: int) -> dict[str, Any]:
        task = self.tasks[split][index % len(self.tasks[split])]
        rng = random.Random(f"{task.task}/{self.config.seed}/{split}/{index}")
        shape = self._shape(task, split, index)
        user = draw_person(shape, rng, split)
        talk = Talk(user.task)
        turns = list(played(user, talk, rng))
        return to_row(
            talk,
            turns,
            id=f"{split}-{index}-{task.task}",
            seed=index,
            player=f"scripted-{split}-{user.temper}",
            teacher="oracle",
        )

    def _shape(self, task: Task, split: Split, index: int) -> Task:
        """The task as it stands, or in training perhaps in another shape. Only training tasks of
        the split train lend to each other."""
        rng = random.Random(f"{task.task}/{self.config.seed}/{index}/shape")
        if split != "train" or rng.random() >= self.config.variety:
            return task
        others = [other for other in self.tasks[split] if other is not task]
        return varied(task, [other for other in others if other.split == split], rng)

    def report(self) -> dict[str, Any]:
        """Nothing is rejected."""
        return {}

    def close(self) -> None:
        """Nothing to free."""


def played(user: SimulatedUser, talk: Talk, rng: random.Random) -> Iterator[SopTurn]:
    """The turns of a talk whose character understands everything. Every line is read for evidence
    as in play."""
    while (line := user.speak(talk)) is not None:
        action = right_action(talk, user.state, rng, user.split, user.phrase)
        turn = complete(SOP, talk, line, Generation(action.text()), "state")
        if turn.failed or turn.interventions:
            raise AssertionError(f"{line!r}, {action}: {turn.failed or turn.interventions}")
        yield turn
