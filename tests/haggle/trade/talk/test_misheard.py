"""Lines that put the merchant right, and what they must leave alone."""

from __future__ import annotations

import pytest

from .conftest import CHAT, REVIEW, Talk, change, order, show
from .test_goods_asked_about import shown

OIL, BOOTS, ROPE = "bottle_of_lamp_oil", "sea_boots", "coil_of_rope"
PAIR = ("two lamp oils and a pair of sea boots", order(Bottle_of_Lamp_Oil=2, Sea_Boots=1))
OILS = ("two lamp oils", order(Bottle_of_Lamp_Oil=2))
LANTERN = ("how is the storm lantern?", show("Storm Lantern"))


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("I never asked for sea boots, you misheard me with that wind.",
         order(Bottle_of_Lamp_Oil=2, Sea_Boots=1), {OIL: 2}),
        ("Make the oil three, boots not needed, we go barefoot",
         change(Bottle_of_Lamp_Oil=3, Sea_Boots=1), {OIL: 3}),
        ("Not both, dear, the sea boots can stay with you.", change(Sea_Boots=0), {OIL: 2}),
        ("One oil will serve me. Kindly take the other one off again.",
         change(Bottle_of_Lamp_Oil=0), {OIL: 1, BOOTS: 1}),
        ("I never sleep without lamp oil, as you know", change(), {OIL: 2, BOOTS: 1}),
        ("boots are not needed where I come from, but here they are", change(),
         {OIL: 2, BOOTS: 1}),
    ],
)  # fmt: skip
def test_what_was_misheard_goes_out(talk: Talk, line, decided, cart) -> None:
    assert talk(PAIR, (line, decided)).cart == cart


def test_who_turns_down_what_is_in_view_keeps_the_order(talk: Talk) -> None:
    line = "Then not that one. Three coils of rope for mooring, please."
    decided = change(Bottle_of_Lamp_Oil=0, Coil_of_Rope=3)
    assert talk(OILS, LANTERN, (line, decided)).cart == {OIL: 2, ROPE: 3}


def test_what_comes_back_is_not_taken_from_other_goods(talk: Talk) -> None:
    without = ("no rope after all", change(Coil_of_Rope=0))
    turn = talk(
        ("two lamp oils and a coil of rope", order(Bottle_of_Lamp_Oil=2, Coil_of_Rope=1)), without,
        ("hm, put one rope back for me", change(Coil_of_Rope="-1")),
    )  # fmt: skip
    assert turn.cart[OIL] == 2


def test_who_asks_without_marks_hears_the_sum(talk: Talk) -> None:
    turn = talk(OILS, ("nice one whats the damage", show("Bottle of Lamp Oil")))
    assert turn.state == "OFFER_SELL" and "14" in turn.says


def test_who_pays_before_anything_else_happens_asks_for_nothing(talk: Talk) -> None:
    line = "that's the lot fourteen brilliant I'll pay that now before he spots anything else"
    assert talk(OILS, (line, REVIEW)).state == "FINAL_CHECK"


def test_an_order_beside_a_question_about_the_same_goods(talk: Talk) -> None:
    line = "Good. And now also some of that stuff for knots, please. Is there rope that floats?"
    assert talk(OILS, (line, change(Coil_of_Rope=1))).cart == {OIL: 2, ROPE: 1}


def test_goods_told_apart_by_what_they_are_like_are_evident(talk: Talk) -> None:
    line = "Make it two of the laced, and one of the high for our cook."
    ankle = ("three ankle boots", order(Ankle_Boots=3))
    turn = talk(ankle, (line, change(Ankle_Boots=2, Sea_Boots=1)))
    assert turn.cart == {"ankle_boots": 2, BOOTS: 1}


def test_what_was_not_said_is_asked_again(talk: Talk) -> None:
    line = "you didn't say how long the storm lantern burns, I need it all night"
    turn = talk(OILS, (line, CHAT))
    assert "eight hours" in turn.says or shown(turn) == {"Storm Lantern"}
