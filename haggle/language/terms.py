"""The terms of a review, and where a line says them again."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from haggle.numerals import SCALES, TENS, UNITS, read_number

EACH = {"a": 1, "an": 1, "one": 1, "single": 1, "pair": 2, "couple": 2, "brace": 2, "both": 2,
        "trio": 3}  # fmt: skip
_ARTICLES = frozenset("the my our your that this those these all both of me me a an".split())
_MEASURES = frozenset(
    "bag bottle box bundle can coil crate jar pack packet phial piece pot roll sack set strip tin "
    "tub tube unit vial wheel loaf lot".split()
)
_COINS = frozenset("coin coins gold money bucks quid".split())
_NO_PLURALS = frozenset(
    "this sounds works suits yours thanks plus seems looks feels makes always please is was sits "
    "stands comes goes altogether does has pays buys covers pieces items things exactly".split()
)
_TIMES = frozenset(("x", "×", "quantity", "qty"))
MAX_NAME = 6  # words of a good's name as it may be said


def singular(word: str) -> str:
    """A word without the ending of a plural; both forms of a word come to the same."""
    for ending, kept in (("ies", "y"), ("ves", "f"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"),
                         ("shes", "sh")):  # fmt: skip
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word.removesuffix(ending) + kept
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _name_words(name: str) -> frozenset[str]:
    return frozenset(singular(word) for word in re.findall(r"[^\W_]+", name.casefold()))


@dataclass(frozen=True)
class Good:
    """One line of a reviewed cart: what it may be called, and how many pieces."""

    key: str
    names: tuple[str, ...]
    quantity: int

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its names, in the singular."""
        return frozenset().union(*map(_name_words, self.names)) - {"of", "the", "a", "and"}


@dataclass(frozen=True)
class Terms:
    """What a review stated: goods, total price, its currency, and who stated it."""

    goods: tuple[Good, ...]
    price: float
    currency: str
    merchant: str
    others: tuple[str, ...] = ()  # names of what else the shop knows

    @cached_property
    def other_words(self) -> frozenset[str]:
        """Words of other goods' names: in a line they may ask for more than was reviewed."""
        words = {word for name in self.others for word in _name_words(name) if len(word) > 2}
        return frozenset(form for word in words for form in _forms(word)) - self.goods_words

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of the terms that no other reading is needed for."""
        return self.goods_words | self.money_words | self.name_words

    @cached_property
    def goods_words(self) -> frozenset[str]:
        """The words of the reviewed goods' names."""
        return frozenset(
            form for good in self.goods for word in good.words for form in _forms(word)
        )

    @cached_property
    def money_words(self) -> frozenset[str]:
        """What the currency may be called."""
        own = re.findall(r"[^\W\d_]+", self.currency.casefold())
        return _COINS.union(own, map(singular, own), *map(_forms, own))

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The words of the merchant's name."""
        return frozenset(re.findall(r"[^\W_]+", self.merchant.casefold())) - {"the", "of", "and"}

    @cached_property
    def counts(self) -> frozenset[int]:
        """Numbers of all that is in the cart: its pieces."""
        return frozenset({sum(good.quantity for good in self.goods)})


def _forms(word: str) -> set[str]:
    return {word, word + "s", word + "es", word[:-1] + "ies", word[:-1] + "ves"}


class TermSlots:
    """The slots of a grammar that the terms of a review fill, in one line of words."""

    def __init__(self, words: Sequence[str], terms: Terms) -> None:
        self._words, self._terms = words, terms
        self._named: list[tuple[int, int, str]] = []
        self._miscounted = False  # a good was named in another number than its own
        self.by_name = {
            "price": lambda at: self._money(at, lambda n: n == terms.price),
            "paid": lambda at: self._money(at, lambda n: n >= terms.price),
            "any": lambda at: self._money(at, lambda n: 0 < n < terms.price),
            "goods": self._goods,
            "count": self._count,
            "name": self._name,
        }

    def goods_named(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """The goods named between two places: where, and which."""
        return [
            (first, last, key)
            for first, last, key, _ in self._mentions()
            if start <= first and last <= end
        ]

    def stated(self, at: int) -> set[int]:
        """Where reviewed goods in their number that begin at a place end."""
        return set(self._goods(at))

    def strange_number(self) -> tuple[int, int] | None:
        """Where a number stands that is none of the terms: no price, no count, no tip above it."""
        at = 0
        while at < len(self._words):
            value, used = number_at(self._words, at)
            if not used:
                at += 1
                continue
            fits = value == self._terms.price or value in self._terms.counts
            fits = fits or any(value == good.quantity for good in self._terms.goods)
            if not fits:
                end = at + used
                while end < min(len(self._words), at + used + 1):
                    end += 1
                return at, end
            at += used
        return None

    def _count(self, at: int) -> list[int]:
        """A number of all there is; one that stands before a good's name counts only that."""
        if at < len(self._words) and self._words[at] == "both":
            end, fits = at + 1, 2 in {*self._terms.counts, len(self._terms.goods)}
        else:
            value, used = number_at(self._words, at)
            kinds = {len(self._terms.goods)} if at and self._words[at - 1] == "all" else set()
            end, fits = at + used, used > 0 and value in self._terms.counts | kinds
        before_goods = any(self._name_of(good, end) for good in self._terms.goods)
        return [end] if fits and not before_goods else []

    def strange_amount(self, accounted: Collection[int] = ()) -> bool:
        """Whether numbers say what was not reviewed: a good counted twice, or an amount that is no
        tip, because the price itself is not named or stays below it. Numbers at `accounted` places
        belong to fixed phrases."""
        spans = {(s, e): key for s, e, key, counted in self._mentions() if counted}
        if self._miscounted or len(spans.values()) > len(set(spans.values())):
            return True
        price, at, named, odd = self._terms.price, 0, False, []
        inside = {i for s, e, _, _ in self._mentions() for i in range(s, e)}
        while at < len(self._words):
            value, used = number_at(self._words, at)
            if used and at not in inside and at not in accounted:
                if self._of_things(at + used):
                    return True
                named = named or (value is not None and value >= price)
                fits = value is not None and bool(self._count(at) or value == price)
                odd += [value] if not fits and not (value is not None and value >= price) else []
            at += used or 1
        tipped = named or bool({"keep", "pocket"} & set(self._words))
        most = price / (2 if named else 4)  # a tip is no half of the price
        return any(value is None or not tipped or value > most for value in odd)

    def _of_things(self, at: int) -> bool:
        """Whether the word at a place, behind a number, makes it one of other things: `shells`."""
        word = self._words[at] if at < len(self._words) else ""
        plural = word.endswith("s") and len(word) > 3 and word not in _NO_PLURALS
        return plural and word not in self._terms.money_words | self._terms.goods_words

    def _mentions(self) -> list[tuple[int, int, str, bool]]:
        """Goods named, from the left, the longest first: where, which, whether counted."""
        found, at = [], 0
        while at < len(self._words):
            known = len(self._named)
            self._goods(at)
            here = [(end, key) for start, end, key in self._named[known:] if start == at]
            if here:
                end, key = max(here)
                counted = number_at(self._words, at)[1] > 0 or self._words[at] in EACH
                found.append((at, end, key, counted))
                at = end
            else:
                at += 1
        return found

    def _money(self, at: int, fits: Callable[[float], bool]) -> list[int]:
        """An amount with or without its currency, in front or behind."""
        words, coins = self._words, self._terms.money_words
        sign = at < len(words) and words[at] in self._terms.currency
        start = at + (sign and words[at] in "$£€¥")
        value, used = number_at(words, start)
        if not used or value is None or not fits(value):
            return []
        end = start + used
        ends = [end]
        if words[end : end + 1] and words[end] in coins | {self._terms.currency[:1].casefold()}:
            ends.append(end + 1)
        return ends

    def _goods(self, at: int) -> list[int]:
        """Reviewed goods named at a place, in their own number where one is said."""
        words, place = self._words, at
        number: float | None = None
        for _ in range(4):  # `all of the four`
            value, used = number_at(words, place)
            article = place < len(words) and words[place] in EACH
            if used or article:
                if number is not None:
                    return []
                value = value if used else EACH[words[place]]
                if words[place] not in {"a", "an"} or number is None:
                    number = value
                place += used or 1
            elif place < len(words) and words[place] in _ARTICLES | _TIMES:
                place += 1
            else:
                break
        found = []
        for good in self._terms.goods:
            end = self._name_of(good, place)
            if end is None or (number is None and self._one_of_several(good, end)):
                continue
            ends, said = self._counted_behind(end, number, good.quantity)
            if said is None or said == good.quantity:
                found.append(ends)
                self._named.append((at, ends, good.key))
            elif words[at] not in {"a", "an"} and number_at(words, place - 1)[1]:
                self._miscounted = True
        return found

    def _counted_behind(
        self, end: int, number: float | None, quantity: int
    ) -> tuple[int, float | None]:
        """`ropes x2`, `ropes, two`: a number behind a name counts it as well."""
        times = end < len(self._words) and self._words[end] in _TIMES
        value, used = number_at(self._words, end + times)
        if used and number in (None, value) and (times or value == quantity):
            return end + times + used, value
        return end, number

    def _name_of(self, good: Good, at: int) -> int | None:
        """Where a name of a good that begins at a place ends."""
        end = None
        for place in range(at, min(len(self._words), at + MAX_NAME)):
            word = singular(self._words[place])
            if word in good.words:
                end = place + 1
            elif not (word in _MEASURES or (word in {"of", "the"} and place > at)):
                break
        return end

    def _one_of_several(self, good: Good, end: int) -> bool:
        """Whether `the blanket` is said of more than one."""
        said = self._words[end - 1]
        plural = good.names[-1].casefold().split()[-1]
        return good.quantity > 1 and said == singular(said) and said != plural

    def _name(self, at: int) -> list[int]:
        end = at
        while end < len(self._words) and self._words[end] in self._terms.name_words:
            end += 1
        return [end] if end > at else []


def number_at(words: Sequence[str], at: int) -> tuple[float | None, int]:
    """The number that stands at a place, and how many words it takes; 0 for none."""
    if at >= len(words):
        return None, 0
    first = words[at]
    if not (first[0].isdigit() or first in UNITS or first in TENS or first in SCALES
            or first in {"a", "half"}):  # fmt: skip
        return None, 0
    rest = [w for w in words[at : at + 10]]
    if first[0].isdigit():
        return _digits(rest)
    if first in SCALES and first != "dozen":
        value, _, used = read_number(["a", *rest])
        return (float(value), used - 1) if value is not None and used > 1 else (None, 0)
    value, _, used = read_number(rest)
    if not used:
        return None, 0
    return (float(value) if value is not None else None), used


def _digits(words: Sequence[str]) -> tuple[float | None, int]:
    plain = re.sub(r",(?=\d{3}(?!\d))", "", words[0])
    try:
        value = float(plain)
    except ValueError:
        return None, 1
    if len(words) > 1 and words[1] in {"k", "grand", "thousand", "hundred", "dozen"}:
        return value * {"hundred": 100, "dozen": 12}.get(words[1], 1000), 2
    return value, 1
