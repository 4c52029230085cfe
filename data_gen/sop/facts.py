"""What a character may say: numbers come from its task or from the talk, never from nowhere."""

from __future__ import annotations

import re

from haggle.language.english.numbers import TENS, UNITS
from haggle.sop.domain import Talk
from haggle.sop.task import Task

WORDS = {word: str(number) for word, number in (UNITS | TENS | {"hundred": 100}).items()}
FREE = {"0", "1"}  # `one` is seldom a number


def numbers(text: str) -> set[str]:
    """The numbers in a text, in digits."""
    found = re.findall(r"\d+|[a-z]+", text.casefold())
    return {WORDS.get(word, word) for word in found if word in WORDS or word.isdigit()} - FREE


def unknown_numbers(said: str, talk: Talk, line: str = "") -> set[str]:
    """The numbers in a line of the character that neither its task nor the talk has. `line` is
    what it answers."""
    heard = [message.content for message in talk.messages(line or None, limit=None)[1:]]
    return numbers(said) - numbers(" ".join([*_known(talk.task), *heard, line]))


def _known(task: Task) -> list[str]:
    told = task.conversation_profile
    variants = [line for lines in task.variants.values() for line in lines]
    facts = [told.agent_identity, told.agent_goal, *told.facts.values()]
    return [*facts, *task.lines.values(), *variants, *task.user_profile.values()]
