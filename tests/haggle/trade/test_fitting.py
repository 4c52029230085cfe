"""Goods that fit what a line describes are shown; what it rules out is neither shown nor sold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from haggle.language.embeddings import load_embedder
from haggle.language.english.linker import English
from haggle.trade.fitting import complained_of, fits, suited
from haggle.trade.methods import get_method
from haggle.trade.session import Session
from haggle.trade.wanted import ruled_out
from haggle.trade.world import World
from haggle.trade.world_io import parse_world

CSV = """\
item_id,item_name,price,quantity,description,facts
foam,Patchfoam Can,18,15,A spray can of foam that seals leaks in a hull or pipe.,It hardens in thirty seconds
coffee,Kessler Coffee Tube,4,40,Strong black coffee that heats itself.,It has no sugar
puck,Charger Puck,25,10,A round battery that charges a phone three times.,
slab,Charger Slab,55,5,A flat heavy battery that charges a phone nine times.,It needs a cable
whale,Plush Whale,15,7,A soft blue toy that squeaks.,It is safe for small children
dice,Dice Set,22,5,Six magnetic dice for playing without gravity.,
grey,Oilcloth Cloak,30,4,A grey cloak that keeps off the rain.,It is not warm in winter
brown,Woolly Cloak,38,3,A brown cloak that keeps you warm in snow.,It soaks up rain
gone,Fever Tea,5,0,A tea against fever.,
"""


@pytest.fixture(scope="module")
def station() -> World:
    return parse_world(CSV, "csv", "station.csv", {"name": "Station"})


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        ("Ahoy! My ship has sprung a leak. What have you got against that?", ["foam"]),
        ("something to plug a leaking pipe, not coffee!", ["foam"]),
        ("my phone is dead, I need more power", ["puck", "slab"]),
        ("something soft for small children?", ["whale"]),
        ("my nephew walks north and I want to keep him warm in the snow", ["brown"]),
        ("something to play with that works without gravity", ["dice"]),
        ("anything against fever?", []),  # sold out
        ("good day, what do you sell?", []),
        ("", []),
        ("x" * 5000, []),
    ],
)
def test_what_fits_a_description_is_found(station: World, line: str, ids: list[str]) -> None:
    assert [item.item_id for item in fits(station, line)][:2] == ids


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        ("No, not coffee. For the phone.", {"coffee"}),
        ("I don't want the whale", {"whale"}),
        ("not the slab, the puck", {"slab"}),
        ("not the oilcloth cloak, I want the woolly cloak", {"grey"}),
        ("a lantern without a flame", set()),
        ("coffee", set()),
        ("I can't find my dice, give me the dice", set()),
        ("not only the whale", set()),
        ("Whale? No, we were talking of dice", {"whale"}),
        ("Not the woolly one; I want the grey one", {"brown"}),
        ("instead of the whale I take the dice set", {"whale"}),
        ("lose a whale", set()),  # others may stay
        ("please don't remove the whale", set()),
        ("don't drop the whale", set()),
        ("add the dice drop the whale", {"whale"}),
    ],
)
def test_what_a_line_rules_out(station: World, line: str, ids: set[str]) -> None:
    assert ruled_out(station, line) == ids


@pytest.fixture
def customer(visit: Any, station: World) -> Any:
    """A customer to whom the coffee and the whale were shown."""
    found = visit(world=station, method="astp-stepwise")
    found.turn("SHOW_ITEMS", "", "hello", show=["Kessler Coffee Tube", "Plush Whale"])
    return found


def test_goods_that_fit_are_shown_in_place_of_others(customer: Any) -> None:
    turn = customer.turn("SHOW_ITEMS", "", "something for a leak?", show=["Plush Whale"])
    assert customer.session.shown == ("Patchfoam Can",) and "fitting" in turn.interventions


def test_named_goods_and_a_look_around_stay_as_the_model_has_them(customer: Any) -> None:
    for line in ("is there a plush whale, my pipe leaks?", "what do you sell?"):
        turn = customer.turn("SHOW_ITEMS", "", line, show=["Plush Whale"])
        assert customer.session.shown == ("Plush Whale",) and not turn.interventions


def test_goods_ruled_out_are_not_sold_and_what_fits_is_shown(customer: Any) -> None:
    turn = customer.turn(
        "OFFER_SELL", "", "No, not coffee! My pipe leaks.", cart=[["Kessler Coffee Tube", 1]]
    )
    assert turn.cart == {} and "not_named" in turn.interventions
    assert turn.state == "SHOW_ITEMS" and customer.session.shown == ("Patchfoam Can",)


def test_shown_goods_are_sold_only_where_the_words_can_mean_them(customer: Any) -> None:
    turn = customer.turn("OFFER_SELL", "", "something that'll do", cart=[["Plush Whale", 1]])
    assert turn.cart == {} and "not_named" in turn.interventions
    assert customer.turn("OFFER_SELL", "", "I'll have that", cart=[["Plush Whale", 1]]).cart == {
        "whale": 1
    }
    more = customer.turn("OFFER_SELL", "", "don't forget the whale", cart=[["Plush Whale", 1]])
    assert more.cart == {"whale": 1}


def test_the_one_of_those_in_view_is_chosen_by_what_is_said_of_it(customer: Any) -> None:
    customer.turn("SHOW_ITEMS", "", "a charger?", show=["Charger Puck", "Charger Slab"])
    line = "the one that charges nine times, does it need a cable?"
    turn = customer.turn("SHOW_ITEMS", "", line, show=["Plush Whale", "Dice Set"])
    assert customer.session.shown == ("Charger Slab",) and "It needs a cable." in turn.says


def test_a_need_beside_an_order_is_met_as_well(customer: Any) -> None:
    line = "I'll take the whale. And have you something against a leak?"
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Plush Whale", 1]])
    assert turn.cart == {"whale": 1} and "For that I have Patchfoam Can." in turn.says
    turn = customer.turn("OFFER_SELL", "", "one of those", cart=[["Patchfoam Can", 1]])
    assert turn.cart == {"whale": 1, "foam": 1}


def test_an_order_in_other_words_is_no_invention(customer: Any) -> None:
    line = "I'll take two of that spray against leaks"
    assert customer.turn("OFFER_SELL", "", line, cart=[["Patchfoam Can", 2]]).cart == {"foam": 2}


def test_a_review_waits_where_a_need_is_told(customer: Any) -> None:
    customer.turn("OFFER_SELL", "", "the whale", cart=[["Plush Whale", 1]])
    turn = customer.turn("FINAL_CHECK", "", "I need something against a leak, too")
    assert turn.state == "SHOW_ITEMS" and customer.session.shown == ("Patchfoam Can",)


def test_money_is_nothing_that_is_not_sold(customer: Any) -> None:
    line = "the whale, with the coins I have left"
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Plush Whale", 1], ["?coins", 1]])
    assert turn.cart == {"whale": 1} and "do not sell" not in turn.says


def test_a_need_that_what_is_shown_meets_brings_nothing_more(customer: Any) -> None:
    line = "I need something to keep me warm. Is the woolly cloak waterproof?"
    turn = customer.turn("SHOW_ITEMS", "", line, show=["Woolly Cloak"])
    assert "For that" not in turn.says and customer.session.shown == ("Woolly Cloak",)


class Near(English):
    """Tells how near texts are by whether they speak of animals."""

    def nearness(self, line: str, texts: Sequence[str]) -> list[float]:
        return [0.5 if "Whale" in text or "Dice" in text else 0.1 for text in texts]


def test_what_is_near_in_meaning_is_shown_where_the_linker_can_tell(customer: Any) -> None:
    customer.session.linker = Near()
    customer.turn("SHOW_ITEMS", "", "my daughter is bored", show=["Kessler Coffee Tube"])
    assert set(customer.session.shown) >= {"Plush Whale"}
    assert "Kessler Coffee Tube" not in customer.session.shown


def test_a_question_about_goods_in_view_is_answered_about_them(customer: Any) -> None:
    customer.turn("SHOW_ITEMS", "", "does it leak?", show=["Plush Whale"])
    assert customer.session.shown == ("Plush Whale",)


@pytest.fixture(scope="module")
def by_meaning() -> English:
    embedder = load_embedder("auto")
    if embedder is None:
        pytest.skip("the extra `embeddings` is not installed")
    return English(embedder)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("The nights on the pass are bitter and I sleep in a barn.", "Wool Blanket"),
        ("my cart wheel squeals like a piglet all the way to market", "Axle Grease"),
        ("It is black as pitch down in the mine, and I walk into everything.", "Storm Lantern"),
    ],
)
def test_goods_of_which_nothing_is_known_serve_a_need_by_their_names(by_meaning, line, name):
    goods = ["Wool Blanket", "Axle Grease", "Storm Lantern", "Rye Loaf", "Goose Quill"]
    rows = "".join(f"g{n},{good},{n + 2},9\n" for n, good in enumerate(goods))
    world = parse_world(
        f"item_id,item_name,price,quantity\n{rows}", "csv", "bare.csv", {"name": "B"}
    )
    session = Session(world, method=get_method("astp-stepwise"), linker=by_meaning)
    assert suited(session, line)[0].item_name == name
    assert complained_of(session, line)[:1] in ([name], [])
    assert complained_of(session, "My brother is called Hob, and he sings on Sundays.") == []
