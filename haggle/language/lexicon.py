"""The lexicon of a language: phrases, word lists and spellings, ready to read lines with."""

from __future__ import annotations

import gc
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

from haggle.core.config import Record, parse, read_mapping
from haggle.language.chosen import EVIDENCE
from haggle.language.phrases import Grammar
from haggle.language.tokens import Token, asides, slips, tokens

SLOTS = {"price", "paid", "any", "goods", "count", "name"}
HEDGES = ("condition", "delay", "change", "refusal")  # doubts that limit what they stand beside


class Lexicon(Record):
    """The files of `english/evidence` as one; its README says what the roles and lists are for."""

    sets: dict[str, list[str]]
    roles: dict[str, list[str]]
    gestures: list[str]
    gestures_against: list[str]
    leading: list[str]
    hanging: list[str]
    halting: list[str]
    intensifying: list[str]
    tags: list[str]
    speakers: list[str]
    joints: list[list[str]]
    doubts: dict[str, list[str]]
    hedging: list[str]
    leaving: list[str]
    abuse: list[str]
    you: list[str]
    calling_off: list[str]
    replacing: list[str]
    requesting: list[str]
    spellings: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Either:
    """Words that are in one of two collections."""

    first: Collection[str]
    second: Collection[str]

    def __contains__(self, word: object) -> bool:
        return word in self.first or word in self.second


@dataclass(frozen=True)
class Reader:
    """A lexicon with its grammar. `gestures` are words that may stand in an action, `mended` what
    words with a slip of a letter mean."""

    lexicon: Lexicon
    grammar: Grammar
    gestures: frozenset[str]
    known: frozenset[str]
    joints: frozenset[tuple[str, str]]
    hedges: frozenset[str]
    mended: dict[str, str]

    def words(self, line: str, names: Collection[str] = ()) -> list[Token]:
        """The words of a line in canonical spelling; `names` need no mending."""
        found = tokens(line, self.lexicon.spellings, _Either(self.known, names))
        return asides(self._paused([self._mended(token, names) for token in found]))

    def _paused(self, found: list[Token]) -> list[Token]:
        """The tokens, where dots between a sound of hesitation and a bare yes are a pause: `oh...
        yes`. Other dots stay what they are: `well... fine` is no plain word."""
        lexicon, marked = self.lexicon, list(found)
        for at in range(1, len(found) - 1):
            before, token, behind = found[at - 1 : at + 2]
            paused = before.text in lexicon.halting and behind.text in lexicon.sets["bare_yes"]
            if token.text == "..." and paused:
                marked[at] = replace(token, kind="comma")
        return marked

    def _mended(self, token: Token, names: Collection[str]) -> Token:
        if token.kind != "word" or token.text in self.known or token.text in names:
            return token
        meant = self.mended.get(token.text)
        return replace(token, text=meant) if meant else token


@cache
def reader() -> Reader:
    """The reader of English. Raises HaggleError naming a file with a mistake."""
    collecting = gc.isenabled()
    gc.disable()  # a hundred thousand objects that all stay: looking for waste doubles the time
    try:
        return _reader()
    finally:
        if collecting:
            gc.enable()


def _reader() -> Reader:
    lexicon = _lexicon()
    grammar = Grammar(lexicon.roles, lexicon.sets, SLOTS)
    agreeing = [text for role in ("affirm", "plain", "bare") for text in lexicon.roles[role]]
    agreeing += [entry for name in ("yes", "done", "ok") for entry in lexicon.sets[name]]
    gestures = frozenset(lexicon.gestures)
    spoken = {word for entry in lexicon.spellings.values() for word in entry.split()}
    return Reader(
        lexicon=lexicon,
        grammar=grammar,
        gestures=gestures,
        joints=frozenset(
            pair for one, two in lexicon.joints for pair in product(one.split(), two.split())
        ),
        hedges=frozenset(lexicon.hedging).union(*(lexicon.doubts[kind] for kind in HEDGES)),
        known=frozenset(grammar.words | gestures | spoken),
        mended=slips({word for text in agreeing for word in re.findall(r"[a-z]{4,}", text)}),
    )


def _lexicon() -> Lexicon:
    whole: dict[str, Any] = {}
    for path in sorted(EVIDENCE.glob("*.yaml")):
        whole = _joined(whole, read_mapping(path))
    return parse(whole, Lexicon, str(EVIDENCE))


def _joined(first: Any, second: Any) -> Any:
    """Two files as one: mappings and lists of the same key are put together."""
    if isinstance(first, dict):
        common = {key: _joined(first[key], second[key]) for key in first.keys() & second.keys()}
        return {**first, **second, **common}
    return f"{first} {second}" if isinstance(first, str) else [*first, *second]
