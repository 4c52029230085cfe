"""Numbers of pieces come from the player's words, not from a model's."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def customer(visit: Any) -> Any:
    """A customer with four potions in the cart."""
    found = visit(method="astp-stepwise")
    found.turn("OFFER_SELL", "", "four mana potions", cart=[["Mana Potion", 4]])
    return found


@pytest.mark.parametrize(
    ("line", "asked", "left"),
    [
        ("Hold it. Take three out.", 3, 1),
        ("could you take one off, so that I have fewer", 2, 3),
        ("lose two of the potions", 4, 2),
        ("put one of them back", 2, 3),
        ("drop the potions to two", 2, 2),  # no number taken out
        ("make it two", 2, 2),
    ],
)
def test_so_many_are_taken_out(customer: Any, line: str, asked: int, left: int) -> None:
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Mana Potion", asked]])
    assert turn.cart == {"potion": left}


def test_taking_some_out_is_not_taking_all_out(customer: Any) -> None:
    turn = customer.turn("OFFER_SELL", "", "take one of them out", cart=[])
    assert turn.cart == {"potion": 3}


def test_a_number_that_nobody_said_is_one(visit: Any) -> None:
    customer = visit(method="astp-stepwise")
    turn = customer.turn("OFFER_SELL", "", "I want the rope", cart=[["Sturdy Rope (20m)", 10]])
    assert turn.cart == {"rope": 1}


def test_a_number_may_be_worked_out_or_come_from_an_earlier_line(visit: Any) -> None:
    customer = visit(method="astp-stepwise")
    line = "ropes for two men, three each"
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Sturdy Rope (20m)", 6]])
    assert turn.cart == {"rope": 6}
    customer = visit(method="astp-stepwise")
    customer.turn("CASUAL", "", "we are eight")
    turn = customer.turn("OFFER_SELL", "", "ropes then", cart=[["Sturdy Rope (20m)", 8]])
    assert turn.cart == {"rope": 8}


def test_a_bid_is_no_number_of_pieces(visit: Any) -> None:
    customer = visit(method="astp-stepwise")
    line = "the rope, I'll give you six for it"
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Sturdy Rope (20m)", 6]])
    assert turn.cart == {"rope": 1} and customer.session.sale_price < 7.5


def test_the_number_goes_over_to_what_takes_the_place(customer: Any) -> None:
    line = "remove the potion, I want rope"
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Sturdy Rope (20m)", 9]])
    assert turn.cart == {"rope": 4}


@pytest.mark.parametrize(
    ("line", "goods"),
    [
        ("two axes and 3 mana potions", {"potion": 3}),
        ("two axes, local map", {"map": 1}),
        ("two axes for my sons, and give me a local map", {"map": 1}),
    ],
)
def test_goods_that_are_ordered_by_name_and_passed_over_are_added(
    visit: Any, line: str, goods: dict[str, int]
) -> None:
    turn = visit().turn("OFFER_SELL", "", line, cart=[["Sharp Axe", 2]])
    assert turn.cart == {"axe": 2} | goods and not turn.withheld


def test_goods_that_are_only_named_are_neither_added_nor_asked_about(visit: Any) -> None:
    line = "two axes. A local map hangs in my hall"
    turn = visit().turn("OFFER_SELL", "", line, cart=[["Sharp Axe", 2]])
    assert turn.cart == {"axe": 2} and not turn.withheld


@pytest.mark.parametrize(
    "line",
    [
        "two axes, not the map",
        "don't give me two maps, just two axes",
        "two axes. No need for 3 mana potions",
        "I already have two local maps at home, give me two axes",
        "two axes rather than two local maps",
        "two axes and no maps",
        "two axes. tell me about the local map",
    ],
)
def test_what_a_line_does_not_want_is_not_passed_over(visit: Any, line: str) -> None:
    turn = visit().turn("OFFER_SELL", "", line, cart=[["Sharp Axe", 2]])
    assert turn.cart == {"axe": 2} and not turn.withheld
