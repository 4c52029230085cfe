"""Voices: how a player of a kind dresses a phrase, apart from what it means (`voices.yaml`)."""

from __future__ import annotations

import random
import re
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from data_gen.language.phrasebook import PHRASES, PLAIN, Split
from haggle.core.config import Record, load_config

Probability = Annotated[float, Field(ge=0, le=1)]
UNDRESSED = ("attack_", "silence", "greet")  # acts that a voice leaves as they are
SWAP = 0.5


class Voice(Record):
    """One kind of speaker. Probabilities are per line."""

    split: Split
    openers: list[str]
    closers: list[str]
    swaps: dict[str, list[str]] = {}
    opener: Probability = 0.1
    closer: Probability = 0.1
    lower: Probability = 0.3
    bare_end: Probability = 0.3
    unpunctuated: Probability = 0.0
    noise: Annotated[float, Field(ge=0)] = 1.0
    words: Probability = 0.4

    @cached_property
    def _swap_pattern(self) -> re.Pattern[str] | None:
        if not self.swaps:
            return None
        words = sorted(self.swaps, key=len, reverse=True)
        return re.compile(r"(?<![\w'{])(" + "|".join(map(re.escape, words)) + r")(?![\w'}])")

    def phrase(self, text: str, rng: random.Random) -> str:
        """Word swaps in a phrase; its slots must be filled afterwards or hold no such words."""
        if self._swap_pattern is None:
            return text

        def swap(match: re.Match[str]) -> str:
            return rng.choice(self.swaps[match[1]]) if rng.random() < SWAP else match[1]

        return re.sub(r" {2,}", " ", self._swap_pattern.sub(swap, text)).strip()

    def dress(self, act: str, text: str, rng: random.Random) -> str:
        """The line as this voice types it: openers, closers, casing, end punctuation."""
        if not act.startswith(UNDRESSED):
            if rng.random() < self.opener:
                text = _joined(rng.choice(self.openers), text)
            if rng.random() < self.closer:
                text = _closed(text, rng.choice(self.closers))
        if rng.random() < self.lower:
            text = text.casefold()
        elif rng.random() < 0.7:
            text = text[:1].upper() + text[1:]
        if rng.random() < self.unpunctuated:
            text = re.sub(r"[.,!?;:]+(?=\s|$)", "", text)
        elif rng.random() < self.bare_end:
            text = text.rstrip(".!") or text
        return text


class Voices(Record):
    """`voices.yaml`."""

    voices: dict[str, Voice]


def _joined(opener: str, text: str) -> str:
    """Opener and phrase; the phrase goes on in lower case unless it begins with `I` or a name."""
    first = text.split(" ", 1)[0]
    if opener[-1:] not in ".:" and first[:1].isupper() and first[1:].islower() and len(first) > 1:
        text = text[:1].casefold() + text[1:]
    return f"{opener} {text}"


def _closed(text: str, closer: str) -> str:
    if text[-1:] in "?!":
        return f"{text} {closer}"
    mark = "." if text.endswith(".") else ""
    return f"{text.rstrip('.')}, {closer}{mark}"


@cache
def load_voices(root: Path = PHRASES) -> dict[str, Voice]:
    """The voices by name. Raises HaggleError naming file and field."""
    return load_config(root / "voices.yaml", Voices).voices


@cache
def voices_of(split: Split) -> tuple[str, ...]:
    """Names of a split's voices; `plain` speaks in both."""
    return (PLAIN, *(n for n, v in load_voices().items() if v.split == split and n != PLAIN))
