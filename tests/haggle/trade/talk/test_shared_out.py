"""Numbers that a line tells of goods by what they are like."""

from __future__ import annotations

import pytest

from .conftest import Talk, change, order, show

BOOTS = ("the sea boots twice, and one pair of ankle boots", order(Sea_Boots=2, Ankle_Boots=1))
LAMPS = ("two table lamps and one storm lantern", order(Table_Lamp=2, Storm_Lantern=1))


@pytest.mark.parametrize(
    ("before", "line", "decided", "cart"),
    [
        (LAMPS, "No no, it is opposite! Brass one, and for wind two.",
         change(Table_Lamp=2, Storm_Lantern=1), {"table_lamp": 1, "storm_lantern": 2}),
        (LAMPS, "*draws it in the dust* Storm: two. Brass: one.", change(Storm_Lantern=2),
         {"table_lamp": 1, "storm_lantern": 2}),
        (LAMPS, "The windy one, of that I want three. Of the heavy one just one.",
         change(Storm_Lantern=1, Table_Lamp=3), {"table_lamp": 1, "storm_lantern": 3}),
        (BOOTS, "three of the high ones and two of the low", change(Sea_Boots=2, Ankle_Boots=3),
         {"sea_boots": 3, "ankle_boots": 2}),
    ],
)  # fmt: skip
def test_numbers_go_to_what_they_describe(talk: Talk, before, line, decided, cart) -> None:
    assert talk(before, (line, decided)).cart == cart


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("Make the lanterns three, bed four and bed nine came in overnight.",
         change(Storm_Lantern=3), {"table_lamp": 2, "storm_lantern": 3}),
        ("three lanterns, one for the captain", change(Storm_Lantern=3),
         {"table_lamp": 2, "storm_lantern": 3}),
        ("four lanterns. The wind has blown two weeks, and my house has five rooms",
         change(Storm_Lantern=4), {"table_lamp": 2, "storm_lantern": 4}),
        ("four brass lamps for five friends in the storm, is it?", change(Table_Lamp=4),
         {"table_lamp": 4, "storm_lantern": 1}),
        ("Three brass ones, and the storm took two of my sailors", change(Table_Lamp=3),
         {"table_lamp": 3, "storm_lantern": 1}),
        ("Make it three brass. Page two of my list says wind", change(Table_Lamp=3),
         {"table_lamp": 3, "storm_lantern": 1}),
        ("Three brass ones, wind is force five today", change(Table_Lamp=3),
         {"table_lamp": 3, "storm_lantern": 1}),
    ],
)  # fmt: skip
def test_numbers_of_other_things_change_nothing(talk: Talk, line, decided, cart) -> None:
    assert talk(LAMPS, (line, decided)).cart == cart


def test_no_need_is_no_need(talk: Talk) -> None:
    line = "no need to be short with me I will take it then yes please"
    assert talk(LAMPS, (line, {"state": "FINAL_CHECK"})).state == "FINAL_CHECK"


@pytest.mark.parametrize(
    ("line", "syrups"),
    [
        ("8 hrs to burn? nope. a cough syrup then", 1),
        ("a cough syrup a day, and we sail for eight days", 8),
    ],
)
def test_hours_that_were_told_are_no_pieces(talk: Talk, line, syrups) -> None:
    before = ("how long does the storm lantern burn?", show("Storm Lantern"))
    decided = order(Cough_Syrup=8)
    cart = talk(before, (line, decided)).cart if syrups == 1 else talk((line, decided)).cart
    assert cart == {"cough_syrup": syrups}
