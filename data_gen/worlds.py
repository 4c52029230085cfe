"""Random shops: genres, items, merchants, prices; train and test genres are disjoint."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from pydantic import Field

from data_gen.phrasebook import PHRASES, Split
from haggle.config import Record, load_config
from haggle.world import Haggling, Item, MerchantInfo, Situation, World, normalise


class BankItem(Record):
    """An item a shop may sell. `price` is a range per piece, `head` a casual short name."""

    name: str
    plural: str
    head: str
    price: tuple[int, int]
    tags: list[str] = Field(default_factory=list)


class BankMerchant(Record):
    """A merchant a shop may have."""

    name: str
    persona: str


class Genre(Record):
    """A kind of setting with all that a shop there needs."""

    split: Split
    currency: list[str]
    places: list[str]
    merchants: list[BankMerchant]
    items: list[BankItem]


class Bank(Record):
    """`items.yaml`."""

    genres: dict[str, Genre]


class UnsoldItem(Record):
    """Something shops know of but do not sell."""

    name: str
    plural: str


class Unsold(Record):
    """`unsold.yaml`."""

    items: list[UnsoldItem]


class Shop(Record):
    """A sampled world with what a player needs to talk about it."""

    world: World
    heads: dict[str, str]
    tags: dict[str, list[str]]


_SYLLABLES = (
    "vor kal mer ith dun sha rel os tan gri bel qua zen fal ur nim dor ael kri mo "
    "pel ras tho yv lan cor esh wyn bra sol"
).split()


@cache
def load_bank(root: Path = PHRASES) -> Bank:
    """The item bank. Raises HaggleError naming file and field."""
    return load_config(root / "items.yaml", Bank)


@cache
def load_unsold(root: Path = PHRASES) -> Unsold:
    """What is not sold anywhere."""
    return load_config(root / "unsold.yaml", Unsold)


def invented_word(rng: random.Random) -> str:
    """A made-up word, so that a model learns to copy names rather than to remember them."""
    return "".join(rng.choice(_SYLLABLES) for _ in range(rng.choice((2, 2, 3)))).capitalize()


def sample_shop(
    rng: random.Random, split: Split, items: tuple[int, int] = (5, 14), invented: float = 0.2
) -> Shop:
    """A random shop of the split's genres with `items[0]` to `items[1]` items for sale."""
    genres = sorted(n for n, g in load_bank().genres.items() if g.split == split)
    name = rng.choice(genres)
    genre = load_bank().genres[name]
    merchant = rng.choice(genre.merchants)
    count = min(rng.randint(*items), len(genre.items))
    chosen = rng.sample(genre.items, count)
    scale = rng.choice((1, 1, 1, 2, 5, 10))
    offered: dict[str, Item] = {}
    heads: dict[str, str] = {}
    tags: dict[str, list[str]] = {}
    for bank_item in chosen:
        item_name, plural = bank_item.name, bank_item.plural
        if rng.random() < invented:
            word = invented_word(rng)
            item_name, plural = f"{word} {item_name}", f"{word} {plural}"
        key = normalise(item_name)
        if key in offered:
            continue
        low, high = bank_item.price
        item_id = f"{normalise(bank_item.head)[:12] or 'item'}_{len(offered) + 1:02d}"
        offered[key] = Item(
            item_id=item_id,
            item_name=item_name,
            price=_rounded(rng.randint(low, high) * scale),
            quantity=rng.choice((1, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 30)),
            plural=plural,
        )
        heads[item_name] = bank_item.head
        tags[item_name] = bank_item.tags
    taken = {item.name for item in chosen}
    others = [item for item in genre.items if item.name not in taken]
    for other in rng.sample(others, min(len(others), rng.randint(1, 4))):
        if normalise(other.name) not in offered:
            offered[normalise(other.name)] = Item(
                item_id=f"x_{len(offered) + 1:02d}", item_name=other.name, plural=other.plural
            )
    world = World(
        name=f"{name}_{rng.randrange(16**6):06x}",
        merchant=MerchantInfo(
            name=merchant.name,
            persona=merchant.persona,
            haggling=Haggling(max_discount=rng.choice((0.0, 0.1, 0.15, 0.2, 0.2))),
        ),
        currency=rng.choice(genre.currency),
        situation=Situation(location=rng.choice(genre.places)),
        items=list(offered.values()),
    )
    return Shop(world=world, heads=heads, tags=tags)


def shop_of(world: World) -> Shop:
    """A given world as a shop; its casual names are the last words of the item names."""
    heads = {i.item_name: i.item_name.split(" (")[0].split()[-1].casefold() for i in world.items}
    return Shop(world=world, heads=heads, tags={})


def _rounded(price: int) -> float:
    """Prices people put on labels: whole tens and fives above the small ones."""
    if price >= 1000:
        return float(price // 50 * 50)
    if price >= 100:
        return float(price // 5 * 5)
    return float(max(1, price))
