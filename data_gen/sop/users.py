"""Simulated people before a character with a procedure: a hidden temper, exact labels."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal, get_args

from data_gen.language.phrasebook import Split
from data_gen.sop.wording import say, voices, with_person
from haggle.core.config import Record, parse
from haggle.core.errors import HaggleError
from haggle.sop.domain import Action, Talk
from haggle.sop.task import QUESTION, Task, Utterances

Temper = Literal["cooperative", "doubtful", "uncooperative", "digressing"]
TEMPERS: tuple[Temper, ...] = get_args(Temper)
MAX_TURNS = 16
PATIENCE = 2  # times the character asks for the same thing before it gives up
SLY = (0.0, 0.0, 0.5, 0.8)  # of unwilling lines, how many sound like evidence and are none

# Of four turns, how many leave the procedure, and how many of the others are unwilling.
_STRAY: dict[Temper, float] = {
    "cooperative": 0.1, "doubtful": 0.3, "uncooperative": 0.2, "digressing": 0.5
}  # fmt: skip
_UNWILLING: dict[Temper, float] = {
    "cooperative": 0.0, "doubtful": 0.15, "uncooperative": 0.6, "digressing": 0.1
}  # fmt: skip


class Sayings(Record):
    """Lines by user state, and by the character's action. `near` sound like another state's."""

    user: dict[str, list[str]]
    agent: dict[str, list[str]]
    near: dict[str, list[str]] = {}


class Phrases(Record):
    """The phrases of a task, apart by split."""

    train: Sayings
    test: Sayings


def phrases_of(task: Task) -> Phrases:
    """What simulated users of a task say, and its character: all of it stands in the task file.

    Raises HaggleError for a user state that has no words.
    """
    found = {split: _said(task, split) for split in get_args(Split)}
    for split, said in found.items():
        for state in task.user_state:
            if not said["user"].get(state):
                raise HaggleError(
                    f"no phrases for the task {task.task!r}: nobody says {state!r} ({split})",
                    where="character",
                    hint=f"give the task file utterances.{state}.train and .test",
                )
    return parse(found, Phrases, "character")


def _said(task: Task, split: Split) -> dict[str, dict[str, list[str]]]:
    """The lines of a task file, by user state and by action."""

    def of(one: Utterances) -> list[str]:
        return list(one.train if split == "train" else one.test)

    user = {state: of(said) for state, said in task.utterances.items()}
    if asked := [line for said in task.questions.values() for line in of(said)]:
        user[QUESTION] = user.get(QUESTION, []) + asked
    agent = {name: [line, *task.variants.get(name, [])] for name, line in task.lines.items()}
    return {"user": user, "agent": agent, "near": {k: of(v) for k, v in task.near_misses.items()}}


@dataclass
class SimulatedUser:
    """Somebody who walks through a procedure, willing or not. `state` is the hidden truth of the
    line said last, `phrase` that line before it was dressed.

    `voice` is one of `voices.yaml`, or "" for phrases as they are written. `sly` is the share of
    lines of an unwilling user that sound like evidence and are none.
    """

    task: Task
    rng: random.Random
    split: Split
    temper: Temper
    voice: str = ""
    sly: float = 0.0
    state: str = ""
    phrase: str = ""
    said: list[str] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    lines: dict[str, list[str]] = field(init=False)
    near: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        phrases = phrases_of(self.task)
        own = phrases.train if self.split == "train" else phrases.test
        self.lines, self.near = own.user, own.near

    def speak(self, talk: Talk) -> str | None:
        """The next line; None when the talk is over."""
        if talk.ended or len(talk.exchanges) >= MAX_TURNS:
            return None
        self.state = self._chosen(talk)
        self.path.append(self.state)
        lines = self.lines[self.state]
        if self.sly and self.rng.random() < self.sly:
            lines = self.near.get(self.state) or lines
        fresh = [line for line in lines if line not in self.said] or lines
        line = self.rng.choice(fresh)
        self.said.append(line)
        self.phrase = line.format_map(self.task.user_profile)
        if not self.voice:
            return self.phrase
        return say(talk, self.state, self.phrase, voices(self.split)[self.voice], self.rng)

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


def draw_person(task: Task, rng: random.Random, split: Split) -> SimulatedUser:
    """Somebody with a profile, a temper and a voice of their own, perhaps sly. Their `task` has
    that profile: talk to them about it."""
    person = with_person(task, rng, split)
    voice = rng.choice(sorted(voices(split)))
    return SimulatedUser(person, rng, split, rng.choice(TEMPERS), voice, rng.choice(SLY))
