"""Simulated people before a character with a procedure: a hidden temper, exact labels."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from data_gen.language.phrasebook import Split
from haggle.core.config import Record, load_config, merged, parse
from haggle.core.errors import HaggleError
from haggle.sop.domain import Action, Talk
from haggle.sop.task import QUESTION, Task, Utterances

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


def phrases_of(task: Task) -> Phrases:
    """What simulated users of a task say, and its character: the task file's own utterances,
    questions and lines, and over them those of a file of its name beside this module.

    Raises HaggleError for a user state that has no words.
    """
    written = _written(task.task)
    found = {split: merged(_said(task, split), written.get(split, {})) for split in get_args(Split)}
    for split, said in found.items():
        for state in task.user_state:
            if not said["user"].get(state):
                raise HaggleError(
                    f"no phrases for the task {task.task!r}: nobody says {state!r} ({split})",
                    where="character",
                    hint=f"give the task file utterances.{state}.train and .test",
                )
    return parse(found, Phrases, "character")


@cache
def _written(task: str) -> dict[str, dict[str, dict[str, list[str]]]]:
    path = FOLDER / f"{task}.yaml"
    return load_config(path, Phrases).model_dump() if path.exists() else {}


def _said(task: Task, split: Split) -> dict[str, dict[str, list[str]]]:
    """The lines of a task file, by user state and by action."""

    def of(one: Utterances) -> list[str]:
        return list(one.train if split == "train" else one.test)

    user = {state: of(said) for state, said in task.utterances.items()}
    if asked := [line for said in task.questions.values() for line in of(said)]:
        user[QUESTION] = user.get(QUESTION, []) + asked
    return {"user": user, "agent": {name: [line] for name, line in task.lines.items()}}


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
    lines: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        phrases = phrases_of(self.task)
        self.lines = (phrases.train if self.split == "train" else phrases.test).user

    def speak(self, talk: Talk) -> str | None:
        """The next line; None when the talk is over."""
        if talk.ended or len(talk.exchanges) >= MAX_TURNS:
            return None
        self.state = self._chosen(talk)
        self.path.append(self.state)
        lines = self.lines[self.state]
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


def right_action(talk: Talk, user: str, rng: random.Random, split: Split, line: str = "") -> Action:
    """What a character does who understood the line: the next step, or an answer to an aside.

    The first step listed is the willing one; asked `PATIENCE` times for the same, it takes the
    last. A question that the task file knows is answered with the fact.
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
    fact = task.fact_asked(line) if user == QUESTION and act == reply else ""
    phrases = phrases_of(task)
    lines = (phrases.train if split == "train" else phrases.test).agent
    return Action(user=user, act=act, say=fact or rng.choice(lines[act]))


def draw_user(task: Task, rng: random.Random, split: Split) -> SimulatedUser:
    """Somebody of any temper."""
    return SimulatedUser(task, rng, split, rng.choice(TEMPERS))
