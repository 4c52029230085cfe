"""Who asks for goods by a name that nothing here has is told so, whatever the model shows."""

from __future__ import annotations

import pytest

from haggle.trade.language import patterns
from haggle.trade.missing import asked_in_vain


@pytest.fixture
def customer(visit):
    return visit(method="astp-stepwise")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("do you sell any saffron?", "saffron"),
        ("Have you got any dried figs for a cake?", "dried figs"),
        ("got any cinnamon?", "cinnamon"),
        ("Is it true that you carry telescopes?", "telescopes"),
    ],
)
def test_the_goods_shown_instead_come_with_the_word(customer, line, name):
    turn = customer.turn("SHOW_ITEMS", "", line, show=["Local Map"])
    assert f"I have nothing called {name}." in turn.says and not turn.failed
    assert turn.state == "SHOW_ITEMS" and turn.cart == {}


def test_small_talk_says_so_as_well(customer):
    turn = customer.turn("CASUAL", "", "do you stock umbrellas?")
    assert turn.state == "CASUAL" and turn.says.endswith("I have nothing called umbrellas.")


@pytest.mark.parametrize(
    "line",
    [
        "do you sell any rope?",
        "do you sell sturdy things?",
        "have you got any more?",
        "do you have any better maps?",
        "got any news?",
        "do you sell elemental wands?",
        "what do you sell?",
        "do you sell medicine?",
        "I never said you sell junk",
        "you sell the best of all, I hear",
        "have you something for my knees?",
    ],
)
def test_goods_that_are_here_and_what_is_no_goods_are_not_missed(customer, line):
    assert not asked_in_vain(customer.session, line, (*patterns.ASKED, patterns.ASKED_BRIEFLY))


def test_an_order_is_carried_out_as_it_is(customer):
    line = "do you sell saffron? no? two axes then"
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Sharp Axe", 2]])
    assert turn.cart == {"axe": 2} and "saffron" not in turn.says


def test_markup_in_a_name_is_not_repeated(customer):
    turn = customer.turn(
        "SHOW_ITEMS", "", "do you sell __PRICE__<b>saffron</b>?", show=["Local Map"]
    )
    assert "__" not in turn.says and "<" not in turn.says


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("one axe, and is there a bulk rate?", False),
        ("one axe and an elven sword", True),
        ("one axe and an elfen swrd", True),
    ],
)
def test_what_only_the_model_speaks_of_is_not_refused(customer, line, told):
    cart = [["Sharp Axe", 1], ["?elven sword", 1]]
    turn = customer.turn("OFFER_SELL", "", line, cart=cart)
    assert len(turn.cart) == 1 and ("elven sword" in turn.says) is told
