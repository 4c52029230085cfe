"""The terms of a review, and where a line says them again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
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
_TIMES = frozenset(("x", "×"))
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

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of the terms that no other reading is needed for."""
        goods = {form for good in self.goods for word in good.words for form in _forms(word)}
        return frozenset(goods | self.money_words | self.name_words)

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
        """Numbers of all that is in the cart: pieces, kinds."""
        return frozenset({sum(good.quantity for good in self.goods), len(self.goods)})

    def not_in_part(self, named: Collection[str], words: Iterable[str]) -> bool:
        """Whether goods named beside an agreement are all of them, or none."""
        whole = {"everything", "all", "both", "lot", "order", "rest"}
        return not named or len(named) == len(self.goods) or bool(whole & set(words))


def _forms(word: str) -> set[str]:
    return {word, word + "s", word + "es", word[:-1] + "ies", word[:-1] + "ves"}


class TermSlots:
    """The slots of a grammar that the terms of a review fill, in one line of words."""

    def __init__(self, words: Sequence[str], terms: Terms) -> None:
        self._words, self._terms = words, terms
        self._named: list[tuple[int, int, str]] = []
        self.by_name = {
            "price": lambda at: self._money(at, lambda n: n == terms.price),
            "paid": lambda at: self._money(at, lambda n: n >= terms.price),
            "any": lambda at: self._money(at, lambda n: n > 0),
            "goods": self._goods,
            "count": lambda at: self._number(at, terms.counts),
            "name": self._name,
        }

    def goods_named(self, start: int, end: int) -> set[str]:
        """The goods that were found between two places."""
        for at in range(start, end):
            self._goods(at)
        return {key for first, last, key in self._named if start <= first and last <= end}

    def stated(self, at: int) -> set[int]:
        """Where reviewed goods in their number, or the price, that begin at a place end."""
        return {*self._goods(at), *self.by_name["price"](at)}

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

    def _number(self, at: int, fitting: Collection[float]) -> list[int]:
        if at < len(self._words) and self._words[at] == "both":
            return [at + 1] if 2 in fitting else []
        value, used = number_at(self._words, at)
        return [at + used] if used and value in fitting else []

    def _money(self, at: int, fits) -> list[int]:  # type: ignore[no-untyped-def]
        """An amount with or without its currency, in front or behind."""
        words, coins = self._words, self._terms.money_words
        start = at + (at < len(words) and words[at] in ("$", "£", "€"))
        value, used = number_at(words, start)
        if not used or not fits(value):
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
                if number is not None and not article:
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
            if end is None:
                continue
            ends, said = self._counted_behind(end, number)
            if said is None or said == good.quantity:
                found.append(ends)
                self._named.append((at, ends, good.key))
        return found

    def _counted_behind(self, end: int, number: float | None) -> tuple[int, float | None]:
        """`ropes x2`: a number behind a name counts it as well."""
        if end < len(self._words) and self._words[end] in _TIMES:
            value, used = number_at(self._words, end + 1)
            if used:
                return end + 1 + used, value if number in (None, value) else -1
        return end, number

    def _name_of(self, good: Good, at: int) -> int | None:
        """Where a name of a good that begins at a place ends."""
        end = None
        for place in range(at, min(len(self._words), at + MAX_NAME)):
            word = singular(self._words[place])
            if word in good.words:
                end = place + 1
            elif not (word in _MEASURES or (word == "of" and place > at)):
                break
        return end

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
