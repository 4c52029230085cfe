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


def test_goods_with_a_number_that_the_model_passes_over_come_in(visit: Any) -> None:
    line = "two axes, one local map and 3 mana potions"
    turn = visit().turn("OFFER_SELL", "", line, cart=[["Sharp Axe", 2]])
    assert turn.cart == {"axe": 2, "map": 1, "potion": 3} and not turn.withheld


def test_goods_without_a_number_that_the_model_passes_over_are_asked_about(visit: Any) -> None:
    customer = visit()
    turn = customer.turn("OFFER_SELL", "", "sharp axe, local map", cart=[["Sharp Axe", 1]])
    assert turn.cart == {"axe": 1} and turn.withheld == "asked_goods"
    assert "Local Map" in turn.says
    assert customer.turn("CASUAL", "", "yes").cart == {"axe": 1, "map": 1}


def test_what_a_line_rules_out_or_asks_about_is_not_passed_over(visit: Any) -> None:
    for line in ("two axes, not the map", "is one map as good as two axes?"):
        turn = visit().turn("OFFER_SELL", "", line, cart=[["Sharp Axe", 2]])
        assert "map" not in turn.cart and not turn.withheld
