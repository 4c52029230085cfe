"""The bank of items: genres, goods and merchants that shops are made from."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from pydantic import Field, model_validator

from data_gen.language.phrasebook import PHRASES, Split
from haggle.core.config import Record, load_config
from haggle.core.errors import HaggleError
from haggle.trade.world import (
    Description,
    Fact,
    Manner,
    name_words,
    normalise,
)  # fmt: skip

MAX_PRICE = 100_000


class KnownItem(Record):
    """Something shops know of, with what a merchant can tell about it."""

    name: str
    plural: str
    description: Description = ""
    facts: list[Fact] = []


class BankItem(KnownItem):
    """An item a shop may sell. `price` is a range per piece, `head` a casual short name.

    `nicknames` are what players call it instead; each holds a word that the name has not.
    """

    head: str
    price: tuple[int, int]
    tags: list[str] = Field(default_factory=list)
    nicknames: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _makes_sense(self) -> BankItem:
        low, high = self.price
        if not 1 <= low <= high <= MAX_PRICE:
            raise ValueError(f"price of {self.name!r} is no range within 1 to {MAX_PRICE}")
        for nickname in self.nicknames:
            if words(nickname) <= words(self.name):
                raise ValueError(f"nickname {nickname!r} says no more than {self.name!r}")
        return self


class BankMerchant(Record):
    """A merchant a shop may have; `manner` chooses among the merchant's lines."""

    name: str
    persona: str
    manner: Manner = "plain"


class Genre(Record):
    """A kind of setting with all that a shop there needs."""

    split: Split
    currency: list[str] = Field(min_length=1)
    places: list[str] = Field(min_length=1)
    times: list[str] = Field(min_length=1)
    backgrounds: list[str] = Field(min_length=1)
    merchants: list[BankMerchant] = Field(min_length=1)
    items: list[BankItem] = Field(min_length=1)

    @model_validator(mode="after")
    def _items_are_distinct(self) -> Genre:
        seen: set[str] = set()
        for item in self.items:
            if normalise(item.name) in seen:
                raise ValueError(f"item {item.name!r} stands there twice")
            seen.add(normalise(item.name))
        return self


class Bank(Record):
    """All genres by name: `items/<genre>.yaml`."""

    genres: dict[str, Genre]


class Unsold(Record):
    """`unsold.yaml`: what shops know of but do not sell."""

    items: list[KnownItem]


@lru_cache(maxsize=65536)
def words(name: str) -> frozenset[str]:
    """The words of a name in the singular, casefolded."""
    return frozenset(min(forms, key=len) for forms in name_words(name))


def last_word(name: str) -> str:
    """The last word of a name before its bracket, casefolded."""
    return name.split(" (")[0].split()[-1].casefold()


@cache
def load_bank(root: Path = PHRASES) -> Bank:
    """The item bank. Raises HaggleError naming file and field."""
    files = sorted((root / "items").glob("*.yaml"))
    if not files:
        raise HaggleError("no genre of items", where=str(root / "items"), hint="add <genre>.yaml")
    return Bank(genres={file.stem: load_config(file, Genre) for file in files})


@cache
def load_unsold(root: Path = PHRASES) -> Unsold:
    """What is not sold anywhere. Raises HaggleError naming file and field."""
    return load_config(root / "unsold.yaml", Unsold)


@cache
def split_genres(split: Split) -> tuple[tuple[str, Genre], ...]:
    """The genres of a split, by name."""
    return tuple((name, g) for name, g in load_bank().genres.items() if g.split == split)


@cache
def bank_names() -> frozenset[str]:
    """The names of all items of the bank."""
    return frozenset(item.name for genre in load_bank().genres.values() for item in genre.items)


@cache
def families(genre: str) -> tuple[tuple[BankItem, ...], ...]:
    """Items of a genre that are easily confused: same head, same last word, one name in another.

    `Small Canvas Tent` and `Large Canvas Tent`; `Phone Charger` and `Phone Charger Cable`.
    """
    items = load_bank().genres[genre].items
    by_key: dict[str, list[BankItem]] = {}
    for item in items:
        keys = (last_word(item.name), item.head)
        for key in dict.fromkeys(keys):  # no set: the order must not depend on hashes
            by_key.setdefault(key, []).append(item)
    for item in items:
        inside = [other for other in items if words(item.name) < words(other.name)]
        by_key[item.name] = [item, *inside]
    groups = {tuple(i.name for i in g): tuple(g) for g in by_key.values() if len(g) > 1}
    return tuple(groups.values())
