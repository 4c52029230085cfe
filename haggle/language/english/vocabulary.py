"""The words of one shop's names: what a word that a player types can belong to.

A word is compared in the singular, and also as the beginning of a name's word, with an ending that
is not its own, or with letters wrong. Everyday words never count as misspelt or shortened names.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

import inflection
from rapidfuzz.distance import OSA

from haggle.language.english.numerals import UNITS
from haggle.language.english.synonyms import MAX_WORDS, other_names
from haggle.trade.world import World

EXACT, PREFIX, TYPO = 1.0, 0.9, 0.8
TOKEN = re.compile(r"\d(?:st|nd|rd|th)\b|\d+(?:[.,]\d+)*k?\b|[^\W\d_]+|\d+")
HOLLOW = frozenset("a an and at by for from in of on or s st the to with".split())
Scores = dict[str, tuple[float, bool]]
_IN_F = (  # how words end whose singular is in f or fe
    *(
        (f"{stem}ves", "f")
        for stem in "cal dwar el hal hoo lea loa scar shea thie whar wol".split()
    ),
    *((f"{stem}ves", "fe") for stem in "kni wi".split()),
)
CONTAINERS = frozenset(
    "bag box bottle bundle can case crate jar kit pack packet pair set tin".split()
)
_MEASURES = CONTAINERS | frozenset(
    "bale barrel bowl bunch cask cup flask jug loaf piece pot pouch roll sack sheet slice string "
    "vial".split()
)


@cache
def common_words() -> frozenset[str]:
    """Everyday words, which are never taken for a misspelt or shortened name."""
    text = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


@lru_cache(maxsize=65536)
def singular(word: str) -> str:
    """A word in the singular, casefolded."""
    word = word.casefold()
    if len(word) < 4 or word.endswith("ss"):
        return word
    if word.endswith("ves"):  # inflection would make glofe of gloves
        return next((word[:-3] + end for stem, end in _IN_F if word.endswith(stem)), word[:-1])
    single: str = inflection.singularize(word)
    return word.removesuffix("s") if single.endswith("is") else single  # axes: axe, not axis


def _words_of(name: str) -> tuple[str, ...]:
    words = (singular(match[0]) for match in TOKEN.finditer(name))
    return tuple(word for word in words if word not in HOLLOW)


def _also_called(name: str) -> set[str]:
    """What else a thing of this name is called, by the noun that it ends in, or has before `of`."""
    core = name.split(" (")[0].casefold()
    first, _, content = core.partition(" of ")
    parts = [first]
    if content and singular(first.split()[-1]) in _MEASURES:  # a loaf of bread is bread
        parts.append(content)
    found: set[str] = set()
    for part in parts:
        words = [singular(match[0]) for match in TOKEN.finditer(part) if match[0] != "s"]
        for length in range(1, MAX_WORDS + 1):
            found |= other_names().get(" ".join(words[-length:]), frozenset())
    return found


class Vocabulary:
    """The words of the names of one world, and of its currency."""

    def __init__(self, world: World) -> None:
        self._order = {item.item_id: number for number, item in enumerate(world.items)}
        self._known_only = {item.item_id for item in world.items if item.price is None}
        self._names = {item.item_id: _words_of(item.item_name) for item in world.items}
        self._heads = {
            item.item_id: (_words_of(item.item_name.split(" (")[0]) or (item.item_name,))[-1]
            for item in world.items
        }
        self.dull = frozenset(map(singular, _words_of(world.currency)))
        self._owners: dict[str, list[str]] = {}
        for item_id, words in self._names.items():
            joined = [a + b for a, b in pairwise(words)]
            for word in {*words, *joined}:
                self._owners.setdefault(word, []).append(item_id)
        self._scores: dict[str, Scores] = {}
        self._called: dict[str, list[str]] = {}
        for item in world.inventory:
            for name in sorted(_also_called(item.item_name)):
                self._called.setdefault(name, []).append(item.item_id)

    def called(self, said: Collection[str]) -> tuple[str, ...]:
        """Ids of the goods that people also call by these words, though their names have others."""
        name = " ".join(map(singular, said))
        return () if name in self.dull else tuple(self._called.get(name, ()))

    def owners(self, word: str) -> tuple[str, ...]:
        """Ids of the items whose names have this word."""
        return tuple(self._owners.get(singular(word), ()))

    def joined(self, word: str, following: str) -> tuple[str, ...]:
        """Ids of the items in whose names the two words stand side by side."""
        pair = (singular(word), singular(following))
        owned = self._owners.get("".join(pair), ())
        return tuple(i for i in owned if pair in pairwise(self._names[i]))

    def whole(self, item_id: str, said: Collection[str]) -> bool:
        """Whether the words said (in the singular) are all that a name has."""
        return set(self._names[item_id]) <= set(said)

    def chosen(
        self, fits: dict[str, float], strong: set[str], covered: dict[str, set[str]]
    ) -> list[str]:
        """Of the items that fit, the best; whole names go before parts of longer ones."""
        usable = {i: score for i, score in fits.items() if i in strong}
        if not usable:
            return []
        top = max(usable.values())
        best = [i for i, score in usable.items() if score >= top - 0.01]
        whole = [i for i in best if set(self._names[i]) <= covered[i]]
        return sorted(whole or best, key=self._order.__getitem__)

    def _names_it(self, item_id: str, word: str, common: bool) -> bool:
        """Whether this word of a name can stand for the whole: nouns can, everyday words cannot."""
        if len(word) < 2 or word.isdigit():
            return False
        if item_id in self._known_only:
            return self._heads[item_id] == word and not common
        return self._heads[item_id] == word or not common

    def score(self, word: str, *, exact: bool = False) -> Scores:
        """The items a word can belong to: how well, and whether it can name them by itself."""
        key = singular(word)
        if exact:
            return {i: (EXACT, True) for i in self._owners.get(key, ())}
        said = word.casefold()
        cached = self._scores.get(said)
        if cached is None:
            cached = self._scores[said] = self._look_up(said, key)
        return cached

    def _look_up(self, word: str, key: str) -> Scores:
        if key in HOLLOW or key in self.dull or word in UNITS:
            return {}
        common = word in common_words() or key in common_words()
        direct = self._owners.get(key) or self._owners.get(word)
        if direct:
            return {i: (EXACT, self._names_it(i, key, common)) for i in direct}
        if common or len(key) < 3 or not key.isalpha():
            return {}
        found: Scores = {}
        for other, ids in self._owners.items():
            score = _likeness(key, other)
            if score:
                for item_id in ids:
                    pair = (score, self._names_it(item_id, other, False))
                    found[item_id] = max(found.get(item_id, (0.0, False)), pair)
        top = max((score for score, _ in found.values()), default=0.0)
        return {i: pair for i, pair in found.items() if pair[0] == top}


def _likeness(word: str, other: str) -> float:
    """How much a word looks like a name's word: shortened, lengthened or mistyped; 0 for not."""
    longer = len(word) - len(other)
    if other.startswith(word) or (len(other) >= 5 and longer <= 2 and word.startswith(other)):
        return PREFIX
    if len(word) < 5 or len(other) < 5 or word[0] != other[0]:
        return 0.0
    allowed = 1 if min(len(word), len(other)) < 8 else 2
    return TYPO if OSA.distance(word, other, score_cutoff=allowed) <= allowed else 0.0
