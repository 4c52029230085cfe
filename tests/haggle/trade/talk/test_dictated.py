"""Lines as they are dictated or typed in haste, without marks; and what a rule must leave alone
where the model is right."""

from __future__ import annotations

import pytest

from .conftest import CHAT, REVIEW, Talk, change, order, show
from .test_goods_asked_about import shown

PAIR = ("two lamp oils and a pair of sea boots", order(Bottle_of_Lamp_Oil=2, Sea_Boots=1))
SYRUP = ("how is the cough syrup?", show("Cough Syrup"))
LANTERN = ("how is the storm lantern?", show("Storm Lantern"))


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("The coil of rope, good woman, what is it made for?", "Coil of Rope"),
        ("You go on about that light! Tell me of the coil of rope, what does it bear?", "Coil of Rope"),
        ("Is it the table lamp, perhaps?", "Table Lamp"),
        ("no no not the lantern I want to hear about the cough syrup please what is in it", "Cough Syrup"),
        ("it isn't the lantern dear I meant the cough syrup is there any sugar in that", "Cough Syrup"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("meaning", [False, True])
def test_a_question_is_about_what_it_names(talk: Talk, line, name, meaning) -> None:
    assert shown(talk(LANTERN, (line, show(name)), meaning=meaning)) == {name}


def test_a_question_about_two_goods_hears_of_both(talk: Talk) -> None:
    turn = talk(("does the lamp oil go into the storm lantern?", show("Storm Lantern")))
    assert "Clear oil" in turn.says and "eight hours" in turn.says


def test_the_price_of_that_is_the_price_of_what_is_in_view(talk: Talk) -> None:
    turn = talk(LANTERN, ("and what'll that cost me, one piece?", show("Storm Lantern")))
    assert shown(turn) == {"Storm Lantern"}


def test_a_question_without_its_mark_is_answered(talk: Talk) -> None:
    line = "and the cough syrup can it be given to a child or is it too strong"
    assert "one spoonful" in talk((line, show("Cough Syrup")), meaning=True).says


def test_who_would_buy_what_is_not_sold_hears_so(talk: Talk) -> None:
    assert "Sextant" in talk(("can i buy the sextant", CHAT)).says
    assert "Sextant" in talk(("how much for the sextant", CHAT)).says
    assert "Sextant" not in talk(("my father had a sextant", CHAT)).says


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("and one for the boy he has none so three of them please", change(Bottle_of_Lamp_Oil="+3"),
         {"bottle_of_lamp_oil": 3, "sea_boots": 1}),
        ("one coil each for the two of us, so 2", change(Coil_of_Rope=8),
         {"bottle_of_lamp_oil": 2, "sea_boots": 1, "coil_of_rope": 2}),
        ("The sea boots I asked not for, strike them out.", change(Sea_Boots=0),
         {"bottle_of_lamp_oil": 2}),
        ("same again on the lamp oil its for the whole crew", change(Bottle_of_Lamp_Oil="all"),
         {"bottle_of_lamp_oil": 4, "sea_boots": 1}),
        ("the same again on the lamp oil would kill us", change(),
         {"bottle_of_lamp_oil": 2, "sea_boots": 1}),
        ("You have put down two lamp oils, and I did say four.", change(),
         {"bottle_of_lamp_oil": 4, "sea_boots": 1}),
        ("I cannot go home without rope, so add three coils of that.", change(Coil_of_Rope=3),
         {"bottle_of_lamp_oil": 2, "sea_boots": 1, "coil_of_rope": 3}),
        ("No, the cough syrup. One of it, with the lamp oil and the sea boots.", order(Cough_Syrup=1),
         {"bottle_of_lamp_oil": 2, "sea_boots": 1, "cough_syrup": 1}),
        ("nvm lose the sea boots just the lamp oil", change(Sea_Boots=0), {"bottle_of_lamp_oil": 2}),
    ],
)  # fmt: skip
def test_orders_without_marks(talk: Talk, line, decided, cart) -> None:
    assert talk(PAIR, (line, decided)).cart == cart


def test_what_was_taken_out_comes_back_beside_the_rest(talk: Talk) -> None:
    out = ("no sea boots", change(Sea_Boots=0))
    back = ("Do put the sea boots back with the lamp oil.", change(Sea_Boots=1))
    assert talk(PAIR, out, back).cart == {"bottle_of_lamp_oil": 2, "sea_boots": 1}


def test_one_of_each_is_one_of_each_kind(talk: Talk) -> None:
    turn = talk(("I want boots. Give me one from each, you have two sorts", order(Sea_Boots=2)))
    assert turn.cart == {"sea_boots": 1, "ankle_boots": 1}


def test_what_is_ordered_by_name_is_not_what_is_in_view(talk: Talk) -> None:
    line = "you will go on about that light I'll have one of the cough syrups it can do no harm"
    assert talk(LANTERN, (line, order(Storm_Lantern=1))).cart == {"cough_syrup": 1}


def test_what_is_much_on_the_floor_is_not_ordered(talk: Talk) -> None:
    line = "And there is much rope on my floor, give me also two lamp oils."
    assert talk((line, order(Bottle_of_Lamp_Oil=2))).cart == {"bottle_of_lamp_oil": 2}


ROPES = ("three coils of rope", order(Coil_of_Rope=3))  # 60 pence


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("60, hm. Then not three, only two coils. What does it make?", change(Coil_of_Rope=2),
         {"coil_of_rope": 2}),
        ("no lamp m8, never asked. just the rope", change(Coil_of_Rope=8),
         {"coil_of_rope": 3}),
    ],
)  # fmt: skip
def test_what_is_no_number_of_pieces_and_what_is_denied_last(
    talk: Talk, line, decided, cart
) -> None:
    assert talk(ROPES, (line, decided)).cart == cart


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("Leave us just the one lamp oil, the sea boots can stay.", order(Bottle_of_Lamp_Oil=1)),
        ("*counts out 74 pence* For the boots, good woman.", change(Ankle_Boots=0)),
    ],
)
def test_what_may_stay_stays(talk: Talk, line, decided) -> None:
    both = ("two lamp oils, the sea boots and the ankle boots",
            order(Bottle_of_Lamp_Oil=2, Sea_Boots=1, Ankle_Boots=1))  # fmt: skip
    assert "sea_boots" in talk(both, (line, decided)).cart


def test_just_the_one_in_view_replaces_nothing(talk: Talk) -> None:
    turn = talk(PAIR, SYRUP, ("just the one dear I only have one mouth", order(Cough_Syrup=1)))
    assert turn.cart == {"bottle_of_lamp_oil": 2, "sea_boots": 1, "cough_syrup": 1}


def test_a_question_behind_thats_the_one_takes_nothing_out(talk: Talk) -> None:
    line = "That's the one. Anything I should know about the sea boots? He is not careful."
    assert "sea_boots" in talk(PAIR, (line, change(Sea_Boots=0))).cart


def test_who_is_done_tells_no_need(talk: Talk) -> None:
    line = "that's all now what was it sixty I have the coins here you may take it"
    assert talk(ROPES, (line, REVIEW)).state == "FINAL_CHECK"


def test_goods_of_the_kind_that_a_question_names_are_shown(talk: Talk) -> None:
    line = "No, no, I mean the boots... for wet or dry, which one does he need for tomorrow?"
    assert shown(talk(LANTERN, (line, show("Storm Lantern")))) == {"Sea Boots", "Ankle Boots"}
