"""What `the second one` or `the cheaper of them` points at among the things in view."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from haggle.language.english.vocabulary import HOLLOW
from haggle.trade.world import Item

ORDINALS = {
    word: place
    for place, names in enumerate(
        ("first 1st former", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th", "sixth 6th")
    )
    for word in names.split()
}
SIZES = {  # words that tell two of a kind apart by size
    word: place
    for place, words in enumerate(
        (
            "small smaller smallest little littler littlest tiny mini",
            "large larger largest big bigger biggest great grand huge giant",
            "short shorter shortest",
            "long longer longest",
        )
    )
    for word in words.split()
}
_LAST = frozenset({"last", "latter", "final"})
_LOW = frozenset("cheap cheaper cheapest".split())
_HIGH = frozenset("dear dearer dearest pricier priciest costlier costliest".split())
_FINE = frozenset("better finer fancier fanciest nobler".split())  # of two, what costs more
ONES = frozenset("one ones thing things item items kind kinds sort sorts line entry option".split())


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a line, in lower case, and where it stands in the text."""

    text: str
    start: int
    end: int


def extreme(items: Iterable[Item], cheaper: bool) -> Item | None:
    """The cheapest or dearest of several; None where two share the price."""
    priced = sorted(items, key=lambda i: i.price or 0, reverse=not cheaper)
    if len(priced) < 2 or priced[0].price == priced[1].price:
        return None
    return priced[0]


def of_size(word: str, items: Iterable[Item]) -> Item | None:
    """The only one of several that has such a size in its name: the large one for `big`."""
    size = SIZES.get(word)
    sized = [
        item
        for item in items
        if any(
            SIZES.get(part, -1) == size for part in re.findall(r"[a-z]+", item.item_name.lower())
        )
    ]
    return sized[0] if len(sized) == 1 else None


def of_one_kind(item: Item, items: Iterable[Item]) -> tuple[Item, ...]:
    """Those of several that have the name of one but for words of size, itself among them; none
    where there is no other."""
    rest = _without_size(item)
    alike = tuple(other for other in items if _without_size(other) == rest)
    return alike if len(alike) > 1 else ()


def _without_size(item: Item) -> tuple[str, ...]:
    words = re.findall(r"[a-z]+", item.item_name.lower())
    return tuple(word for word in words if word not in SIZES)


def superlative(words: list[Word], at: int, earlier: bool | None, of_two: bool) -> bool | None:
    """Whether the words so far ask for the cheaper (True) or the dearer of what comes next."""
    word = words[at].text
    if word in _LOW or word in _HIGH:
        return word in _LOW
    if word in _FINE and of_two and at and words[at - 1].text == "the":
        return False
    if word in {"expensive", "pricey", "costly", "priced"} and at:
        before = words[at - 1].text
        if before in {"least", "less", "lower", "lowest", "most", "more", "higher", "highest"}:
            return before in {"least", "less", "lower", "lowest"}
    return earlier if word in HOLLOW or word in ONES else None


def pointed_at(
    words: list[Word], shown: list[Item], cheaper: bool | None, the: bool
) -> tuple[Item | None, int]:
    """What `the second one` or `the cheaper one` points at among the items shown last."""
    if len(shown) < 2:
        return None, 0
    word = words[0].text
    after = words[1].text if len(words) > 1 else ""
    followed = after in ONES
    alone = len(words) == 1 and (the or words[0].start == 0)
    counted = followed or alone or (the and after in {"of", "you"})
    if word in ONES and cheaper is not None:
        return extreme(shown, cheaper), 1
    if word in _LOW | _HIGH and alone and word not in {"cheap", "dear"}:
        return extreme(shown, word in _LOW), 1
    used = 2 if followed else 1
    if word in ORDINALS and counted and ORDINALS[word] < len(shown):
        return shown[ORDINALS[word]], used
    if word in _LAST and followed and the:
        return shown[-1], used
    return None, 0
