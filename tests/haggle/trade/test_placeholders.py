"""Placeholder post-processing: what code says in the model's line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haggle.trade.placeholders import ALL, CART, PRICE, PRICES, fill, unfill, used


def test_every_placeholder_is_replaced_by_its_value():
    values = {name: f"<{name.strip('_')}>" for name in ALL}
    text = " ".join(ALL)
    assert fill(text, values) == "<PRICE> <CART> <ITEMS> <PRICES> <CURRENCY>"
    assert used(text) == set(ALL)


@pytest.mark.parametrize(
    "written", ["__PRICE__", "_PRICE_", "__PRICE_", "_PRICE__", "PRICE__", "__PRICE"]
)
def test_a_dropped_underscore_is_forgiven(written):
    assert used(f"only {written} gold") == {PRICE}
    assert fill(f"only {written} gold", {PRICE: "120"}) == "only 120 gold"


@pytest.mark.parametrize("word", ["PRICE", "MY_PRICE", "PRICELESS_", "the price", "__PRICETAG__"])
def test_words_that_only_look_alike_stay(word):
    assert used(word) == set() and fill(word, {PRICE: "120"}) == word


def test_prices_is_not_price():
    assert used("__PRICES__") == {PRICES}
    assert fill("__PRICES__", {PRICES: "a for 1", PRICE: "9"}) == "a for 1"


def test_a_placeholder_without_a_value_leaves_no_gap():
    assert fill("Take __CART__ now", {}) == "Take now"


@given(st.text(), st.text(st.characters(categories=["Nd"]), min_size=1))
def test_after_filling_no_placeholder_is_left(text, number):
    assert used(fill(f"{text} {PRICE} {CART}", dict.fromkeys(ALL, number))) == set()


@pytest.mark.parametrize(
    ("line", "price", "expected"),
    [
        ("That is 340 gold.", "340", "That is __PRICE__ gold."),
        ("1,200 gold, for 12 of them", "1200", "__PRICE__ gold, for 12 of them"),
        ("3400 or 340.5 or 1340", "340", "3400 or 340.5 or 1340"),
        ("340, take it. 340!", "340", "__PRICE__, take it. __PRICE__!"),
        ("nothing named", None, "nothing named"),
    ],
)
def test_a_finished_line_gets_its_placeholder_back(line, price, expected):
    assert unfill(line, price) == expected
