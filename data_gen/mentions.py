"""How players name items and numbers: full names, plurals, short names, digits, words, `x3`."""

from __future__ import annotations

import random
from collections import Counter

from data_gen.worlds import Shop
from haggle.world import listed, plural_name

NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve".split()
)  # fmt: skip


def quantity_word(number: int, rng: random.Random) -> str:
    """A quantity as typed: `3`, `three`, now and then `a couple of` or `a dozen`."""
    if number == 2 and rng.random() < 0.15:
        return "a couple of"
    if number == 12 and rng.random() < 0.5:
        return "a dozen"
    if number < len(NUMBER_WORDS) and rng.random() < 0.4:
        return NUMBER_WORDS[number]
    return str(number)


def _plural(shop: Shop, name: str) -> str:
    item = shop.world.find(name)
    return item.plural if item is not None and item.plural else plural_name(name)


def unambiguous_heads(shop: Shop) -> dict[str, str]:
    """Short names that only one item of this world could be meant by, by item name."""
    heads = {name: head for name, head in shop.heads.items() if shop.world.find(name)}
    counts = Counter(heads.values())
    words = [item.item_name.casefold() for item in shop.world.items]
    return {
        name: head
        for name, head in heads.items()
        if counts[head] == 1 and sum(head.casefold() in word for word in words) <= 1
    }


def name_item(shop: Shop, name: str, plural: bool, rng: random.Random) -> str:
    """One item as a player names it, without article or number."""
    heads = unambiguous_heads(shop)
    if name in heads and rng.random() < 0.3:
        text = heads[name] if not plural else plural_name(heads[name])
    else:
        text = _plural(shop, name) if plural else name
        if rng.random() < 0.5:
            text = text.split(" (")[0] if _short_is_unique(shop, name) else text
    roll = rng.random()
    return text.casefold() if roll < 0.6 else text


def _short_is_unique(shop: Shop, name: str) -> bool:
    short = name.split(" (")[0]
    return sum(item.item_name.startswith(short) for item in shop.world.items) == 1


def name_line(shop: Shop, name: str, number: int, rng: random.Random) -> str:
    """One item with its number: `2 sharp axes`, `a rope`, `sharp axe x2`."""
    roll = rng.random()
    if number == 1:
        text = name_item(shop, name, False, rng)
        article = "an" if text[:1].casefold() in "aeiou" else "a"
        lead = rng.choice((article, article, "1", "one"))
        return f"{lead} {text}"
    text = name_item(shop, name, True, rng)
    if roll < 0.12:
        return f"{name_item(shop, name, False, rng)} x{number}"
    if roll < 0.2:
        return f"{number}x {text}"
    return f"{quantity_word(number, rng)} {text}"


def name_lines(shop: Shop, lines: list[tuple[str, int]], rng: random.Random) -> str:
    """Several items as one list: `2 axes, a map and 3 ropes`, now and then with `+` or commas."""
    parts = [name_line(shop, name, number, rng) for name, number in lines]
    roll = rng.random()
    if len(parts) > 1 and roll < 0.1:
        return " + ".join(parts)
    if len(parts) > 1 and roll < 0.25:
        return ", ".join(parts)
    return listed(parts)
