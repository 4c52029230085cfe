"""Orders changed by words that are easily taken for others: "in total", "back on", "both"."""

from __future__ import annotations

import pytest

from haggle.grammar.json_text import to_json
from haggle.language.english.linker import English
from haggle.trade.merchant import Merchant
from haggle.trade.methods import get_method
from haggle.trade.session import Session
from haggle.trade.world import World
from serving.engines.scripted import ScriptedEngine

from .conftest import Talk, change, order, show

OIL = (
    "twelve bottles of lamp oil and a coil of rope",
    order(Bottle_of_Lamp_Oil=12, Coil_of_Rope=1),
)
PAIR = ("two bottles of lamp oil and the sea boots", order(Bottle_of_Lamp_Oil=2, Sea_Boots=1))
BOOTS = ("the sea boots and the ankle boots", order(Sea_Boots=1, Ankle_Boots=1))


@pytest.mark.parametrize(
    "line",
    [
        "Nine in total, not nine more.",
        "nine altogether, I counted again",
        "no no, nine all told",
        "9 total",
    ],
)
def test_a_number_of_all_pieces_is_no_price(talk: Talk, line) -> None:
    assert talk(OIL, (line, change(Bottle_of_Lamp_Oil=9))).cart["bottle_of_lamp_oil"] == 9


@pytest.mark.parametrize("line", ["the whole order for 9 pence in total", "9 pence total"])
def test_a_number_of_coins_counts_no_pieces(talk: Talk, line) -> None:
    assert talk(OIL, (line, change(Bottle_of_Lamp_Oil=9))).cart["bottle_of_lamp_oil"] == 12


def test_more_behind_any_other_word_adds_nothing(talk: Talk) -> None:
    line = "My aunt says two lanterns is more safe. Please make it so."
    before = ("a storm lantern", order(Storm_Lantern=1))
    assert talk(before, (line, change(Storm_Lantern=2))).cart == {"storm_lantern": 2}
    assert talk(before, ("two more lanterns", change(Storm_Lantern=2))).cart == {"storm_lantern": 3}


@pytest.mark.parametrize(
    "line", ["Hm, put the third oil back on.", "Put that oil back in, please, so three."]
)
def test_what_is_put_back_in_stays(talk: Talk, line) -> None:
    turn = talk(PAIR, (line, change(Bottle_of_Lamp_Oil="+1")))
    assert turn.cart == {"bottle_of_lamp_oil": 3, "sea_boots": 1}


def test_what_is_put_back_on_the_shelf_goes(talk: Talk) -> None:
    line = "put the sea boots back on the shelf"
    assert talk(PAIR, (line, change(Sea_Boots=0))).cart == {"bottle_of_lamp_oil": 2}


LAMP = ("show me the table lamp", show("Table Lamp"))


@pytest.mark.parametrize(
    ("line", "decided", "left"),
    [
        (
            "I will take one. And the sea boots, do they pinch?",
            order(Table_Lamp=1, Sea_Boots=1),
            {"table_lamp": 1},
        ),
        ("Two, then. Is the lamp heavy?", order(Table_Lamp=2), {"table_lamp": 2}),
        ("Are the sea boots any good? I take one", order(Sea_Boots=1), {"sea_boots": 1}),
    ],
)
def test_a_number_before_a_question_does_not_order_what_it_asks_about(
    talk: Talk, line, decided, left
) -> None:
    assert talk(LAMP, (line, decided)).cart == left


EMPTIED = {"state": "CASUAL", "cart": []}


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("The boots I'd rather not. Cancel that.", {"bottle_of_lamp_oil": 2}),
        ("cancel that, keep the sea boots", {"sea_boots": 1}),
        ("Cancel the whole order, the boots leak.", {}),
        ("Cancel that.", {}),
    ],
)
def test_an_order_is_emptied_only_of_what_the_line_names(talk: Talk, line, left) -> None:
    assert talk(PAIR, (line, EMPTIED)).cart == left


@pytest.mark.parametrize(
    ("line", "decided", "left"),
    [
        ("All boots off, please.", change(Sea_Boots=0, Ankle_Boots=0), {}),
        ("both boots, then", order(Sea_Boots=1, Ankle_Boots=1), {"sea_boots": 1, "ankle_boots": 1}),
    ],
)
def test_a_word_for_several_means_each_of_them(store: World, line, decided, left) -> None:
    session = Session(store, method=get_method("astp-stepwise"), linker=English())
    if not left:
        session.settle("OFFER_SELL", {"sea_boots": 1, "ankle_boots": 1}, None)
    assert session.named(line) == {"sea_boots", "ankle_boots"}
    engine = ScriptedEngine([to_json({"last": session.last} | decided), *['{"say":"Hm."}'] * 3])
    assert Merchant(engine).reply(session, line).cart == left
