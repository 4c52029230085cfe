"""Choosing among things: by size, price, or place in what is shown (`the second one`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from haggle.language.english.cues import CUES
from haggle.language.english.line import Line
from haggle.language.english.numbers import UNITS
from haggle.language.reading import Thing

MAX_FITTING = 3  # candidates a mention may have
SIZES = CUES.sizes
_LARGE = {SIZES["large"], SIZES["long"]}
_SUPERLATIVES = CUES.cheap | CUES.dear | CUES.better | CUES.priced


def fitting(
    things: Sequence[Thing], near: Collection[str], cheaper: bool | None
) -> tuple[Thing, ...]:
    """The candidates of a mention: those at hand go before others, those for sale before others;
    none when too many fit."""
    if len(things) > 1:
        things = [thing for thing in things if thing.id in near] or things
        things = [thing for thing in things if thing.for_sale] or things
        chosen = None if cheaper is None else extreme(things, cheaper)
        things = [chosen] if chosen else things
    return tuple(things) if len(things) <= MAX_FITTING else ()


def extreme(things: Iterable[Thing], cheaper: bool) -> Thing | None:
    """The cheapest or dearest of several; None where two share the price."""
    priced = sorted(things, key=lambda thing: thing.price or 0, reverse=not cheaper)
    if len(priced) < 2 or priced[0].price == priced[1].price:
        return None
    return priced[0]


@lru_cache(maxsize=65536)
def _sized(name: str) -> tuple[frozenset[int], tuple[str, ...]]:
    """The sizes that a name has, and its other words."""
    words = re.findall(r"[a-z]+", name.lower())
    sizes = frozenset(SIZES[word] for word in words if word in SIZES)
    return sizes, tuple(word for word in words if word not in SIZES)


def of_size(word: str, things: Iterable[Thing]) -> Thing | None:
    """The only one of several that has such a size in its name: the large one for `big`."""
    things = list(things)
    sized = [thing for thing in things if SIZES.get(word) in _sized(thing.name)[0]]
    return sized[0] if len(sized) == 1 else _of_measure(word, things)


def _of_measure(word: str, things: Sequence[Thing]) -> Thing | None:
    """The one with the largest or the smallest measure, where names differ in it alone: the big bag
    is the four-litre bag, not the two-litre bag."""
    told = [_measured(thing.name) for thing in things]
    if word not in SIZES or len(things) < 2 or len({rest for _, rest in told}) > 1:
        return None
    numbers = [number for number, _ in told]
    if not all(numbers) or len(set(numbers)) < len(numbers):
        return None
    best = max(numbers) if SIZES[word] in _LARGE else min(numbers)
    return things[numbers.index(best)]


@lru_cache(maxsize=65536)
def _measured(name: str) -> tuple[int, tuple[str, ...]]:
    """The one number of a name, 0 where it has none or several, and its other words."""
    words = re.findall(r"\d+|[a-z]+", name.lower())
    found = [int(word) if word.isdecimal() else UNITS.get(word, 0) for word in words]
    numbers = [number for number in found if number]
    rest = tuple(word for word, number in zip(words, found, strict=True) if not number)
    return (numbers[0] if len(numbers) == 1 else 0), rest


def like(shown: Iterable[Thing], things: Iterable[Thing]) -> list[Thing]:
    """The things that have a word of a shown one's name, other than one of size."""
    words = {word for thing in shown for word in _sized(thing.name)[1]}
    return [thing for thing in things if words & set(_sized(thing.name)[1])]


def such(word: str, things: Sequence[Thing]) -> Thing | None:
    """The only one of several that has a word in its name, or else in what describes it."""
    named = [thing for thing in things if word in thing.name.casefold().split()]
    found = named or [thing for thing in things if word in thing.said]
    return of_size(word, things) or (found[0] if len(found) == 1 else None)


def described(words: Iterable[str], things: Sequence[Thing]) -> Thing | None:
    """The only one of several whose description has the most of some words: the black ink."""
    shared = frozenset.intersection(*(frozenset(t.name.casefold().split()) for t in things))
    said = set(words) - shared
    hits = sorted((len(said & thing.said) for thing in things), reverse=True)
    if len(hits) < 2 or hits[0] == hits[1]:
        return None
    return next(thing for thing in things if len(said & thing.said) == hits[0])


def of_one_kind(named: Sequence[Thing], things: Iterable[Thing]) -> tuple[Thing, ...]:
    """What a word of size may choose from behind a mention: its candidates, or of a single one all
    things for sale that have its name but for words of size; none where there is no other."""
    if len(named) != 1:
        return tuple(named)
    rest = _sized(named[0].name)[1]
    alike = tuple(thing for thing in things if thing.for_sale and _sized(thing.name)[1] == rest)
    return alike if len(alike) > 1 else ()


def size_word(word: str, earlier: str) -> str:
    """The word of size that the words so far end in: `small`, `small ones`."""
    said = word in SIZES and word not in CUES.praise
    return word if said else earlier if word in CUES.sized_ones else ""


def stands_alone(line: Line, at: int, thing: Thing, named: bool) -> bool:
    """Whether a word of size stands for a thing: `the small one`, `the big, please`. Without a
    `the` it is a word of the thing's name, and such things were `named`, or it is all there is to
    the answer: `huge!` is a remark."""
    if line.said(at) in CUES.sized_ones:
        return True
    if not line.stops(at):
        return False
    before = line.said(at - 1)
    literal = line.said(at) in thing.name.casefold().split()
    return before == "the" or (literal and (not at or (named and before not in CUES.degrees)))


def superlative(line: Line, at: int, earlier: bool | None, of_two: bool) -> bool | None:
    """Whether the words so far ask for the cheaper (True) or the dearer of what comes next."""
    word, before = line.said(at), line.said(at - 1)
    if word in _SUPERLATIVES:
        if word in CUES.cheap or word in CUES.dear:
            return word in CUES.cheap
        if word in CUES.better and of_two and before == "the":
            return False
        if word in CUES.priced and before in CUES.less | CUES.more:
            return before in CUES.less
    return earlier if word in CUES.hollow or word in CUES.ones else None


def pointed_at(
    line: Line, at: int, shown: Sequence[Thing], cheaper: bool | None
) -> tuple[Thing | None, int]:
    """What `the second one` or `the cheaper one` points at among the things shown last, and how
    many words that takes."""
    if len(shown) < 2:
        return None, 0
    word, after, the = line.said(at), line.said(at + 1), line.said(at - 1) == "the"
    alone = not after and (the or line.words[at].start == 0)
    if word in CUES.ones and cheaper is not None:
        return extreme(shown, cheaper), 1
    if word in CUES.cheap | CUES.dear and alone and word not in {"cheap", "dear"}:
        return extreme(shown, word in CUES.cheap), 1
    used = 2 if after in CUES.ones else 1
    counted = used == 2 or alone or (the and after in {"of", "you"})
    if counted and CUES.ordinals.get(word, len(shown)) < len(shown):
        return shown[CUES.ordinals[word]], used
    if word in CUES.last and used == 2 and the:
        return shown[-1], used
    return None, 0
