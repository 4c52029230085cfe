"""Phrases by act, purpose and state, split into train and test; see `phrases/*.yaml`."""

from __future__ import annotations

import random
import string
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from haggle import placeholders
from haggle.config import Record, load_config

Split = Literal["train", "test"]
PHRASES = Path(__file__).parent / "phrases"
PLAYER_SLOTS = frozenset(
    "item items qty price percent amount purpose merchant currency".split()
)  # fmt: skip
MIN_TRAIN = 25


def slots(phrase: str) -> set[str]:
    """Names of the `{slots}` of a phrase."""
    return {name for _, name, _, _ in string.Formatter().parse(phrase) if name is not None}


class Phrases(Record):
    """Train and test phrasings of one act, purpose or state."""

    train: list[str]
    test: list[str] = []

    def of(self, split: Split) -> list[str]:
        """The phrasings of a split."""
        return self.train if split == "train" else self.test


class PlayerPhrases(Record):
    """`player.yaml`: phrasings by act."""

    acts: dict[str, Phrases]

    @model_validator(mode="after")
    def _slots_are_known(self) -> PlayerPhrases:
        for act, phrases in self.acts.items():
            for phrase in (*phrases.train, *phrases.test):
                unknown = slots(phrase) - PLAYER_SLOTS
                if unknown:
                    raise ValueError(f"act {act!r}: unknown slot {sorted(unknown)} in {phrase!r}")
            shared = {p.casefold() for p in phrases.train} & {p.casefold() for p in phrases.test}
            if shared:
                raise ValueError(f"act {act!r}: {sorted(shared)[0]!r} is in train and test")
        return self


class PurposePhrases(Record):
    """`purposes.yaml`: noun phrases by item tag."""

    purposes: dict[str, Phrases]


class MerchantPhrases(Record):
    """`merchant.yaml`: spoken lines by kind of answer; numbers and lists as placeholders."""

    states: dict[str, Phrases]

    @model_validator(mode="after")
    def _lines_have_no_numbers(self) -> MerchantPhrases:
        for kind, phrases in self.states.items():
            for line in phrases.train:
                unknown = placeholders.used(line) - set(placeholders.ALL)
                if unknown or any(c.isdigit() for c in line):
                    raise ValueError(f"{kind}: digits or unknown placeholder in {line!r}")
        return self


_USABLE: dict[tuple[str, Split, frozenset[str]], tuple[str, ...]] = {}


class Phrasebook(Record):
    """All phrases of the generator."""

    player: dict[str, Phrases]
    purposes: dict[str, Phrases]
    merchant: dict[str, Phrases]

    def say(self, act: str, split: Split, rng: random.Random, **values: str) -> str:
        """A phrase of `act` with its slots filled. Only phrases whose slots have values are drawn.

        Raises KeyError for an unknown act.
        """
        key = (act, split, frozenset(values))
        usable = _USABLE.get(key)
        if usable is None:
            usable = tuple(p for p in self.player[act].of(split) if slots(p) <= key[2])
            if not usable:
                raise KeyError(f"no {split} phrase of {act!r} can be filled from {sorted(values)}")
            _USABLE[key] = usable
        return rng.choice(usable).format(**values)

    def line(self, kind: str, rng: random.Random) -> str:
        """A merchant's line of that kind, placeholders unfilled."""
        return rng.choice(self.merchant[kind].train)


@cache
def load_phrasebook(root: Path = PHRASES) -> Phrasebook:
    """Read and check the phrase files. Raises HaggleError naming file and field."""
    return Phrasebook(
        player=load_config(root / "player.yaml", PlayerPhrases).acts,
        purposes=load_config(root / "purposes.yaml", PurposePhrases).purposes,
        merchant=load_config(root / "merchant.yaml", MerchantPhrases).states,
    )
