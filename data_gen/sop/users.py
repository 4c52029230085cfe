"""Simulated people before a character with a procedure: a hidden temper, exact labels."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from data_gen.language.phrasebook import Split
from haggle.core.config import Record, load_config
from haggle.core.errors import HaggleError, nearest
from haggle.sop.domain import Action, Talk
from haggle.sop.task import Task

Temper = Literal["cooperative", "doubtful", "uncooperative", "digressing"]
TEMPERS: tuple[Temper, ...] = get_args(Temper)
FOLDER = Path(__file__).parent
MAX_TURNS = 16
PATIENCE = 2  # times the character asks for the same thing before it gives up

# Of four turns, how many leave the procedure, and how many of the others are unwilling.
_STRAY: dict[Temper, float] = {
    "cooperative": 0.1, "doubtful": 0.3, "uncooperative": 0.2, "digressing": 0.5
}  # fmt: skip
_UNWILLING: dict[Temper, float] = {
    "cooperative": 0.0, "doubtful": 0.15, "uncooperative": 0.6, "digressing": 0.1
}  # fmt: skip


class Sayings(Record):
    """Lines by user state, and by the character's action."""

    user: dict[str, list[str]]
    agent: dict[str, list[str]]


class Phrases(Record):
    """The phrases of a task, apart by split."""

    train: Sayings
    test: Sayings


@cache
def phrases_of(task: str) -> Phrases:
    """The phrases that go with a task. Raises HaggleError for a task without any."""
    path = FOLDER / f"{task}.yaml"
    if not path.exists():
        known = [p.stem for p in sorted(FOLDER.glob("*.yaml"))]
        raise HaggleError(
            f"no phrases for the task {task!r}", where="character", hint=nearest(task, known)
        )
    return load_config(path, Phrases)


@dataclass
class SimulatedUser:
    """Somebody who walks through a procedure, willing or not. `state` is the hidden truth of the
    line said last."""

    task: Task
    rng: random.Random
    split: Split
    temper: Temper
    state: str = ""
    said: list[str] = field(default_factory=list)
    path: list[str] = field(default_factory=list)

    def speak(self, talk: Talk) -> str | None:
        """The next line; None when the talk is over."""
        if talk.ended or len(talk.exchanges) >= MAX_TURNS:
            return None
        self.state = self._chosen(talk)
        self.path.append(self.state)
        sayings = phrases_of(self.task.task)
        lines = (sayings.train if self.split == "train" else sayings.test).user[self.state]
        fresh = [line for line in lines if line not in self.said] or lines
        line = self.rng.choice(fresh)
        self.said.append(line)
        return line.format_map(self.task.user_profile)

    def _chosen(self, talk: Talk) -> str:
        answers = talk.answers()
        steps = [name for name in answers if name not in self.task.asides]
        asides = [name for name in answers if name in self.task.asides]
        if not steps or self.rng.random() < _STRAY[self.temper]:
            return self.rng.choice(asides)
        if len(steps) > 1 and self.rng.random() < _UNWILLING[self.temper]:
            return self.rng.choice(steps[1:])
        return steps[0]


def right_action(talk: Talk, user: str, rng: random.Random, split: Split) -> Action:
    """What a character does who understood the line: the next step, or an answer to an aside.

    The first step listed is the willing one; asked `PATIENCE` times for the same, it takes the
    last.
    """
    task, acts = talk.task, talk.answers()[user]
    reply = task.replies.get(user)
    asked = [vertex.removeprefix("Agent.") for vertex in talk.path].count(acts[0])
    act = acts[-1] if user not in task.asides and asked >= PATIENCE else acts[0]
    if user in task.asides:
        direct = [name for name in acts if name not in task.proactive and name != talk.last]
        act = reply if reply in acts else acts[0]
        if direct:  # a step that waits for no answer is due
            act = direct[0]
    sayings = phrases_of(task.task)
    lines = (sayings.train if split == "train" else sayings.test).agent
    return Action(user=user, act=act, say=rng.choice(lines[act]))


def draw_user(task: Task, rng: random.Random, split: Split) -> SimulatedUser:
    """Somebody of any temper."""
    return SimulatedUser(task, rng, split, rng.choice(TEMPERS))
