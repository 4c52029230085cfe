"""With the guard at `state` nothing comes into the cart that the player wants minus three of."""

from __future__ import annotations

import json

import pytest

from haggle.core.agent import complete
from haggle.core.domain import Level
from haggle.core.engine import Generation
from haggle.trade.merchant import TRADE
from haggle.trade.records import TurnRecord
from haggle.trade.session import Session
from haggle.trade.world_io import named_world

ROPE, LAMP = "Sturdy Rope (20m)", "Simple Lantern"


def answered(
    line: str, *cart: list, held: dict[str, int] | None = None, level: Level = "state"
) -> tuple[TurnRecord, dict[str, int]]:
    """The turn that a model's cart leads to, and the cart after it by names."""
    session = Session(named_world("frontier_shop"))
    if held:
        session.settle("OFFER_SELL", held, None)
    answer = {"last": session.last, "state": "OFFER_SELL", "cart": list(cart), "say": "__CART__."}
    turn = complete(TRADE, session, line, Generation(json.dumps(answer)), level)
    return turn, {session.world.by_id[i].item_name: n for i, n in session.cart.items()}


@pytest.mark.parametrize("line", ["minus three ropes", "half of a single rope", "rope x -4"])
def test_what_nobody_can_buy_is_not_sold(line):
    turn, cart = answered(line, [ROPE, 3])
    assert cart == {} and turn.state == "CASUAL" and turn.failed == []
    assert "quantity" in turn.interventions and turn.proposed_failed == ["quantity"]


def test_the_rest_of_the_order_stands():
    turn, cart = answered("-5 ropes and 2 simple lanterns", [ROPE, 5], [LAMP, 2])
    assert cart == {LAMP: 2} and turn.state == "OFFER_SELL"
    assert turn.response.npc_dialogue.startswith(f"2 {LAMP}s. Nobody can buy {ROPE}")


@pytest.mark.parametrize(
    ("line", "cart"),
    [("-5 ropes", [f"?-5 {ROPE}", 1]), ("1.5 simple lanterns", ["?1.5 lanterns", 1])],
)
def test_an_impossible_number_is_told_as_that_and_not_as_goods_not_sold(line, cart):
    turn, left = answered(line, cart)
    assert left == {} and turn.failed == []
    said = turn.response.npc_dialogue
    assert "Nobody can buy" in said and "do not sell" not in said


def test_what_lies_in_the_cart_may_become_less():
    rope = named_world("frontier_shop").find(ROPE)
    assert rope is not None
    turn, cart = answered("minus two ropes", [ROPE, 2], held={rope.item_id: 4})
    assert cart == {ROPE: 2} and "quantity" not in turn.interventions


def test_what_else_lies_in_the_cart_stays_there():
    lamp = named_world("frontier_shop").find(LAMP)
    assert lamp is not None
    turn, cart = answered("minus three ropes", [ROPE, 3], held={lamp.item_id: 2})
    assert cart == {LAMP: 2} and turn.state == "OFFER_SELL" and turn.failed == []


def test_a_rope_that_is_wanted_as_well_is_sold():
    _, cart = answered("a rope please, minus three ropes is a joke", [ROPE, 1])
    assert cart == {ROPE: 1}


def test_only_the_guard_does_so_and_only_where_the_truth_is_not_known():
    assert answered("minus three ropes", [ROPE, 3], level="off")[1] == {ROPE: 3}
    assert answered("minus three ropes", [ROPE, 3], level="written")[1] == {ROPE: 3}
