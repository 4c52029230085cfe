"""Goods that a customer asks about are told of: all that are meant, and none is ordered by that."""

from __future__ import annotations

import pytest

from haggle.trade.records import TurnRecord

from .conftest import Talk, change, order, show

BOOTS = {"Sea Boots", "Ankle Boots"}
TOLD = ("how are the sea boots?", show("Sea Boots"))


def shown(turn: TurnRecord) -> set[str]:
    """The names of the goods on show."""
    details = turn.response.context_details
    return {item.item_name for item in details.items} if details else set()


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("what do your boots cost?", show("Sea Boots")),
        ("before anything else, what are your boots like?", show("Sea Boots")),
        ("what sort of boots have you?", show("Sea Boots")),
        ("I need boots for my brother. what sizes are there?", show("Sea Boots")),
        ("I need boots. What kinds do you have?", show("Sea Boots")),
        ("just name me the boots", order(Sea_Boots=1)),
        ("tell me about the boots", show("Ankle Boots")),
        ("Boots, dear, I asked about the boots.", order(Sea_Boots=1)),
        ("I asked which boots you have, all of them", order(Ankle_Boots=1)),
    ],
)
def test_all_goods_of_a_kind_are_shown(talk: Talk, line, decided) -> None:
    turn = talk((line, decided))
    assert shown(turn) == BOOTS and turn.cart == {}


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("aight and the other ones?", order(Ankle_Boots=1)),
        ("and the other boots, please?", order(Sea_Boots=1, Ankle_Boots=1)),
        ("You told me of the sea boots. Do the other ones have a heel?", show("Sea Boots")),
    ],
)
def test_the_other_of_two_is_told_of(talk: Talk, line, decided) -> None:
    turn = talk(TOLD, (line, decided))
    assert shown(turn) == {"Ankle Boots"} and turn.cart == {}


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("how much for half a dozen of those, supposing I wanted them?", order(Sea_Boots=6)),
        ("and the price of two, if I wanted them?", order(Sea_Boots=2)),
        ("I am not ordering any. Only the price of six.", order(Sea_Boots=6)),
        ("I've ordered nothing yet! Are they warm?", order(Sea_Boots=1)),
        ("nobody said buy anything yet", order(Sea_Boots=2)),
        ("I asked about the rope. The strong rope.", order(Coil_of_Rope=1)),
        ("I should like to hear of a rope", order(Coil_of_Rope=1)),
        ("I need shoes for the rope walk. What have you?", show("Sea Boots")),
        ("No, not those! Something against a cough.", order(Sea_Boots=1)),
    ],
)
def test_what_is_asked_about_or_turned_down_is_not_ordered(talk: Talk, line, decided) -> None:
    turn = talk(TOLD, (line, decided))
    assert turn.state == "SHOW_ITEMS" and turn.cart == {}


def test_a_price_asked_beside_an_order_changes_no_number(talk: Talk) -> None:
    line = "Before I agree, how much is one of the bottles of oil? I want to be sure of it."
    oil = order(Bottle_of_Lamp_Oil=4)
    turn = talk(("four bottles of lamp oil", oil), (line, change(Bottle_of_Lamp_Oil=1)))
    assert turn.cart == {"bottle_of_lamp_oil": 4}


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("six of those, please", order(Sea_Boots=6), {"sea_boots": 6}),
        ("I asked for two ropes", order(Coil_of_Rope=2), {"coil_of_rope": 2}),
        ("could I have two ropes?", order(Coil_of_Rope=2), {"coil_of_rope": 2}),
        ("two ropes, and I'd like to know whether they rot", order(Coil_of_Rope=2),
         {"coil_of_rope": 2}),
        ("I need rope. What is it made of?", show("Coil of Rope"), {"coil_of_rope": 1}),
        ("I'm not buying any. Two ropes, that is all I want.", order(Coil_of_Rope=2),
         {"coil_of_rope": 2}),
        ("not that one, the rope, please", order(Coil_of_Rope=1), {"coil_of_rope": 1}),
        ("I don't want to hear more. A rope, please", order(Coil_of_Rope=1), {"coil_of_rope": 1}),
        ("what do I owe if I take the rope?", order(Coil_of_Rope=1), {"coil_of_rope": 1}),
    ],
)  # fmt: skip
def test_an_order_that_looks_alike_is_one(talk: Talk, line, decided, cart) -> None:
    assert talk(TOLD, (line, decided)).cart == cart


def test_goods_of_two_questions_are_both_told_of(talk: Talk) -> None:
    both = show("Storm Lantern", "Coil of Rope")
    turn = talk(
        ("what have you got?", both), ("What would the storm one cost me? And the rope?", both)
    )
    assert shown(turn) == {"Storm Lantern", "Coil of Rope"}


def test_what_is_asked_for_in_the_end_is_told_of(talk: Talk) -> None:
    turn = talk(TOLD, ("Boots? At my age? I said rope, dear.", show("Coil of Rope")))
    assert shown(turn) == {"Coil of Rope"}


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("Hello, it's me again. I'll take two.", order(Sea_Boots=2), {"sea_boots": 2}),
        ("It is raining still. I'll take them.", order(Sea_Boots=1), {"sea_boots": 1}),
        ("the sea boots, please?", order(Sea_Boots=1), {"sea_boots": 1}),
        ("tell me the price and pack two ropes", order(Coil_of_Rope=2), {"coil_of_rope": 2}),
        ("I want to be sure I get two ropes", order(Coil_of_Rope=2), {"coil_of_rope": 2}),
    ],
)
def test_an_order_that_looks_like_a_question_is_carried_out(talk: Talk, line, decided, cart):
    assert talk(TOLD, (line, decided)).cart == cart


def test_a_word_that_joins_is_no_kind_of_goods(talk: Talk) -> None:
    """A coil of rope and a bottle of oil have nothing in common."""
    turn = talk(
        ("how is the rope?", show("Coil of Rope")), ("what kinds have you?", show("Coil of Rope"))
    )
    assert shown(turn) == {"Coil of Rope"}


def test_what_goods_on_show_are_is_told_once(talk: Talk) -> None:
    first = ("table lamps I would see", show("Table Lamp"))
    assert "brass lamp" in talk(first).says
    assert "brass lamp" not in talk(first, ("show me again", show("Table Lamp"))).says
