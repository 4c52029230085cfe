"""Dialogues of characters with a procedure, as rows of a data set."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from data_gen.config import DataConfig
from data_gen.language.phrasebook import Split
from data_gen.sop.rows import tasks_of, to_row
from data_gen.sop.users import SimulatedUser, draw_person, phrases_of, right_action
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
        tasks = self.tasks[split]
        for index in indices:
            yield _row(tasks[index % len(tasks)], self.config.seed, split, index)

    def report(self) -> dict[str, Any]:
        """Nothing is rejected."""
        return {}

    def close(self) -> None:
        """Nothing to free."""


def _row(task: Task, seed: int, split: Split, index: int) -> dict[str, Any]:
    rng = random.Random(f"{task.task}/{seed}/{split}/{index}")
    user = draw_person(task, rng, split)
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


def played(user: SimulatedUser, talk: Talk, rng: random.Random) -> Iterator[SopTurn]:
    """The turns of a talk whose character understands everything. Every line is read for evidence
    as in play."""
    while (line := user.speak(talk)) is not None:
        action = right_action(talk, user.state, rng, user.split, user.phrase)
        turn = complete(SOP, talk, line, Generation(action.text()), "state")
        if turn.failed or turn.interventions:
            raise AssertionError(f"{line!r}, {action}: {turn.failed or turn.interventions}")
        yield turn
