"""Orders told by another one: "the same again", "double the lot", "two of everything"; and goods
that come back because they are missed."""

from __future__ import annotations

import pytest

from .conftest import CHAT, REVIEW, Talk, change, order, show

LAMP = ("a table lamp", order(Table_Lamp=1))
THREE = ("two bottles of lamp oil and a coil of rope", order(Bottle_of_Lamp_Oil=2, Coil_of_Rope=1))
SOLD = (
    LAMP,
    ("that's all", REVIEW),
    ("yes", {"state": "COMMIT_SALE"}),
)


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("oh, and my brother wants the same again", CHAT),
        ("two friends came. Same again!", order(Coil_of_Rope=2)),
        ("May I have the same again for my sister?", show("Coil of Rope")),
    ],
)
def test_the_same_again_is_what_was_sold(talk: Talk, line, decided) -> None:
    assert talk(*SOLD, (line, decided)).cart == {"table_lamp": 1}


@pytest.mark.parametrize(
    "line",
    [
        "I would never drink the same again",
        "is the price the same again tomorrow?",
        "the same again, but in brass",
        "not the same again, thank you",
    ],
)
def test_no_order_is_made_of_words_about_the_same(talk: Talk, line) -> None:
    assert talk(*SOLD, (line, CHAT)).cart == {}


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("Double the lot!", change(Coil_of_Rope="x2"), {"bottle_of_lamp_oil": 4, "coil_of_rope": 2}),
        ("my cousins come too. Double it all, will you?", CHAT,
         {"bottle_of_lamp_oil": 4, "coil_of_rope": 2}),
        ("same again for my brother", change(Coil_of_Rope=2),
         {"bottle_of_lamp_oil": 4, "coil_of_rope": 2}),
        ("No no, dear. Three of everything.", change(Coil_of_Rope=3),
         {"bottle_of_lamp_oil": 3, "coil_of_rope": 3}),
        ("one more of everything, then", CHAT, {"bottle_of_lamp_oil": 3, "coil_of_rope": 2}),
        ("Four of each.", CHAT, {"bottle_of_lamp_oil": 4, "coil_of_rope": 4}),
    ],
)  # fmt: skip
def test_a_whole_order_is_changed(talk: Talk, line, decided, cart) -> None:
    turn = talk(THREE, (line, decided))
    assert (turn.state, turn.cart) == ("OFFER_SELL", cart)


@pytest.mark.parametrize(
    "line",
    [
        "if I doubled the lot, what would you charge?",
        "my uncle paid double the price, twice everything he had",
        "I don't want two of everything",
        "there were two of each on the ark, but what a smell",
        "they doubled everything next door",
    ],
)
def test_words_about_whole_orders_change_none(talk: Talk, line) -> None:
    assert talk(THREE, (line, CHAT)).cart == {"bottle_of_lamp_oil": 2, "coil_of_rope": 1}


def test_what_is_sold_out_is_not_sold_again(talk: Talk) -> None:
    five = ("five pairs of sea boots", order(Sea_Boots=5))
    turn = talk(five, *SOLD[1:], ("the same again", CHAT))
    assert turn.cart == {"sea_boots": 1}


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("where's my rope?", show("Coil of Rope")),
        ("Where is my rope?", change(Coil_of_Rope=1)),
        ("hey, you dropped the rope!", change(Coil_of_Rope=1)),
        ("the coils of rope are gone again", change(Coil_of_Rope=1)),
    ],
)
def test_goods_that_a_line_misses_come_back_in_their_number(talk: Talk, line, decided) -> None:
    first = ("three coils of rope and a table lamp", order(Coil_of_Rope=3, Table_Lamp=1))
    lost = ("only the lamp after all", change(Coil_of_Rope=0))
    assert talk(first, lost, (line, decided)).cart == {"table_lamp": 1, "coil_of_rope": 3}


def test_what_was_never_ordered_is_not_missed(talk: Talk) -> None:
    assert talk(LAMP, ("where is the rope?", show("Coil of Rope"))).cart == {"table_lamp": 1}
    assert talk(LAMP, ("where is the rope?", change(Coil_of_Rope=1))).state == "SHOW_ITEMS"


FEW = (
    ("a table lamp, three coils of rope and two bottles of lamp oil",
     order(Table_Lamp=1, Coil_of_Rope=3, Bottle_of_Lamp_Oil=2)),
    ("no rope and no oil after all", change(Coil_of_Rope=0, Bottle_of_Lamp_Oil=0)),
)  # fmt: skip
ALL = {"table_lamp": 1, "coil_of_rope": 3, "bottle_of_lamp_oil": 2}


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("hm, put them all back please", change(Table_Lamp=0), ALL),
        ("I want everything I had before", change(Table_Lamp=2), ALL),
        ("bring the others back", change(Coil_of_Rope=1), ALL),
        ("ah, and the rope after all", change(Coil_of_Rope=1),
         {"table_lamp": 1, "coil_of_rope": 3}),
        ("ah, and one coil of rope after all", change(Coil_of_Rope=1),
         {"table_lamp": 1, "coil_of_rope": 1}),
        ("the rope is gone. I asked for it", change(Table_Lamp=0),
         {"table_lamp": 1, "coil_of_rope": 3}),
    ],
)  # fmt: skip
def test_goods_that_were_taken_out_come_back(talk: Talk, line, decided, cart) -> None:
    assert talk(*FEW, (line, decided)).cart == cart


@pytest.mark.parametrize(
    "line",
    [
        "nothing is missing, thank you",
        "I'll be back",
        "my back hurts today",
        "my ship was lost in May",
    ],
)
def test_words_about_what_is_gone_bring_nothing_back(talk: Talk, line) -> None:
    assert talk(*FEW, (line, CHAT)).cart == {"table_lamp": 1}


def test_what_goes_back_on_the_shelf_brings_nothing_back(talk: Talk) -> None:
    assert "coil_of_rope" not in talk(*FEW, ("put them back on the shelf for now", CHAT)).cart


def test_what_was_sold_does_not_come_back_as_a_new_order(talk: Talk) -> None:
    assert talk(*SOLD, ("put it all back", CHAT)).cart == {}
    assert talk(*SOLD, ("and a coil of rope", order(Coil_of_Rope=1))).cart == {"coil_of_rope": 1}


@pytest.mark.parametrize(
    "line",
    [
        "my uncle bought two coils of rope here last year",
        "Yesterday two sea boots stood by my door.",
        "I would have taken the sea boots, years back",
    ],
)
def test_remarks_about_the_past_order_nothing(talk: Talk, line) -> None:
    goods = order(Coil_of_Rope=2) if "rope" in line else order(Sea_Boots=2)
    assert not talk((line, goods)).cart


def test_what_was_bought_before_may_be_wanted_again(talk: Talk) -> None:
    line = "I bought a coil of rope last year. Now I need two more"
    assert talk((line, order(Coil_of_Rope=2))).cart == {"coil_of_rope": 2}


def test_the_cheapest_good_is_ordered_by_its_price(talk: Talk) -> None:
    turn = talk(LAMP, ("and add the cheapest thing you have", CHAT))
    assert turn.cart == {"table_lamp": 1, "cough_syrup": 1}
    assert talk(("give me the cheapest boots", show("Sea Boots"))).cart == {"ankle_boots": 1}


def test_a_remark_does_not_empty_the_order(talk: Talk) -> None:
    turn = talk(LAMP, ("a lamp burned in my nursery", change(Table_Lamp=0)))
    assert turn.cart == {"table_lamp": 1}
