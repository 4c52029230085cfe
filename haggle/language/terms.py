"""The terms of a review, and where a line says them again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from haggle.language.english.cues import CUES


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
        return CUES.coins.union(own, map(singular, own), *map(_forms, own))

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
