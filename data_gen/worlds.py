"""Random shops: genres, items, merchants, prices; train and test genres are disjoint."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

from data_gen.bank import (
    MAX_PRICE,
    BankItem,
    BankMerchant,
    KnownItem,
    bank_names,
    families,
    last_word,
    load_unsold,
    split_genres,
)
from data_gen.language.phrasebook import PLAIN, Split, load_phrasebook
from haggle.core.config import Record
from haggle.core.errors import HaggleError
from haggle.trade.world import (
    Haggling,
    Item,
    MerchantInfo,
    Situation,
    World,
    normalise,
)  # fmt: skip

FAMILY = 0.4  # share of shops that hold a whole confusable family
VARIANT = 0.35  # share of shops that hold an item and a variant of it
TWIN_WORD = 0.2  # share of invented words that were used in this shop before
SCALES = (0.1, 0.5, 1, 1, 1, 1, 2, 3, 5, 10, 40)
STOCKS = (1, 1, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 30, 30, 50, 80, 120)
STOCKS_DEAR = (1, 1, 1, 2, 2, 3, 4, 6)
DEAR = 3000  # unit price from which few pieces are in stock
DISCOUNTS = (0.0, 0.05, 0.1, 0.1, 0.15, 0.15, 0.2, 0.2, 0.25, 0.3)
STEPS = (0.02, 0.05, 0.05, 0.05, 0.1)
SAMPLED = ("CASUAL_greet", "CASUAL_smalltalk")  # the kinds of lines that a merchant is told by
QUALITIES = {
    "Old": 0.5, "Used": 0.6, "Small": 0.7, "Plain": 0.8, "Spare": 1.0, "Blue": 1.0, "Red": 1.0,
    "Heavy": 1.2, "New": 1.3, "Large": 1.5, "Fine": 1.9, "Rare": 3.0,
}  # fmt: skip


class Shop(Record):
    """A sampled world with what a player needs to talk about it."""

    world: World
    heads: dict[str, str]
    tags: dict[str, list[str]]
    nicknames: dict[str, list[str]] = {}
    manner: str = PLAIN


_SYLLABLES = (
    "vor kal mer ith dun sha rel os tan gri bel qua zen fal ur nim dor ael kri mo "
    "pel ras tho yv lan cor esh wyn bra sol"
).split()


def invented_word(rng: random.Random) -> str:
    """A made-up word, so that a model learns to copy names rather than to remember them."""
    return "".join(rng.choices(_SYLLABLES, k=rng.choice((2, 2, 3)))).capitalize()


@dataclass(frozen=True, slots=True)
class _Ware:
    """An item on its way into a shop: a bank item, or a variant of one. `price` before scaling."""

    name: str
    plural: str
    head: str
    price: int
    tags: list[str]
    nicknames: list[str]
    description: str = ""
    facts: tuple[str, ...] = ()


def _ware(item: BankItem, rng: random.Random) -> _Ware:
    low, high = item.price
    price = low + int(rng.random() * (high - low + 1))
    return _Ware(
        item.name, item.plural, item.head, price, item.tags, item.nicknames,
        item.description, tuple(item.facts),
    )  # fmt: skip


class _Words:
    """Invented words of one shop; now and then one comes again, so that two names share it."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.used: list[str] = []

    def next(self) -> str:
        if self.used and self.rng.random() < TWIN_WORD:
            return self.rng.choice(self.used)
        self.used.append(invented_word(self.rng))
        return self.used[-1]


def _renamed(ware: _Ware, rng: random.Random, made: _Words) -> _Ware:
    """The ware under a name with an invented word; sometimes nothing else is left of it."""
    word = made.next()
    roll = rng.random()
    if roll < 0.25:
        name = f"{word} {invented_word(rng)}" if roll < 0.2 else word
        plural = name + ("es" if name.endswith(("s", "sh")) else "s")
        head = name.split()[-1].casefold()
        return replace(ware, name=name, plural=plural, head=head, tags=[], nicknames=[])
    name, plural = f"{word} {ware.name}", f"{word} {ware.plural}"
    if roll < 0.45:
        name, plural = _owned(ware, word, rng)
    return replace(ware, name=name, plural=plural)


def _owned(ware: _Ware, word: str, rng: random.Random) -> tuple[str, str]:
    """`Vorkal's X` or `X of Vorkal`, singular and plural."""
    if " of " in ware.name or "(" in ware.name or rng.random() < 0.5:
        return f"{word}'s {ware.name}", f"{word}'s {ware.plural}"
    return f"{ware.name} of {word}", f"{ware.plural} of {word}"


def _made_by(ware: _Ware, name: str, plural: str, word: str, factor: float) -> _Ware:
    """A second `ware` beside it: `word` in its nicknames tells the two apart. What is told of the
    first need not be true of it."""
    nicknames = [f"{word.casefold()} {nickname}" for nickname in ware.nicknames]
    price = min(MAX_PRICE, max(1, round(ware.price * factor)))
    return _Ware(name, plural, ware.head, price, ware.tags, nicknames)


def _variant(ware: _Ware, rng: random.Random, made: _Words | None) -> _Ware:
    """A ware easily confused with this one: `Old X`, `Large X`, with `made` `X of Vorkal` too."""
    if made is not None and rng.random() < 0.4:
        word, factor = made.next(), rng.choice((0.9, 1.1, 1.5, 3, 8))
        return _made_by(ware, *_owned(ware, word, rng), word, factor)
    own = ware.name.split()
    known = bank_names()
    fresh = [q for q in QUALITIES if q not in own and f"{q} {ware.name}" not in known]
    quality = rng.choice(fresh)
    factor = QUALITIES[quality] * rng.choice((1, 1, 1, 0.98, 1.04))
    return _made_by(ware, f"{quality} {ware.name}", f"{quality} {ware.plural}", quality, factor)


def _choose(rng: random.Random, name: str, pool: list[BankItem], count: int) -> list[BankItem]:
    """`count` items of the pool; often a whole confusable family of genre `name` among them."""
    if rng.random() >= FAMILY or not families(name):
        return rng.sample(pool, count)
    chosen: list[BankItem] = []
    for family in rng.sample(families(name), min(len(families(name)), rng.choice((1, 1, 2)))):
        members = family if len(family) <= 4 else rng.sample(family, 4)
        taken = {item.name for item in chosen}
        chosen += [item for item in members if item.name not in taken]
    chosen = chosen[:count]
    taken = {item.name for item in chosen}
    rest = [item for item in pool if item.name not in taken]
    return chosen + rng.sample(rest, count - len(chosen))


def _wares(
    rng: random.Random, name: str, pool: list[BankItem], count: int, invented: float
) -> list[_Ware]:
    """What is for sale, in the order of the shelf."""
    made = _Words(rng)
    chosen = [_ware(item, rng) for item in _choose(rng, name, pool, count)]
    if count > 1 and rng.random() < VARIANT:
        for index in range(min(count // 2, rng.choice((1, 1, 2)))):
            chosen[-1 - index] = _variant(chosen[index], rng, made if invented else None)
    wares: dict[str, _Ware] = {}
    for ware in chosen:
        new = _renamed(ware, rng, made) if rng.random() < invented else ware
        while normalise(new.name) in wares:
            new = _renamed(ware, rng, made)
        wares[normalise(new.name)] = new
    shelf = list(wares.values())
    rng.shuffle(shelf)
    return shelf


def _scale(rng: random.Random, wares: Iterable[_Ware]) -> float:
    """One factor for all prices of a shop that keeps them within 1 to `MAX_PRICE`."""
    prices = sorted(ware.price for ware in wares)
    middle, highest = prices[len(prices) // 2], prices[-1]
    return rng.choice([s for s in SCALES if highest * s <= MAX_PRICE and (s >= 1 or middle > 60)])


def _label(price: float, style: str) -> float:
    """Prices people put on labels: whole tens and fives above the small ones, nines, or any."""
    if style == "any" or price < 20:
        return float(max(1, int(price)))
    unit = 50 if price >= 1000 else 10 if price >= 300 else 5
    return float(int(price) // unit * unit - (1 if style == "nines" else 0))


def _unsold(
    rng: random.Random, wares: list[_Ware], rest: list[BankItem], invented: float
) -> list[_Ware | KnownItem]:
    """What is known here but not for sale, some of it much like what is."""
    taken = {normalise(ware.name) for ware in wares}
    made = _Words(rng) if invented else None
    found: dict[str, _Ware | KnownItem] = {}
    wanted = rng.choice((1, 2, 2, 3, 3, 4, 5, 6, 8))
    while len(found) < wanted:
        roll = rng.random()
        one: _Ware | KnownItem = rng.choice(load_unsold().items)
        if roll < 0.55 and rest:
            one = rng.choice(rest)
        elif roll < 0.75:
            one = _variant(rng.choice(wares), rng, made)
        if normalise(one.name) not in taken:
            found[normalise(one.name)] = one
    return list(found.values())


def _item(
    item_id: str, known: _Ware | KnownItem, price: float | None = None, quantity: int | None = None
) -> Item:
    """An item for a shop. Nothing is checked again: the bank was, when it was read."""
    return Item.model_construct(
        item_id=item_id, item_name=known.name, price=price, quantity=quantity, plural=known.plural,
        description=known.description, facts=list(known.facts),
    )  # fmt: skip


@cache
def _samples(merchant: BankMerchant) -> list[str]:
    """Lines in the merchant's manner, always the same ones for a name."""
    book, rng = load_phrasebook(), random.Random(merchant.name)
    return [rng.choice(book.merchant[kind][merchant.manner]) for kind in SAMPLED]


def sample_shop(
    rng: random.Random, split: Split, items: tuple[int, int] = (5, 14), invented: float = 0.2
) -> Shop:
    """A random shop of the split's genres with `items[0]` to `items[1]` items for sale.

    A shop larger than its genre takes items of a second one. `invented` is the share of names with
    a made-up word. Raises HaggleError for more items than two genres have.
    """
    genres = split_genres(split)
    name, genre = rng.choice(genres)
    count = rng.randint(*items)
    pool = genre.items
    if count > len(pool):
        have = {item.name for item in pool}
        others = [g for other, g in genres if other != name]
        pool = pool + [item for item in rng.choice(others).items if item.name not in have]
    if not 1 <= count <= len(pool):
        hint = f"{name} and a second genre have {len(pool)}"
        raise HaggleError(f"a shop of {count} items", hint=hint)
    wares = _wares(rng, name, pool, count, invented)
    scale = _scale(rng, wares)
    style = rng.choice(("round", "round", "nines", "any"))
    offered = []
    for number, ware in enumerate(wares, start=1):
        item_id = f"{normalise(ware.head)[:12]}_{number:02d}"
        price = _label(ware.price * scale, style)
        stock = rng.choice(STOCKS_DEAR if price >= DEAR else STOCKS)
        offered.append(_item(item_id, ware, price, stock))
    sold = {ware.name for ware in wares}
    rest = [item for item in pool if item.name not in sold]
    for number, other in enumerate(_unsold(rng, wares, rest, invented), start=1):
        offered.append(_item(f"x_{number:02d}", other))
    merchant = rng.choice(genre.merchants)
    return Shop(
        world=World(
            name=f"{name}_{rng.randrange(16**6):06x}",
            merchant=MerchantInfo(
                name=merchant.name,
                persona=merchant.persona,
                samples=_samples(merchant),
                manner=merchant.manner,
                haggling=Haggling(max_discount=rng.choice(DISCOUNTS), step=rng.choice(STEPS)),
            ),
            currency=rng.choice(genre.currency),
            situation=Situation(
                location=rng.choice(genre.places),
                time=rng.choice(genre.times),
                background=rng.choice(genre.backgrounds),
            ),
            items=offered,
        ),
        heads={ware.name: ware.head for ware in wares},
        tags={ware.name: ware.tags for ware in wares},
        nicknames={ware.name: ware.nicknames for ware in wares},
        manner=merchant.manner,
    )


def shop_of(world: World) -> Shop:
    """A given world as a shop; its casual names are the last words of the item names."""
    heads = {i.item_name: last_word(i.item_name) for i in world.items}
    return Shop(world=world, heads=heads, tags={})
