"""What a player's words refer to, read once a turn, and whoever can read them.

A linker turns a line into a `Reading`: the things it mentions, how many of them, its other numbers,
and what it consents to. It knows no trade: what can be named is a `View` of things.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from haggle.core.text import clean_utterance
from haggle.language.evidence import Consent


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that can be named. `price` is of one piece; None where it was never for sale.
    `said` are the words that describe it, in lower case."""

    id: str
    name: str
    price: float | None = None
    for_sale: bool = False
    plural: str | None = None
    said: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Catalogue:
    """All things that can be named in one place, and the currency of their prices. Two are equal
    only where they are the same object, so that readings can be remembered by it."""

    things: tuple[Thing, ...]
    currency: str = ""

    @cached_property
    def by_id(self) -> dict[str, Thing]:
        """Every thing by its id."""
        return {thing.id: thing for thing in self.things}

    @cached_property
    def names(self) -> tuple[str, tuple[tuple[str, str, bool], ...]]:
        """What names are matched by, whatever is in stock: a key for what is derived from it."""
        known = ((thing.id, thing.name, thing.price is not None) for thing in self.things)
        return self.currency, tuple(known)


@dataclass(frozen=True, slots=True)
class View:
    """What a line may refer to: a catalogue, the ids at hand (a cart), and those in view, in
    order."""

    catalogue: Catalogue
    held: Collection[str] = ()
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mention:
    """Words that name something, at `start` to `end` of the line.

    Without candidates the words are `foreign`: they name a thing that is not in the catalogue.
    `uncountable` mentions have a quantity that nobody can have, such as minus three; `guessed` ones
    go by what such things are called, not by a name.
    """

    start: int
    end: int
    candidates: tuple[Thing, ...] = ()
    quantity: int | None = None
    uncountable: bool = False
    guessed: bool = False
    foreign: str = ""


@dataclass(frozen=True, slots=True)
class Number:
    """A number at `start` to `end`: its value where it is a whole one, and its digits where it is
    said in other words than plain ones."""

    start: int
    end: int
    value: int | None
    digits: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A line, its mentions, and the numbers that count none of them, in order. `consent` is None
    where nobody reads what a line agrees to."""

    line: str
    mentions: tuple[Mention, ...] = ()
    numbers: tuple[Number, ...] = ()
    consent: Consent | None = None

    def named(self, *, sure: bool = True) -> frozenset[str]:
        """Ids of what the line names by words that fit nothing else; without `sure`, also of what
        it may name."""
        return frozenset(
            thing.id
            for mention in self.mentions
            for thing in mention.candidates
            if not sure or (len(mention.candidates) == 1 and not mention.guessed)
        )

    def uncountable(self) -> frozenset[str]:
        """Ids of what the line names only in quantities that nobody can have."""
        ids: dict[bool, set[str]] = {True: set(), False: set()}
        for mention in self.mentions:
            ids[mention.uncountable].update(thing.id for thing in mention.candidates)
        return frozenset(ids[True] - ids[False])


def without_marks(text: str) -> str:
    """A line whose own braces are brackets, so that nothing typed can pose as a mark."""
    return text.replace("{", "(").replace("}", ")")


class Linker(Protocol):
    """Reads what a player typed."""

    def read(self, line: str, view: View) -> Reading:
        """The reading of a line as it was typed; positions are those of `Reading.line`."""
        ...

    def nearness(self, line: str, texts: Sequence[str]) -> list[float]:
        """How near each text is to a line in meaning, at most 1; none where nobody can tell."""
        ...


class NoLinker:
    """Reads nothing into a line: no mentions, no consent."""

    def read(self, line: str, view: View) -> Reading:
        return Reading(without_marks(clean_utterance(line)))

    def nearness(self, line: str, texts: Sequence[str]) -> list[float]:
        """None."""
        return []
