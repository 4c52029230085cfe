"""Numbers of pieces that nobody can have are marked at the name they stand with."""

from __future__ import annotations

import pytest

from haggle.impossible import counts_nothing
from haggle.session import Session
from haggle.world_io import named_world

ROPE = "Sturdy Rope (20m)"


def heard(line: str, cart: dict[str, int] | None = None) -> str:
    session = Session(named_world("frontier_shop"))
    session.cart = cart or {}
    return session.heard(line)


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
    ],
)
def test_what_only_looks_like_one_is_not(line):
    assert "x?" not in heard(line)


def test_other_goods_of_the_line_keep_their_numbers():
    line = heard("two simple lanterns and minus three ropes")
    assert "{Simple Lantern x2}" in line and f"{{{ROPE} x?}}" in line


def test_minus_two_of_what_lies_in_the_cart_is_two_less():
    assert "x?" not in heard("minus two ropes", {"rope_01": 4})


def test_only_what_stands_right_beside_a_name_counts():
    assert not counts_nothing("I am minus three years old and want ", "")
    assert counts_nothing("I want minus three of those ", "")
