"""A small stall, and customers whose merchant answers what a test puts in its mouth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from haggle.core.engine import Generation
from haggle.grammar.json_text import to_json
from haggle.trade.merchant import Guard, Merchant
from haggle.trade.methods import get_method
from haggle.trade.records import TurnRecord
from haggle.trade.session import Session
from haggle.trade.world import Haggling, Item, MerchantInfo, World
from serving.engines.scripted import ScriptedEngine


class Visit:
    """One customer at the stall."""

    def __init__(self, world: World, guard: Guard, method: str) -> None:
        self.session = Session(world, method=get_method(method))
        self.merchant = Merchant(ScriptedEngine(["{}"]), guard)

    def text(self, text: str, player: str = "hello") -> TurnRecord:
        """A round in which the model writes exactly `text`."""
        return self.merchant.complete(self.session, player, Generation(text))

    def turn(self, state: str, say: str = "Well.", player: str = "", **fields: Any) -> TurnRecord:
        """A round in which the model proposes `state`; it reports the true last state. Without a
        line of its own the player says what a state needs as evidence."""
        record = {"last": self.session.last, "state": state, **fields, "say": say}
        return self.text(to_json(record), player or _evidence(state, fields))

    def offer(self, *lines: list[Any]) -> TurnRecord:
        """A round that puts these lines into the cart."""
        return self.turn("OFFER_SELL", "__CART__ for __PRICE__ __CURRENCY__.", cart=list(lines))

    def review(self) -> TurnRecord:
        """A round that asks the player to confirm."""
        return self.turn("FINAL_CHECK", "__PRICE__ __CURRENCY__, agreed?")


def _evidence(state: str, fields: dict[str, Any]) -> str:
    """A plain line that says what an answer makes of it."""
    lines = fields.get("cart") or fields.get("change") or ()
    wanted = [f"{number} {name.removeprefix('?')}" for name, number in lines]
    if wanted:
        return f"just {' and '.join(wanted)} now"
    if fields.get("cart") == []:
        return "put it all back"
    return {"END": "goodbye"}.get(state, "ok")


@pytest.fixture
def stall() -> World:
    return World(
        name="stall",
        merchant=MerchantInfo(
            name="Ada", persona="A calm trader.", haggling=Haggling(max_discount=0.2, step=0.05)
        ),
        currency="gold",
        items=[
            Item(item_id="axe", item_name="Sharp Axe", price=130, quantity=3),
            Item(item_id="potion", item_name="Mana Potion", price=60, quantity=5),
            Item(item_id="rope", item_name="Sturdy Rope (20m)", price=7.5, quantity=10),
            Item(item_id="map", item_name="Local Map", price=60, quantity=1),
            Item(item_id="wand", item_name="Elemental Wand"),
        ],
    )


@pytest.fixture
def visit(stall: World) -> Callable[..., Visit]:
    """Makes customers: `visit()`, `visit("off")`, `visit(method="astp")`."""

    def make(guard: Guard = "state", method: str = "astp-compact", world: World = stall) -> Visit:
        return Visit(world, guard, method)

    return make
