"""Entity linking: what a player's line names, marked behind the words that name it.

    swap the axe for two dozen heal pots
    swap the axe {Sharp Axe} for two dozen {24} heal pots {Healing Potion}

Finding the listed name behind a spelling is lookup, which code does exactly and a small model does
badly; what the player wants done with it is left to the model. Marks are suggestions: `{A / B}`
says that words fit two or three names, `{?A}` that A is known but not for sale, and words that
fit nothing, or more than three names, stay bare.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import inflection
from rapidfuzz.distance import OSA

from haggle.numerals import UNITS, read_number
from haggle.wire import UNLISTED
from haggle.world import Item, World

MAX_FITTING = 3  # names a mark may hold
MAX_RUN = 6  # words a mention may have
EXACT, PREFIX, TYPO = 1.0, 0.9, 0.8
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*k?\b|[^\W\d_]+|\d+")
_HOLLOW = frozenset("a an and at by for from in of on or s st the to with".split())
_ORDINALS = {"first": 0, "1st": 0, "former": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2}
_LAST = frozenset({"last", "latter", "final"})
_LOW = frozenset("cheap cheaper cheapest".split())
_HIGH = frozenset("dear dearer dearest pricier priciest costliest fanciest".split())
_ONES = frozenset("one ones thing things item items".split())


@cache
def common_words() -> frozenset[str]:
    """Everyday words, which are never taken for a misspelt or shortened name."""
    text = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int


@cache
def singular(word: str) -> str:
    """A word in the singular, casefolded."""
    word = word.casefold()
    if len(word) < 4 or word.endswith("ss"):
        return word
    single: str = inflection.singularize(word)
    return word.removesuffix("s") if single.endswith("is") else single  # axes: axe, not axis


def _words_of(name: str) -> tuple[str, ...]:
    words = (singular(word) for word in re.findall(r"[^\W_]+", name))
    return tuple(word for word in words if word not in _HOLLOW)


def without_marks(text: str) -> str:
    """A line whose own braces are brackets, so that nothing typed can pose as a mark."""
    return text.replace("{", "(").replace("}", ")")


class Linker:
    """Finds the names of one world in what players type. Made once a session."""

    def __init__(self, world: World) -> None:
        self._order = {item.item_id: number for number, item in enumerate(world.items)}
        self._known_only = {item.item_id for item in world.items if item.price is None}
        self._names = {item.item_id: _words_of(item.item_name) for item in world.items}
        self._heads = {
            item.item_id: (_words_of(item.item_name.split(" (")[0]) or (item.item_name,))[-1]
            for item in world.items
        }
        self._dull = frozenset(map(singular, _words_of(world.currency)))
        self._vocabulary: dict[str, list[str]] = {}
        for item_id, words in self._names.items():
            joined = [a + b for a, b in pairwise(words)]
            for word in {*words, *joined}:
                self._vocabulary.setdefault(word, []).append(item_id)
        self._scores: dict[str, dict[str, tuple[float, bool]]] = {}

    def link(self, text: str, world: World, cart: Collection[str], shown: Iterable[str]) -> str:
        """`text` with marks. `cart` holds item ids, `shown` the names in view, in order."""
        pieces, at = [], 0
        for position, mark in self._marks(text, world, cart, tuple(shown)):
            told = mark if isinstance(mark, str) else " / ".join(map(_name, mark))
            pieces += [text[at:position], f" {{{told}}}"]
            at = position
        return "".join(pieces) + text[at:]

    def named(
        self, text: str, world: World, cart: Collection[str], shown: Iterable[str]
    ) -> frozenset[str]:
        """Ids of the items that `text` names, each by words that fit no other."""
        marks = (mark for _, mark in self._marks(text, world, cart, tuple(shown)))
        return frozenset(m[0].item_id for m in marks if not isinstance(m, str) and len(m) == 1)

    def _marks(
        self, text: str, world: World, cart: Collection[str], shown: tuple[str, ...]
    ) -> Iterator[tuple[int, str | list[Item]]]:
        """Marks in the order of the text, each with its place: digits, or the items that fit."""
        words = [_Word(m[0].casefold(), m.start(), m.end()) for m in _TOKEN.finditer(text)]
        known = [item for item in map(world.find, shown) if item is not None]
        near = {*cart, *(item.item_id for item in known)}
        cheaper: bool | None = None  # a superlative that the next mention is chosen by
        loose: _Word | None = None  # a name's word that named nothing: "elven" before "sword"
        at = 0
        while at < len(words):
            number, used = read_number([word.text for word in words[at:]])
            if used and not (cheaper is not None and words[at].text in _ONES):
                if number:
                    yield words[at + used - 1].end, number
                at += used
                continue
            ids, used = self._mention(text, words[at:])
            if used and loose is not None and self._of_others(loose, words[at], ids):
                ids = []
            loose = None
            if used:
                items = _fitting([world.by_id[i] for i in ids if i in world.by_id], near, cheaper)
                if items:
                    yield words[at + used - 1].end, items
                cheaper = None
                at += used
                continue
            the = at > 0 and words[at - 1].text == "the"
            pointed, used = _pointed_at(words[at:], known, cheaper, the)
            if pointed is not None:
                yield words[at + used - 1].end, [pointed]
            cheaper = _superlative(words, at, cheaper)
            loose = words[at]
            at += max(1, used)

    def _of_others(self, word: _Word, following: _Word, ids: Collection[str]) -> bool:
        """Whether the word right before a mention belongs to the names of other items only."""
        owners = self._vocabulary.get(singular(word.text), ())
        return bool(owners) and following.start == word.end + 1 and not set(owners) & set(ids)

    def _mention(self, text: str, words: list[_Word]) -> tuple[list[str], int]:
        """The items that the longest run of words at the start can mean, and its length."""
        best: tuple[list[str], int] = ([], 0)
        fits: dict[str, float] = {}
        covered: dict[str, set[str]] = {}
        strong: set[str] = set()
        before = ""
        for length, word in enumerate(words[:MAX_RUN], start=1):
            if length > 1 and re.search(r"[.,;:!?]", text[words[length - 2].end : word.start]):
                break
            if word.text in _HOLLOW:
                if length == 1:
                    break
                continue
            found = self._score(word.text)
            joined = self._score(before + singular(word.text), exact=True) if before else {}
            here: dict[str, float] = {}
            for item_id in found.keys() | joined.keys():
                if length > 1 and item_id not in fits:
                    continue
                score, is_strong = max(
                    found.get(item_id, (0.0, False)), joined.get(item_id, (0.0, False))
                )
                here[item_id] = fits.get(item_id, 0.0) + score
                if is_strong:
                    strong.add(item_id)
                covered.setdefault(item_id, set()).add(singular(word.text))
            if not here:
                if length == 1 and singular(word.text) and len(words) > 1:
                    pair = self._score(singular(word.text) + singular(words[1].text), exact=True)
                    if pair and words[1].start - word.end == 1:
                        return list(pair), 2
                break
            fits, before = here, singular(word.text)
            chosen = self._chosen(fits, strong, covered)
            if chosen:
                best = (chosen, length)
        return best

    def _chosen(
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
        if item_id in self._known_only:
            return self._heads[item_id] == word and not common
        return self._heads[item_id] == word or not common

    def _score(self, word: str, *, exact: bool = False) -> dict[str, tuple[float, bool]]:
        """The items a word can belong to: how well, and whether it can name them by itself."""
        key = singular(word)
        if exact:
            return {i: (EXACT, True) for i in self._vocabulary.get(key, ())}
        cached = self._scores.get(key)
        if cached is None:
            cached = self._scores[key] = self._look_up(word.casefold(), key)
        return cached

    def _look_up(self, word: str, key: str) -> dict[str, tuple[float, bool]]:
        if key in _HOLLOW or key in self._dull or word in UNITS:
            return {}
        common = word in common_words() or key in common_words()
        direct = self._vocabulary.get(key) or self._vocabulary.get(word)
        if direct:
            return {i: (EXACT, self._names_it(i, key, common)) for i in direct}
        if common or len(key) < 3 or not key.isalpha():
            return {}
        found: dict[str, tuple[float, bool]] = {}
        for other, ids in self._vocabulary.items():
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


def _fitting(items: list[Item], near: Collection[str], cheaper: bool | None) -> list[Item]:
    """The items a mark holds: those at hand go before others; none when too many fit."""
    if len(items) > 1:
        items = [item for item in items if item.item_id in near] or items
    if len(items) > 1:
        items = [item for item in items if item.for_sale] or items
    if len(items) > 1 and cheaper is not None:
        chosen = _extreme(items, cheaper)
        items = [chosen] if chosen else items
    return items if len(items) <= MAX_FITTING else []


def _extreme(items: Iterable[Item], cheaper: bool) -> Item | None:
    """The cheapest or dearest of several; None where two share the price."""
    priced = sorted(items, key=lambda i: i.price or 0, reverse=not cheaper)
    if len(priced) < 2 or priced[0].price == priced[1].price:
        return None
    return priced[0]


def _superlative(words: list[_Word], at: int, earlier: bool | None) -> bool | None:
    """Whether the words so far ask for the cheaper (True) or the dearer of what comes next."""
    word = words[at].text
    if word in _LOW or word in _HIGH:
        return word in _LOW
    if word in {"expensive", "pricey", "costly"} and at:
        before = words[at - 1].text
        if before in {"least", "less", "most", "more"}:
            return before in {"least", "less"}
    return earlier if word in _HOLLOW or word in _ONES else None


def _pointed_at(
    words: list[_Word], shown: list[Item], cheaper: bool | None, the: bool
) -> tuple[Item | None, int]:
    """What `the second one` or `the cheaper one` points at among the items shown last."""
    if len(shown) < 2:
        return None, 0
    word = words[0].text
    followed = len(words) > 1 and words[1].text in _ONES
    alone = the and len(words) == 1
    if word in _ONES and cheaper is not None:
        return _extreme(shown, cheaper), 1
    if word in _LOW | _HIGH and alone and word not in {"cheap", "dear"}:
        return _extreme(shown, word in _LOW), 1
    used = 2 if followed else 1
    if word in _ORDINALS and (followed or alone) and _ORDINALS[word] < len(shown):
        return shown[_ORDINALS[word]], used
    if word in _LAST and followed and the:
        return shown[-1], used
    return None, 0


def _name(item: Item) -> str:
    return item.item_name if item.for_sale else UNLISTED + item.item_name
