"""Draw goals for any shop from the templates in `templates.yaml`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from math import ceil
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from eval.talk.goals import Basket, Goal, GoalSet, goal_set, voices
from haggle.core.config import Record, load_config
from haggle.trade.ledger import Cart, floor_price, speak_cart, total
from haggle.trade.world import Item, World, money

TEMPLATES = Path(__file__).with_name("templates.yaml")
MOST_PIECES = 5


class Template(Record):
    """One kind of goal; the file's header explains the fields."""

    name: str
    wants: str
    ends: Literal["basket", "nothing", "either"]
    kinds: tuple[Annotated[int, Field(ge=1)], int]
    answered: bool = False
    minimum: int


class Templates(Record):
    """`templates.yaml`."""

    templates: Annotated[list[Template], Field(min_length=1)]


@cache
def _templates() -> list[Template]:
    return load_config(TEMPLATES, Templates).templates


def draw_goals(worlds: Sequence[World], n: int, seed: int = 0) -> GoalSet:
    """`n` goals, the shops and the kinds of goals in turn; the same seed gives the same goals."""
    shops = {world.name: world for world in worlds}
    goals = []
    for number in range(n):
        world = worlds[number % len(worlds)]
        rng = random.Random(f"talk/{seed}/{world.name}/{number}")
        goals.append(_draw(world, number, number // len(worlds), rng))
    return goal_set(goals, shops, "drawn goals")


def _draw(world: World, number: int, round_: int, rng: random.Random) -> Goal:
    unsold = [item.item_name for item in world.items if not item.for_sale]
    fitting = [t for t in _templates() if unsold or "{unsold}" not in t.wants]
    template = fitting[round_ % len(fitting)]
    low, high = template.kinds
    kinds = min(rng.randint(low, high), len(world.inventory))
    items = rng.sample(world.inventory, kinds)
    basket = {item.item_id: _pieces(item, rng) for item in items}
    if template.ends == "either":
        basket = dict.fromkeys(basket, 1)
    budget = _budget(world, basket)
    told = template.wants.format(
        basket=speak_cart(world, basket),
        first=speak_cart(world, _other(world, basket, rng)),
        item=items[0].item_name,
        unsold=rng.choice(unsold) if unsold else "",
        budget=money(budget),
        currency=world.currency,
    )
    right: Basket = {**basket}
    return Goal(
        id=f"{number + 1:03}-{template.name}",
        shop=world.name,
        wants=told,
        voice=rng.choice(list(voices())),
        baskets={"basket": [right], "nothing": [{}], "either": [{}, right]}[template.ends],
        at_most=budget if "{budget}" in template.wants else None,
        answered=template.answered,
        minimum=template.minimum,
    )


def _pieces(item: Item, rng: random.Random) -> int:
    return rng.randint(1, min(MOST_PIECES, item.quantity or 1))


def _budget(world: World, basket: Cart) -> float:
    """A price half-way between the list price and the least that this merchant takes."""
    return float(ceil((total(world, basket) + floor_price(world, basket)) / 2))


def _other(world: World, basket: Cart, rng: random.Random) -> Cart:
    """An order that is not the basket: one line in another number, or a line too many."""
    items = [world.by_id[name] for name in basket]
    several = [item for item in items if min(MOST_PIECES, item.quantity or 1) > 1]
    if several:
        item = rng.choice(several)
        numbers = range(1, min(MOST_PIECES, item.quantity or 1) + 1)
        other = rng.choice([number for number in numbers if number != basket[item.item_id]])
        return {**basket, item.item_id: other}
    more = [item for item in world.inventory if item.item_id not in basket]
    return {**basket, rng.choice(more).item_id: 1} if more else dict(basket)
