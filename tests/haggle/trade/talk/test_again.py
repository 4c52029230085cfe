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
        ("ah, and the rope again, as before", change(Coil_of_Rope=1),
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


@pytest.mark.parametrize(
    "line",
    [
        "I've told you twice, that's all I need",
        "thirty? that is twice what it's worth",
        "I'd think twice about it",
        "does it burn twice as long?",
        "let me look once more",
        "what was it one more time?",
        "do you have another set?",
        "that one is 2 x 3 feet, I think",
        "it will last me three times as long",
        "captain! say it again",
    ],
)
def test_remarks_multiply_nothing(talk: Talk, line) -> None:
    assert talk(LAMP, (line, CHAT)).cart == {"table_lamp": 1}


@pytest.mark.parametrize(
    "line",
    [
        "what was the order again?",
        "go over the list again please",
        "could I get the list again please",
        "can I hear it all again?",
        "I checked everything twice",
    ],
)
def test_who_wants_to_hear_the_order_again_gets_no_more_of_it(talk: Talk, line) -> None:
    assert talk(THREE, (line, CHAT)).cart == {"bottle_of_lamp_oil": 2, "coil_of_rope": 1}


@pytest.mark.parametrize("line", ["thanks once more, goodbye", "I will come by once more"])
def test_a_farewell_orders_nothing_again(talk: Talk, line) -> None:
    assert talk(*SOLD, (line, CHAT)).cart == {}


def test_one_of_each_means_the_goods_just_shown(talk: Talk) -> None:
    boots = ("what boots have you?", show("Sea Boots", "Ankle Boots"))
    both = order(Sea_Boots=1, Ankle_Boots=1)
    cart = talk(THREE, boots, ("one of each, please", both)).cart
    assert cart.keys() >= {"sea_boots", "ankle_boots"}


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("can I bring it back if it doesn't fit?", CHAT),
        ("I'll bring them back tomorrow if they don't work", CHAT),
        ("is that everything I ordered?", CHAT),
        ("how come there's rope in the harbour?", CHAT),
    ],
)
def test_questions_bring_nothing_back(talk: Talk, line, decided) -> None:
    assert talk(*FEW, (line, decided)).cart == {"table_lamp": 1}


def test_goods_that_were_only_asked_about_are_not_missed(talk: Talk) -> None:
    asked = ("how much would five coils of rope be?", show("Coil of Rope"))
    assert talk(LAMP, asked, ("where is the rope from?", show("Coil of Rope"))).cart == {
        "table_lamp": 1
    }


@pytest.mark.parametrize(
    "line",
    [
        "I never asked for the rope",
        "how come the rope is there? I don't want it",
        "how come there's rope on the list? Remove it",
    ],
)
def test_goods_that_a_line_will_not_have_leave_the_order(talk: Talk, line) -> None:
    turn = talk(THREE, (line, change(Coil_of_Rope=0)))
    assert turn.cart == {"bottle_of_lamp_oil": 2}


def test_what_leaves_beside_what_is_missed_leaves(talk: Talk) -> None:
    line = "where's my rope? and take the lamp out"
    assert talk(*FEW, (line, change(Table_Lamp=0, Coil_of_Rope=3))).cart == {"coil_of_rope": 3}


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("one storm lantern for my brother, he has a boat", order(Storm_Lantern=1),
         {"storm_lantern": 1}),
        ("a coil of rope, my boat has a hole", order(Coil_of_Rope=1), {"coil_of_rope": 1}),
        ("two coils of rope for my late brother's boat", order(Coil_of_Rope=2),
         {"coil_of_rope": 2}),
        ("three coils of rope like last time", order(Coil_of_Rope=3), {"coil_of_rope": 3}),
        ("I lost my lantern yesterday, so one storm lantern", order(Storm_Lantern=1),
         {"storm_lantern": 1}),
        ("my son broke his lamp last night, one table lamp", order(Table_Lamp=1),
         {"table_lamp": 1}),
    ],
)  # fmt: skip
def test_a_story_beside_an_order_takes_nothing_from_it(talk: Talk, line, decided, cart) -> None:
    assert talk((line, decided)).cart == cart


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("two coils of rope and the cheapest boots, please",
         order(Coil_of_Rope=2, Ankle_Boots=1), {"coil_of_rope": 2, "ankle_boots": 1}),
        ("I have 50 pence, give me the cheapest boots", order(Ankle_Boots=1), {"ankle_boots": 1}),
        ("I don't want the cheapest, give me a storm lantern", order(Storm_Lantern=1),
         {"storm_lantern": 1}),
        ("I'll have a coil of rope, dearest", order(Coil_of_Rope=1), {"coil_of_rope": 1}),
        ("For our dearest friend I want a table lamp", order(Table_Lamp=1), {"table_lamp": 1}),
        ("I need the cheapest way home", CHAT, {}),
    ],
)  # fmt: skip
def test_other_goods_stay_beside_the_cheapest(talk: Talk, line, decided, cart) -> None:
    assert talk((line, decided)).cart == cart


def test_a_question_for_the_cheapest_keeps_the_order_beside_it(talk: Talk) -> None:
    line = "one coil of rope as well, and which boots are the cheapest?"
    turn = talk(LAMP, (line, change(Coil_of_Rope=1)))
    assert turn.cart == {"table_lamp": 1, "coil_of_rope": 1}


def test_the_lowest_price_is_no_good(talk: Talk) -> None:
    for line in ("what's the lowest price you can do?", "Is that your lowest price?"):
        turn = talk(LAMP, (line, {"state": "NEGOTIATE", "bid": None}))
        assert (turn.state, turn.cart) == ("NEGOTIATE", {"table_lamp": 1})


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("I'll take 12", order(Coil_of_Rope=12), {"coil_of_rope": 9}),
        ("12 please", order(Coil_of_Rope=12), {"coil_of_rope": 9}),
    ],
)
def test_more_than_the_stock_is_as_much_as_there_is(talk: Talk, line, decided, cart) -> None:
    shown = ("what is the rope?", show("Coil of Rope"))
    assert talk(shown, (line, decided)).cart == cart


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("Could you double the lamp oil?", change(Bottle_of_Lamp_Oil=4),
         {"bottle_of_lamp_oil": 4, "coil_of_rope": 1}),
        ("can we do without the rope?", change(Coil_of_Rope=0), {"bottle_of_lamp_oil": 2}),
        ("can I get rid of the rope?", change(Coil_of_Rope=0), {"bottle_of_lamp_oil": 2}),
        ("could the rope go?", change(Coil_of_Rope=0), {"bottle_of_lamp_oil": 2}),
    ],
)  # fmt: skip
def test_polite_requests_are_carried_out(talk: Talk, line, decided, cart) -> None:
    assert talk(THREE, (line, decided)).cart == cart


def test_what_goods_are_for_is_not_ordered(talk: Talk) -> None:
    for line in (
        "I'll take a coil of rope for my storm lantern",
        "give me a coil of rope to tie a storm lantern to the mast",
    ):
        assert talk((line, order(Coil_of_Rope=1))).cart == {"coil_of_rope": 1}


def test_like_goods_that_are_left_out_are_asked_for(talk: Talk) -> None:
    line = "a pair of sea boots and a pair of ankle boots, please"
    turn = talk((line, order(Sea_Boots=1)))
    assert turn.withheld == "asked_goods" or turn.cart.keys() == {"sea_boots", "ankle_boots"}
