"""Remarks beside an order or a bid that look like one and are none."""

from __future__ import annotations

import pytest

from .conftest import Talk, change, order, show
from .test_goods_asked_about import shown

OIL, BOOTS = "bottle_of_lamp_oil", "sea_boots"
PAIR = ("two lamp oils and a pair of sea boots", order(Bottle_of_Lamp_Oil=2, Sea_Boots=1))
SAME = {OIL: 2, BOOTS: 1}  # for 74 pence


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("two sea boots. I bought five lamp oils from you yesterday", change(Sea_Boots=2),
         {OIL: 2, BOOTS: 2}),
        ("two sea boots, the inn sells five lamp oils an evening", change(Sea_Boots=2),
         {OIL: 2, BOOTS: 2}),
        ("two sea boots, with my ten lamp oils at home I need no more", change(Sea_Boots=2),
         {OIL: 2, BOOTS: 2}),
        ("we had words about one lamp oil, he told three, I said so too", change(), SAME),
        ("nobody did choose the lamp oil, remember?", change(), SAME),
        ("two of my friends cannot swim, and so can't I", change(), SAME),
        ("the same again for the lamp oil would be too much", change(), SAME),
        ("no lantern, I can see without a lantern, and two is company", change(), SAME),
        ("these sea boots fit, take them off who can!", change(), SAME),
        ("sea boots plz m8", change(Sea_Boots=8), SAME),
        ("just the storm lantern, only one", order(Storm_Lantern=1), {"storm_lantern": 1}),
        ("scratch that, just one storm lantern, only one.", order(Storm_Lantern=1),
         {"storm_lantern": 1}),
        ("add a storm lantern. One of each of my sons is at sea", change(Storm_Lantern=1),
         {**SAME, "storm_lantern": 1}),
    ],
)  # fmt: skip
def test_a_remark_orders_nothing(talk: Talk, line, decided, cart) -> None:
    assert talk(PAIR, (line, decided)).cart == cart


@pytest.mark.parametrize(
    "line",
    ["74 it was, and still too much", "74 is a sin", "seventy-four, and I a widow",
     "Take seventy-four off a widow, would you"],
)  # fmt: skip
def test_who_complains_of_the_price_does_not_agree(talk: Talk, line) -> None:
    assert talk(PAIR, (line, {"state": "NEGOTIATE", "bid": 70})).state == "NEGOTIATE"


@pytest.mark.parametrize(
    "line", ["next to the table lamp, is it heavy?", "with the coil of rope, is it any heavier?"]
)
def test_goods_set_beside_a_question_are_not_its_topic(talk: Talk, line) -> None:
    turn = talk(("how is the storm lantern?", show("Storm Lantern")), (line, show("Storm Lantern")))
    assert "Storm Lantern" in shown(turn)
