"""Numbers of pieces that nobody can have are marked at the name they stand with."""

from __future__ import annotations

from time import perf_counter

import pytest

from haggle.trade.session import Session
from haggle.trade.world import Item, World
from haggle.trade.world_io import named_world

ROPE = "Sturdy Rope (20m)"


def heard(line: str, cart: dict[str, int] | None = None) -> str:
    session = Session(named_world("frontier_shop"))
    session.cart = cart or {}
    return session.linked_line(line)


@pytest.mark.parametrize(
    "line",
    [
        "minus three ropes",
        "-7 ropes, and a map",
        "0.5 ropes please",
        "a third of one of your ropes",
        "two point five ropes",
        "an endless rope",
        "infinitely many ropes",
        "0 ropes, thanks",
        "rope x -4",
        "rope, quantity: NaN",
        "rope (infinite)",
        "negative twenty-two ropes",
        "a third of one of your ropes",
        "minus three of your finest ropes",
        ".5 ropes",
        "point five ropes",
        "give me -3 good ropes",
    ],
)
def test_a_number_that_nobody_can_buy_is_marked_as_none(line):
    assert f"{{{ROPE} x?}}" in heard(line)


@pytest.mark.parametrize(
    "line",
    [
        "three ropes",
        "half a dozen ropes",
        "half the ropes",
        "- 30 ropes - 2 lanterns",
        "rope - 3",
        "ropes at 0.5 each",
        "rope, -10%",
        "rope -10% and we have a deal",
        "rope for 12.50",
        "everything minus the rope",
        "10 ropes",
        "no, the rope",
        "I have 0 ropes left so give me three",
        "I have half of one rope, sell me 4 more",
        "hello, I need: -2 ropes -3 simple lanterns",
        "rope-2, lantern-3",
        "1 rope -2 simple lanterns",
        "I'll take the rope -5 gold",
        "one rope: 12.50, deal?",
        "price 12.50 (rope)",
        "5 minus 2 ropes",
        "all the ropes minus two of the ropes",
        "2.0 ropes",
        "for my nan rope please",
    ],
)
def test_what_only_looks_like_one_is_not(line):
    assert "x?" not in heard(line)


def test_other_goods_of_the_line_keep_their_numbers():
    line = heard("two simple lanterns and minus three ropes")
    assert "{Simple Lantern x2}" in line and f"{{{ROPE} x?}}" in line


def test_minus_two_of_what_lies_in_the_cart_is_two_less():
    assert "x?" not in heard("minus two ropes", {"rope_01": 4})


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("0.5 mm Drill Bit", "a 0.5 mm drill bit"),
        ("Zero Sugar Cola", "zero cola"),
        ("Infinite Scroll", "infinity scroll"),
        ("Endless Notebook", "three endless notebooks"),
        (".45 Revolver", "a .45 revolver"),
    ],
)
def test_a_number_that_belongs_to_the_name_is_none_of_pieces(name, line):
    world = named_world("frontier_shop")
    items = [*world.items, Item(item_id="own", item_name=name, price=5, quantity=9)]
    session = Session(World.model_validate(world.model_dump() | {"items": items}))
    assert f"{{{name}" in session.linked_line(line) and "x?" not in session.linked_line(line)
    assert not session.uncountable(line)


def test_a_long_line_is_read_at_once():
    session = Session(named_world("frontier_shop"))
    session.linked_line("rope")
    began = perf_counter()
    for line in ("-" * 490, "minus " * 80, "0." * 245, "half of a " * 48 + "rope", "rope x -" * 60):
        session.linked_line(line)
    assert perf_counter() - began < 1
