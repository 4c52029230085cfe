"""The terms of a review, and where a line says them again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from haggle.language.chosen import CUES

SIGNS = CUES.signs
SHORT = range(2, 4)  # letters of a currency's name that may stand for it
_UNSPOKEN = re.compile(r"[^\W\d_aeiouy]{2,3}")  # no word of its own: `cr`, `gp`


@lru_cache(maxsize=4096)
def singular(word: str) -> str:
    """A word without the ending of a plural; both forms of a word come to the same."""
    for ending, kept in (("ies", "y"), ("ves", "f"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"),
                         ("shes", "sh")):  # fmt: skip
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word.removesuffix(ending) + kept
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _name_words(name: str) -> frozenset[str]:
    plain = name.casefold().replace("’", "'")
    words = re.findall(r"[^\W_]+", plain) + re.findall(r"[^\W_]+'[^\W_]+", plain)
    return frozenset(map(singular, words))


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

    @property
    def _parts(self) -> list[str]:
        """The words of its first name, without what stands in brackets."""
        return self.names[0].casefold().partition(" (")[0].split() or [""]

    @cached_property
    def in_pairs(self) -> bool:
        """Whether a pair of it is one piece: a pair of boots, a crampon pair."""
        return "pair" in self.words or self._parts[-1] in CUES.paired

    @cached_property
    def contents(self) -> frozenset[str]:
        """The words that say what its measure holds (a sack of feed); none where it has none."""
        *front, last = self._parts
        return frozenset(map(singular, front)) if last in CUES.holding else frozenset()


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
        measures = {word + "s" for word in CUES.packs}
        return self.goods_words | self.money_words | self.name_words | measures

    @cached_property
    def goods_words(self) -> frozenset[str]:
        """The words of the reviewed goods' names."""
        return frozenset(
            form for good in self.goods for word in good.words for form in _forms(word)
        )

    @cached_property
    def money_words(self) -> frozenset[str]:
        """What the currency may be called, also cut short: `cr`, `gp`."""
        own = self.currency_words
        first = "".join(word[0] for word in re.findall(r"[^\W\d_]+", self.currency.casefold()))
        short = {first, *(word[:end] for word in own for end in SHORT)}
        slang = {word for name in own for word in CUES.slang.get(name, ())}
        return CUES.coins | own | slang | self.signs | set(filter(_UNSPOKEN.fullmatch, short))

    @cached_property
    def currency_words(self) -> frozenset[str]:
        """The words of the currency's name, in the singular and the plural."""
        own = set(re.findall(r"[^\W\d_]+", self.currency.casefold()))
        own |= {SIGNS[sign] for sign in SIGNS if sign in self.currency}
        return frozenset(own).union(map(singular, own), *map(_forms, own))

    @cached_property
    def signs(self) -> frozenset[str]:
        """The signs that stand for the currency: `$`."""
        return frozenset(
            sign
            for sign, word in SIGNS.items()
            if sign in self.currency or word in self.currency_words
        )

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The words of the merchant's name."""
        return frozenset(re.findall(r"[^\W_]+", self.merchant.casefold())) - {"the", "of", "and"}

    @cached_property
    def single(self) -> bool:
        """Whether all there is is one piece, of what is not called by a plural: no scissors."""
        last = self.goods[0].names[0].casefold().split()[-1:]
        return self.counts == {1} and last == [singular(word) for word in last]

    @cached_property
    def counts(self) -> frozenset[int]:
        """Numbers of all that is in the cart: its pieces."""
        return frozenset({sum(good.quantity for good in self.goods)})


def _forms(word: str) -> set[str]:
    return {word, word + "s", word + "es", word[:-1] + "ies", word[:-1] + "ves"}
