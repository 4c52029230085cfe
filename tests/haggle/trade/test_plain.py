"""An order that the words bear out is not asked about, whatever the model thinks of it."""

from __future__ import annotations

from typing import Any

import pytest

from haggle.trade.asking import question
from haggle.trade.session import Session
from haggle.trade.wire import Proposal
from haggle.trade.world import Item

FULL = {"axe": 2, "potion": 3, "rope": 9}


@pytest.fixture
def shop(stall: Any) -> Any:
    """A stall that sells two kinds of lamps as well."""
    lamps = [
        Item(item_id="brass", item_name="Brass Lamp", price=20, quantity=9),
        Item(item_id="deck", item_name="Deck Lamp", price=9, quantity=9),
    ]
    return stall.model_copy(update={"items": [*stall.items, *lamps]})


def order(shop: Any, line: str, cart: Any, held: Any = None, shown: Any = ()) -> Any:
    """What a line's words make of the order that a model reads in it; None where it is to ask."""
    session = Session(shop)
    session.cart = dict(held or {})
    session.shown = shown
    session.state = "SHOW_ITEMS" if shown else ""
    names = {item.item_id: item.item_name for item in shop.items}
    asked = tuple((names[i], number) for i, number in cart.items())
    found = question(session, line, Proposal(last="", state="OFFER_SELL", say="", cart=asked))
    ids = {name: i for i, name in names.items()}
    if not isinstance(found, Proposal):
        return None
    return {ids[name]: number for name, number in found.cart or ()}


@pytest.mark.parametrize(
    ("line", "cart", "held"),
    [
        ("Two axes and three ropes, please.", {"axe": 2, "rope": 3}, {}),
        ("An axe and a map.", {"axe": 1, "map": 1}, {}),
        ("And the potion with it. Then yes, I'll take them.", {"axe": 1, "potion": 1}, {"axe": 1}),
        ("So one axe, two potion", {"axe": 1, "potion": 2}, {"axe": 1}),
        ("No map! Only two ropes and the axe.", {"axe": 1, "rope": 2}, {"axe": 1, "map": 1}),
        ("One more rope, please.", {"rope": 3}, {"rope": 2}),
        ("It's three potions and only one rope.", {"potion": 3, "rope": 1}, {"rope": 3}),
    ],
)
def test_an_order_in_plain_words_is_done(shop: Any, line: str, cart: Any, held: Any) -> None:
    assert order(shop, line, cart, held) == cart


@pytest.mark.parametrize(
    ("line", "cart", "right"),
    [
        ("Two axes and a rope.", {"axe": 2, "rope": 2}, {"axe": 2, "rope": 1}),
        ("Two axes, three potions, nine ropes.", {"axe": 2, "potion": 9}, FULL),
    ],
)
def test_where_the_words_say_another_order_it_is_theirs(
    shop: Any, line: str, cart: Any, right: Any
) -> None:
    assert order(shop, line, cart) == right


@pytest.mark.parametrize(
    ("line", "cart", "held"),
    [
        ("Is the axe any good?", {"axe": 1}, {}),
        ("how much is the rope", {"rope": 1}, {}),
        ("The rope is for a boat.", {"rope": 1}, {}),
        ("Two axes for three men.", {"axe": 2}, {}),
        ("An axe, and a lamp.", {"axe": 1, "brass": 1}, {}),
        ("Two axes, not the rope.", {"axe": 2, "rope": 1}, {}),
        ("A rope each for three men.", {"rope": 1}, {}),
        ("Double the ropes.", {"rope": 4}, {"rope": 2}),
        ("Just the two ropes.", {"axe": 1, "rope": 2}, {"axe": 1}),
        ("Two axes.", {"axe": 2}, {"map": 1}),
        ("I want something for a cut. And an axe.", {"axe": 1, "potion": 1}, {}),
        ("Maybe two ropes, let me think.", {"rope": 2}, {}),
        ("I'll never need two ropes.", {"rope": 2}, {}),
        ("If I take two ropes.", {"rope": 2}, {}),
        ("I have two ropes already and an axe.", {"rope": 2, "axe": 1}, {}),
        ("A rope or an axe.", {"rope": 1}, {}),
        ("He bought two ropes here yesterday.", {"rope": 2}, {}),
        ("Good morning. Cold, is it not? Two axes, six ropes.", {"axe": 2, "rope": 6}, {}),
        ("Two ropes hang on your wall.", {"rope": 2}, {}),
        ("Two ropes. Kidding!", {"rope": 2}, {}),
        ("Tomorrow I will take two ropes.", {"rope": 2}, {}),
        ("Cancel three ropes.", {"rope": 3}, {"rope": 5}),
        ("Three ropes as well.", {"rope": 3}, {"rope": 2}),
        ("Three lamps: one brass lamp, two deck lamps.", {"brass": 1, "deck": 2}, {}),
        ("My brother has two ropes.", {"rope": 2}, {}),
    ],
)
def test_where_words_leave_something_open_it_is_asked(
    shop: Any, line: str, cart: Any, held: Any
) -> None:
    assert order(shop, line, cart, held) is None


def test_a_word_for_two_goods_is_the_one_in_view_or_in_the_order(shop: Any) -> None:
    line, cart = "Three lamps, please.", {"deck": 3}
    assert order(shop, line, cart) is None
    assert order(shop, line, cart, shown=("Deck Lamp",)) == cart
    assert order(shop, line, cart, held={"deck": 1}) == cart
    assert order(shop, "One lamp and five deck lamps.", {"brass": 1, "deck": 5}) is None


def test_what_is_pointed_at_is_the_only_good_in_view(shop: Any) -> None:
    line, cart = "Nine of those and three potions.", {"rope": 9, "potion": 3}
    assert order(shop, line, {"rope": 3, "potion": 3}, shown=("Sturdy Rope (20m)",)) == cart
    assert order(shop, line, cart, shown=("Sturdy Rope (20m)", "Local Map")) is None
