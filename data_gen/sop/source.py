"""Dialogues of a character with a procedure, as rows of a data set."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from data_gen.config import DataConfig
from data_gen.language.phrasebook import Split
from data_gen.sop.users import SimulatedUser, draw_user, phrases_of, right_action
from haggle.core.agent import complete
from haggle.core.engine import Generation
from haggle.core.json_text import to_json
from haggle.sop.domain import SOP, SopTurn, Talk
from haggle.sop.task import Task, load_task
from haggle.trade.records import SCHEMA_VERSION

METHOD = "sop"


class SopSource:
    """Simulated users before a character that makes no mistake."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        self.task = load_task(config.character)
        phrases_of(self.task)

    def rows(self, split: Split, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
        """One row a number."""
        for index in indices:
            yield _row(self.task, self.config.seed, split, index)

    def report(self) -> dict[str, Any]:
        """Nothing is rejected."""
        return {}

    def close(self) -> None:
        """Nothing to free."""


def _row(task: Task, seed: int, split: Split, index: int) -> dict[str, Any]:
    rng = random.Random(f"{task.task}/{seed}/{split}/{index}")
    user, talk = draw_user(task, rng, split), Talk(task)
    turns = [_labels(turn) for turn in played(user, talk, rng)]
    return {
        "schema_version": SCHEMA_VERSION,
        "id": f"{split}-{index}-{task.task}",
        "seed": index,
        "scenario": task.task,
        "world": task.task,
        "method": METHOD,
        "player": f"scripted-{split}-{user.temper}",
        "teacher": "oracle",
        "messages": [
            {"role": m.role, "content": m.content} for m in talk.messages(limit=None)
        ],
        "turns": turns,
    }  # fmt: skip


def played(user: SimulatedUser, talk: Talk, rng: random.Random) -> Iterator[SopTurn]:
    """The turns of a talk whose character understands everything."""
    while (line := user.speak(talk)) is not None:
        action = right_action(talk, user.state, rng, user.split, line)
        turn = complete(SOP, talk, line, Generation(action.text()), "written")
        if turn.failed or turn.interventions:
            raise AssertionError(f"{action}: {turn.failed or turn.interventions}")
        yield turn


def _labels(turn: SopTurn) -> dict[str, Any]:
    return {
        "player": turn.player,
        "act": turn.user_state,
        "last": turn.last,
        "state": turn.act,
        "cart": to_json({}),
        "npc_dialogue": turn.says,
    }
