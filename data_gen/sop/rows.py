"""A talk as a row of a data set, and what every row of a character with a procedure has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from data_gen.config import EVERY
from data_gen.language.phrasebook import Split
from haggle.grammar.json_text import to_json
from haggle.sop.domain import METHOD, SopTurn, Talk
from haggle.sop.task import TASKS, Task, load_task
from haggle.trade.records import SCHEMA_VERSION


def tasks_of(character: str, split: Split) -> list[Task]:
    """The tasks of a split: one character in both, or of all tasks those of the split."""
    if character != EVERY:
        return [load_task(character)]
    tasks = [load_task(path.stem) for path in sorted(TASKS.glob("*.yaml"))]
    return [task for task in tasks if task.split == split]


def to_row(talk: Talk, turns: Sequence[SopTurn], **about: Any) -> dict[str, Any]:
    """The row of a talk. `about` is its id, seed, player and teacher."""
    return {
        "schema_version": SCHEMA_VERSION,
        "scenario": talk.task.task,
        "world": talk.task.task,
        "method": METHOD,
        "messages": [asdict(message) for message in talk.messages(limit=None)],
        "turns": [_labels(turn) for turn in turns],
        **about,
    }


def _labels(turn: SopTurn) -> dict[str, Any]:
    return {
        "player": turn.player,
        "act": turn.user_state,
        "last": turn.last,
        "state": turn.act,
        "cart": to_json({}),
        "npc_dialogue": turn.says,
    }
