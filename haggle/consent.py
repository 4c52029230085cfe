"""Does a line withhold consent? Words alone, so that no model's slip can close a sale on a no."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from haggle.config import Record, load_config


class Words(Record):
    """`consent.yaml`: what keeps a sale open whatever else is said, what does so unless the line
    agrees as well, and what agrees."""

    always: list[str]
    unless_agreed: list[str]
    agreed: list[str]


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    words = load_config(Path(__file__).with_name("consent.yaml"), Words)
    return _any(words.always), _any(words.unless_agreed), _any(words.agreed)


def _any(phrases: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(_whole, phrases)))


def _whole(phrase: str) -> str:
    """A pattern for a phrase as whole words; `~` stands for up to two words."""
    if not re.search(r"\w", phrase):
        return re.escape(phrase)
    words = [re.escape(word) for word in phrase.split()]
    gapped = r"\W+".join(words).replace(re.escape("~") + r"\W+", r"(?:\w+\W+){0,2}?")
    return rf"(?<!\w){gapped}(?!\w)"


def withholds(player: str) -> bool:
    """Whether a line that is taken for a yes holds words of a no, a doubt or a change.

    Made to err on the side of asking again: a needless second review costs one turn.
    """
    said = player.casefold().replace("’", "'")
    always, unless_agreed, agreed = _patterns()
    return bool(always.search(said) or (unless_agreed.search(said) and not agreed.search(said)))
