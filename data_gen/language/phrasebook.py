"""Phrases by act, voice, purpose and situation, split into train and test; see `phrases/`.

A player's phrase may hold alternatives (`[could|can] you add {items}`): it stands for all of its
expansions. `plain` phrases suit every voice, the others one voice only.
"""

from __future__ import annotations

import random
import re
import string
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from data_gen.acts import ACTS
from haggle.core.config import Record, load_config
from haggle.core.errors import HaggleError, nearest
from haggle.trade.said import merchant_lines

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")
PHRASES = Path(__file__).parents[1] / "phrases"
PLAYER_SLOTS = frozenset(
    "item items line other qty price percent amount purpose merchant currency ordinal".split()
)  # fmt: skip
PLAIN = "plain"
MAX_EXPANSIONS = 400
OWN_VOICE = 0.45  # share of phrases that are of the voice's own where it has some

_ALTERNATIVES = re.compile(r"\[([^\[\]]*)\]")


def slots(phrase: str) -> frozenset[str]:
    """Names of the `{slots}` of a phrase."""
    named = string.Formatter().parse(phrase)
    return frozenset(name for _, name, _, _ in named if name is not None)


def expansions(phrase: str) -> tuple[str, ...]:
    """Every wording a phrase with alternatives stands for.

    Raises ValueError for brackets that do not pair or for more than `MAX_EXPANSIONS` wordings.
    """
    parts = _ALTERNATIVES.split(phrase)
    if any(c in part for part in parts[::2] for c in "[]"):
        raise ValueError(f"brackets do not pair in {phrase!r}")
    choices = [p.split("|") if i % 2 else [p] for i, p in enumerate(parts)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MAX_EXPANSIONS:
        raise ValueError(f"more than {MAX_EXPANSIONS} wordings in {phrase!r}")
    return tuple(re.sub(r"\s+", " ", "".join(c)).strip() for c in product(*choices))


class Phrases(Record):
    """Train and test phrasings of one purpose."""

    train: list[str]
    test: list[str] = []

    def of(self, split: Split) -> list[str]:
        """The phrasings of a split."""
        return self.train if split == "train" else self.test


class ActPhrases(Record):
    """Train and test phrases of one act by voice."""

    train: dict[str, list[str]]
    test: dict[str, list[str]] = {}

    def of(self, split: Split) -> dict[str, list[str]]:
        """The phrases of a split by voice."""
        return self.train if split == "train" else self.test


class PlayerPhrases(Record):
    """A file of `player/`: phrases by act."""

    acts: dict[str, ActPhrases]

    @model_validator(mode="after")
    def _phrases_are_well_formed(self) -> PlayerPhrases:
        for act, phrases in self.acts.items():
            seen: dict[str, Split] = {}
            for split in SPLITS:
                for voice, lines in phrases.of(split).items():
                    for phrase in lines:
                        unknown = slots(phrase) - PLAYER_SLOTS
                        if unknown:
                            names = ", ".join(sorted(unknown))
                            raise ValueError(
                                f"act {act!r}, {voice}: unknown slot {names!r} in {phrase!r}"
                            )
                        for wording in expansions(phrase):
                            if seen.setdefault(wording.casefold(), split) != split:
                                raise ValueError(f"act {act!r}: {wording!r} is in train and test")
        return self


class PurposePhrases(Record):
    """`purposes.yaml`: noun phrases by item tag."""

    purposes: dict[str, Phrases]


class Phrasebook(Record):
    """All phrases of the generator."""

    player: dict[str, ActPhrases]
    purposes: dict[str, Phrases]
    merchant: dict[str, dict[str, list[str]]]

    @cached_property
    def _usable(self) -> dict[tuple[object, ...], tuple[tuple[str, ...], ...]]:
        return {}

    @cached_property
    def _expanded(self) -> dict[str, tuple[tuple[str, frozenset[str]], ...]]:
        return {}

    def wording(
        self,
        act: str,
        split: Split,
        rng: random.Random,
        voice: str = PLAIN,
        given: frozenset[str] = frozenset(),
        must: frozenset[str] = frozenset(),
    ) -> str:
        """A wording of `act` as `voice` puts it, slots unfilled.

        Its slots are all in `given`, and those of `must` occur. Raises KeyError for an unknown act,
        or when no phrase fits.
        """
        own = self._lines(act, split, voice, must, given) if voice != PLAIN else ()
        lines = self._lines(act, split, PLAIN, must, given)
        if own and (not lines or rng.random() < OWN_VOICE):
            lines = own
        if not lines:
            raise KeyError(f"no {split} phrase of {act!r} can be filled from {sorted(given)}")
        return rng.choice(rng.choice(lines))

    def _lines(
        self, act: str, split: Split, voice: str, must: frozenset[str], given: frozenset[str]
    ) -> tuple[tuple[str, ...], ...]:
        """Usable wordings by phrase, so that a phrase of many wordings weighs no more."""
        key = (act, split, voice, must, given)
        lines = self._usable.get(key)
        if lines is None:
            found = []
            for phrase in self.player[act].of(split).get(voice, ()):
                usable = tuple(w for w, used in self._wordings(phrase) if must <= used <= given)
                if usable:
                    found.append(usable)
            lines = self._usable[key] = tuple(found)
        return lines

    def _wordings(self, phrase: str) -> tuple[tuple[str, frozenset[str]], ...]:
        wordings = self._expanded.get(phrase)
        if wordings is None:
            wordings = tuple((w, slots(w)) for w in expansions(phrase))
            self._expanded[phrase] = wordings
        return wordings

    def line(self, kind: str, rng: random.Random, manner: str = PLAIN) -> str:
        """A merchant's line of that kind and manner, placeholders unfilled."""
        manners = self.merchant[kind]
        own = manners.get(manner)
        if own and rng.random() < OWN_VOICE:
            return rng.choice(own)
        return rng.choice(manners[PLAIN])


@cache
def load_phrasebook(root: Path = PHRASES) -> Phrasebook:
    """Read and check the phrase files. Raises HaggleError naming file and field."""
    player: dict[str, ActPhrases] = {}
    for path in sorted((root / "player").glob("*.yaml")):
        for act, phrases in load_config(path, PlayerPhrases).acts.items():
            if act not in ACTS:
                raise HaggleError(f"unknown act {act!r}", where=str(path), hint=nearest(act, ACTS))
            if act in player:
                raise HaggleError(f"act {act!r} stands in another file too", where=str(path))
            player[act] = phrases
    if missing := sorted(ACTS - player.keys()):
        what = f"no phrases for {', '.join(missing[:5])}" + (", ..." if missing[5:] else "")
        raise HaggleError(what, where=str(root / "player"), hint="every act needs phrases")
    return Phrasebook(
        player=player,
        purposes=load_config(root / "purposes.yaml", PurposePhrases).purposes,
        merchant=merchant_lines(),
    )
