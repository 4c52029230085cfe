"""Goods come into a cart only where the player's words speak of them."""

from __future__ import annotations

from typing import Any

import pytest

from haggle.trade.world import World
from haggle.trade.world_io import parse_world

CSV = """\
item_id,item_name,price,quantity,description
quick,Quick Fuse,3,40,A fuse that burns fast.
slow,Slow Fuse,3,40,A fuse that burns for a minute.
red,Red Rocket,10,20,A rocket with red stars.
blue,Blue Rocket,10,20,A rocket with blue stars.
bucket,Fire Bucket,5,9,A bucket of sand.
"""


@pytest.fixture
def customer(visit: Any) -> Any:
    """A customer with four slow fuses and three red rockets in the cart."""
    shed: World = parse_world(CSV, "csv", "shed.csv", {"name": "Shed"})
    found = visit(world=shed, method="astp-stepwise")
    line = "four slow fuses and three red rockets"
    found.turn("OFFER_SELL", "", line, cart=[["Slow Fuse", 4], ["Red Rocket", 3]])
    return found


@pytest.mark.parametrize(
    ("line", "cart", "left"),
    [
        ("not the slow, the quick", [["Quick Fuse", 4], ["Red Rocket", 3]], {"quick": 4, "red": 3}),
        ("blue then", [["Slow Fuse", 4], ["Blue Rocket", 3]], {"slow": 4, "blue": 3}),
        ("double it, only not the rockets", [["Slow Fuse", 8], ["Red Rocket", 3]],
         {"slow": 8, "red": 3}),
        ("I don't want rockets", [["Slow Fuse", 4], ["Red Rocket", 3]], {"slow": 4}),
        ("lose a rocket", [["Slow Fuse", 4], ["Red Rocket", 2]], {"slow": 4, "red": 2}),
        # no words for it
        ("nice weather", [["Slow Fuse", 4], ["Red Rocket", 3], ["Fire Bucket", 1]],
         {"slow": 4, "red": 3}),
        ("nice weather", [["Fire Bucket", 1]], {"slow": 4, "red": 3}),
        ("and a blue one too", [["Blue Rocket", 1]], {"slow": 4, "red": 3, "blue": 1}),
    ],
)  # fmt: skip
def test_an_order_stands_as_far_as_the_words_go(
    customer: Any, line: str, cart: list[Any], left: dict[str, int]
) -> None:
    assert customer.turn("OFFER_SELL", "", line, cart=cart).cart == left


def test_what_is_kept_is_not_what_is_dropped(customer: Any) -> None:
    line = "drop the rockets keep the fuses"
    assert customer.turn("OFFER_SELL", "", line, cart=[["Slow Fuse", 4]]).cart == {"slow": 4}


def test_who_wants_just_one_thing_gets_no_more(customer: Any) -> None:
    turn = customer.turn("FINAL_CHECK", "", "that's it, just the slow fuses")
    assert turn.cart == {"slow": 4} and turn.state == "OFFER_SELL"


def test_a_question_about_just_one_thing_takes_nothing_out(customer: Any) -> None:
    line = "is it just the slow fuses that burn a minute?"
    assert customer.turn("CASUAL", "", line).cart == {"slow": 4, "red": 3}


def test_goods_of_an_earlier_order_may_come_back(customer: Any) -> None:
    customer.turn("OFFER_SELL", "", "only the slow fuses", cart=[["Slow Fuse", 4]])
    both = [["Slow Fuse", 4], ["Red Rocket", 3]]
    assert customer.turn("OFFER_SELL", "", "no, as it was", cart=both).cart == {"slow": 4, "red": 3}


def test_a_word_of_a_name_is_evidence(customer: Any) -> None:
    both = [["Slow Fuse", 4], ["Red Rocket", 3], ["Fire Bucket", 1]]
    assert customer.turn("OFFER_SELL", "", "chuck us a bucket", cart=both).cart["bucket"] == 1


@pytest.mark.parametrize(
    "line",
    ["Take the rockets back, madam.", "I'll give the rockets back", "the rockets go back",
     "I won't take the rockets"],
)  # fmt: skip
def test_goods_that_a_line_gives_back_leave_the_order_also_in_small_talk(
    customer: Any, line: str
) -> None:
    customer.turn("CASUAL", "OFFER_SELL", line)
    assert customer.session.cart == {"slow": 4}


@pytest.mark.parametrize(
    "line",
    ["I'm taking the rockets back home to my wife", "give me the rockets back",
     "I won't take the rockets if they are wet inside", "can I give the rockets back?"],
)  # fmt: skip
def test_words_that_only_sound_like_giving_back_take_nothing_out(customer: Any, line: str) -> None:
    customer.turn("CASUAL", "OFFER_SELL", line)
    assert customer.session.cart == {"slow": 4, "red": 3}
