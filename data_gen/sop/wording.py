"""How a simulated user says a phrase: in a voice, with slips of the keys, and still readable.

Whatever a voice does to a line, the line must stay evidence of what is meant and of nothing else;
code reads it (`haggle.sop.evidence`). Where it does not, the phrase is said as it stands.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from data_gen.language.noise import garble
from data_gen.language.phrasebook import PLAIN, Split
from data_gen.language.voices import Voice, load_voices
from haggle.core.config import Record, load_config
from haggle.sop.domain import Talk
from haggle.sop.evidence import read_evidence
from haggle.sop.task import Task, Utterances

FOLDER = Path(__file__).parent
NOISE = 0.4  # strength; each voice multiplies it
TRIES = 3  # in a voice, before the phrase is said as it stands


class People(Record):
    """`people.yaml`: names, apart by split."""

    Name: Utterances


def voices(split: Split) -> dict[str, Voice]:
    """The voices of a split; `plain` speaks in both."""
    known = load_voices(FOLDER)
    return {name: v for name, v in known.items() if name == PLAIN or v.split == split}


def with_person(task: Task, rng: random.Random, split: Split) -> Task:
    """The task before somebody else: another user profile, as far as there are values for it."""
    values = ({"Name": _names()} if _named(task) else {}) | task.people
    drawn = {
        key: rng.choice([task.user_profile[key], *getattr(said, split)])
        for key, said in values.items()
    }
    return task.model_copy(update={"user_profile": task.user_profile | drawn})


@cache
def _names() -> Utterances:
    return load_config(FOLDER / "people.yaml", People).Name


def _named(task: Task) -> bool:
    """Whether the name is one of a person alone, such as `Mirela Voss`."""
    return len(task.user_profile.get("Name", "").split()) == 2


def read_as(task: Task, states: Iterable[str], line: str) -> set[str]:
    """The user states among these that a line is evidence of."""
    wanted = {state: task.evidence[state] for state in states if state in task.evidence}
    profile = task.user_profile
    return {state for state, words in wanted.items() if read_evidence(line, words, profile).holds}


def possible(talk: Talk) -> list[str]:
    """The user states of the procedure that may be meant now."""
    return [state for state in talk.answers() if state not in talk.task.asides]


def faithful(talk: Talk, state: str, line: str) -> bool:
    """Whether a line, said now, is evidence of the state alone, or of nothing where the state
    needs none."""
    needed = {state} & set(talk.task.evidence)
    return read_as(talk.task, {*possible(talk), state}, line) == needed


def say(talk: Talk, state: str, phrase: str, voice: Voice, rng: random.Random) -> str:
    """A phrase in a voice. Its slots are filled."""
    for _ in range(TRIES):
        line = voice.dress(state, voice.phrase(phrase, rng), rng)
        line = garble(line, NOISE * voice.noise, rng)
        if faithful(talk, state, line):
            return line
    return phrase
