"""What ordinary customers say, and what code makes of it whatever the model decides."""

from __future__ import annotations

import re

import pytest

from haggle.language.english.linker import English
from haggle.trade.methods import get_method
from haggle.trade.session import Session
from haggle.trade.world import World

from .conftest import CHAT, SHELF, Talk, change, order, show

TWO = ("two ropes and sea boots", order(Coil_of_Rope=2, Sea_Boots=1))
ROPES = {"coil_of_rope": 2, "sea_boots": 1}


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("actually make it six oil, and no boots", change(Sea_Boots=0), {"bottle_of_lamp_oil": 6}),
        ("one more oil please", change(Bottle_of_Lamp_Oil=1),
         {"bottle_of_lamp_oil": 5, "sea_boots": 1}),
        ("swap the boots for a rope. No, keep the boots and add the rope",
         change(Sea_Boots=0, Coil_of_Rope=1),
         {"bottle_of_lamp_oil": 4, "sea_boots": 1, "coil_of_rope": 1}),
        ("I'd like one of the bottles of oil swapped for a rope", change(Coil_of_Rope=1),
         {"bottle_of_lamp_oil": 3, "sea_boots": 1, "coil_of_rope": 1}),
        ("no boots, I said. Twenty pence for the oil", {"state": "NEGOTIATE", "bid": 20},
         {"bottle_of_lamp_oil": 4}),
        ("and what does the rope cost?", change(Coil_of_Rope=1),
         {"bottle_of_lamp_oil": 4, "sea_boots": 1}),
        ("do you throw in a rope for free?", change(Coil_of_Rope=1),
         {"bottle_of_lamp_oil": 4, "sea_boots": 1}),
        ("eighty pence is a lot for boots", change(Sea_Boots=80),
         {"bottle_of_lamp_oil": 4, "sea_boots": 1}),
    ],
)  # fmt: skip
def test_an_order_is_what_the_words_make_of_it(talk: Talk, line, decided, cart) -> None:
    first = "four bottles of lamp oil and sea boots"
    turn = talk((first, order(Bottle_of_Lamp_Oil=4, Sea_Boots=1)), (line, decided))
    assert turn.cart == cart


def test_one_good_takes_the_place_of_another(talk: Talk) -> None:
    line = "wait... could I swap that for two bottles of the oil?"
    turn = talk(("a rope", order(Coil_of_Rope=1)), (line, change(Coil_of_Rope=2)))
    assert turn.cart == {"bottle_of_lamp_oil": 2}


@pytest.mark.parametrize(
    ("line", "cart"),
    [
        ("swap the rope for two bottles of the oil", {"bottle_of_lamp_oil": 2}),
        ("bottle of lamp oil instead", {"bottle_of_lamp_oil": 2}),
        ("a bottle of lamp oil instead, please", {"bottle_of_lamp_oil": 1}),
    ],
)
def test_so_it_does_where_the_model_adds_it(talk: Talk, line, cart) -> None:
    turn = talk(("two ropes", order(Coil_of_Rope=2)), (line, change(Bottle_of_Lamp_Oil=1)))
    assert turn.cart == cart


def test_of_several_the_one_that_is_named_goes(talk: Talk) -> None:
    first = ("a rope and sea boots", order(Coil_of_Rope=1, Sea_Boots=1))
    turn = talk(first, ("change my rope to a bottle of lamp oil", change(Bottle_of_Lamp_Oil=1)))
    assert turn.cart == {"sea_boots": 1, "bottle_of_lamp_oil": 1}


@pytest.mark.parametrize("line", ["2 of the 6 can go", "two of those back please"])
def test_so_many_of_them_may_go(talk: Talk, line) -> None:
    turn = talk(("six ropes", order(Coil_of_Rope=6)), (line, order(Coil_of_Rope=2)))
    assert turn.cart == {"coil_of_rope": 4}


@pytest.mark.parametrize(
    "line",
    [
        "what about a bottle of lamp oil instead?",
        "how much is the lamp oil instead",
        "should I put the rope back?",
        "did you put the rope back on sale?",
        "none of the ropes are frayed",
        "I just want the rope cheaper",
        "I just need the rope wrapped",
        "the rope, only if it is cheap",
        "ten or less",
        "five pence less",
    ],
)
def test_a_question_or_a_remark_changes_no_order(talk: Talk, line) -> None:
    first = ("a rope and sea boots", order(Coil_of_Rope=1, Sea_Boots=1))
    assert talk(first, (line, CHAT)).cart == {"coil_of_rope": 1, "sea_boots": 1}


def test_a_swap_leaves_the_other_changes_of_an_order(talk: Talk) -> None:
    first = ("two ropes and sea boots", order(Coil_of_Rope=2, Sea_Boots=1))
    line = "swap the rope for two bottles of lamp oil and make it three sea boots"
    decided = order(Coil_of_Rope=2, Bottle_of_Lamp_Oil=2, Sea_Boots=3)
    assert talk(first, (line, decided)).cart == {"sea_boots": 3, "bottle_of_lamp_oil": 2}


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("rope up to four", change(Coil_of_Rope=6), {"coil_of_rope": 4, "sea_boots": 1}),
        ("make the ropes five", change(Coil_of_Rope=7), {"coil_of_rope": 5, "sea_boots": 1}),
        ("it's four ropes", change(Coil_of_Rope="+4"), {"coil_of_rope": 4, "sea_boots": 1}),
        ("no rope we got some at home", change(Sea_Boots=1), {"sea_boots": 1}),
        ("*shakes head* no rope, lad", change(Sea_Boots=1), {"sea_boots": 1}),
        ("four more ropes", change(Coil_of_Rope="+4"), {"coil_of_rope": 6, "sea_boots": 1}),
        ("no hurry, we got time. four ropes more", change(Coil_of_Rope="+4"),
         {"coil_of_rope": 6, "sea_boots": 1}),
    ],
)  # fmt: skip
def test_what_an_order_is_changed_to(talk: Talk, line, decided, cart) -> None:
    assert talk(TWO, (line, decided)).cart == cart


@pytest.mark.parametrize(
    ("line", "cart"),
    [
        ("replace both of those ropes with lamp oil", {"bottle_of_lamp_oil": 2, "sea_boots": 1}),
        ("swap one rope for a bottle of lamp oil",
         {"coil_of_rope": 1, "bottle_of_lamp_oil": 1, "sea_boots": 1}),
        ("swap the ropes 4 lamp oil", {"bottle_of_lamp_oil": 2, "sea_boots": 1}),
        ("swap the ropes for another pair of sea boots", {"sea_boots": 2}),
        ("lamp oil instead of rope. Same number", {"bottle_of_lamp_oil": 2, "sea_boots": 1}),
        ("what does lamp oil cost instead of the rope?", ROPES),
        ("never would I swap the rope for oil. One oil too", {**ROPES, "bottle_of_lamp_oil": 1}),
        ("and a bottle of lamp oil with it", {**ROPES, "bottle_of_lamp_oil": 1}),
    ],
)  # fmt: skip
def test_a_swap_is_what_the_words_tell(talk: Talk, line, cart) -> None:
    turn = talk(TWO, (line, change(Bottle_of_Lamp_Oil=1)))
    assert turn.cart == cart


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("change the boots to two pair", change(Sea_Boots=2), {**ROPES, "sea_boots": 2}),
        ("change the ropes to four", change(Coil_of_Rope=4), {"coil_of_rope": 4, "sea_boots": 1}),
        ("if I swap the rope for the table lamp, is that cheaper?",
         order(Table_Lamp=2, Sea_Boots=1), {**ROPES, "sea_boots": 1}),
        ("Swap the ropes for a table lamp. Swap the boots for a storm lantern.",
         order(Table_Lamp=1, Storm_Lantern=1), {"table_lamp": 1, "storm_lantern": 1}),
        ("swap the ropes for a table lamp and the boots for a storm lantern",
         order(Table_Lamp=1, Storm_Lantern=1), {"table_lamp": 1, "storm_lantern": 1}),
    ],
)  # fmt: skip
def test_what_swaps_nothing_or_twice_is_as_the_model_reads_it(talk: Talk, line, decided, cart):
    bought = ("two ropes and the sea boots", order(Coil_of_Rope=2, Sea_Boots=1))
    assert talk(bought, (line, decided)).cart == cart


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        (  # goods that nobody spoke of stay
            "swap them two ropes for two bottles of lamp oil",
            order(Coil_of_Rope=2, Bottle_of_Lamp_Oil=2),
            {"sea_boots": 1, "bottle_of_lamp_oil": 2},
        ),
        ("nah, take the ropes out", order(Coil_of_Rope=2, Sea_Boots=1), {"sea_boots": 1}),
        ("none of the ropes", order(Coil_of_Rope=2, Sea_Boots=1), {"sea_boots": 1}),
        ("the ropes are too thick. not the ropes", order(Coil_of_Rope=2, Sea_Boots=1), {"sea_boots": 1}),
        ("one rope fewer", order(Coil_of_Rope=2, Sea_Boots=1), {"coil_of_rope": 1, "sea_boots": 1}),
    ],
)  # fmt: skip
def test_of_an_order_goes_what_a_line_says_and_no_more(talk: Talk, line, decided, cart) -> None:
    assert talk(TWO, (line, decided)).cart == cart


def test_numbers_of_goods_told_in_full_are_those_of_the_order(talk: Talk) -> None:
    bought = ("a rope and a bottle of oil", order(Coil_of_Rope=1, Bottle_of_Lamp_Oil=1))
    line = "I'd better have three ropes with the two bottles of oil"
    turn = talk(bought, (line, change(Coil_of_Rope=2, Bottle_of_Lamp_Oil=3)))
    assert turn.cart == {"coil_of_rope": 3, "bottle_of_lamp_oil": 2}


def test_what_was_taken_out_may_come_back(talk: Talk) -> None:
    turn = talk(
        ("two ropes and sea boots", order(Coil_of_Rope=2, Sea_Boots=1)),
        ("leave the rope out", change(Coil_of_Rope=0)),
        ("are the boots any good?", show("Sea Boots")),
        ("oh, put the rope back", change(Sea_Boots=1)),
    )
    assert turn.cart == {"coil_of_rope": 2, "sea_boots": 1}


@pytest.mark.parametrize(
    ("line", "cart"),
    [
        ("I'll take two ropes as well. Do they come tarred?", {"sea_boots": 1, "coil_of_rope": 2}),
        ("lovely, I'll have one too, then. How heavy is it?", {"sea_boots": 1, "table_lamp": 1}),
        ("is the rope any good? I need it for a boat", {"sea_boots": 1}),
    ],
)
def test_an_order_beside_a_question_is_carried_out(talk: Talk, line, cart) -> None:
    """Also where the model answers the question and nothing else."""
    boots = ("sea boots, please", order(Sea_Boots=1))
    lamp = ("and what is the table lamp like?", show("Table Lamp"))
    assert talk(boots, lamp, (line, show("Table Lamp"))).cart == cart


def test_a_question_beside_an_order_is_answered_by_its_meaning(talk: Talk) -> None:
    line = "I'll take the cough syrup. What dose does a toddler get?"
    turn = talk((line, order(Cough_Syrup=1)), meaning=True)
    assert turn.cart == {"cough_syrup": 1} and "A child takes one spoonful" in turn.says


def test_an_order_that_a_line_does_not_speak_of_stays(talk: Talk) -> None:
    line = "and something for light, in case we walk home after dusk"
    turn = talk(("four ropes", order(Coil_of_Rope=4)), (line, change(Coil_of_Rope=1)))
    assert turn.cart == {"coil_of_rope": 4}


def test_goods_may_be_ordered_by_their_description(talk: Talk) -> None:
    line = "and two of those sweet bottles that soothe a cough"
    turn = talk(("a rope", order(Coil_of_Rope=1)), (line, change(Sea_Boots=2)), meaning=True)
    assert "sea_boots" not in turn.cart
    assert turn.cart.get("cough_syrup") == 2 or "2 Cough Syrups" in turn.says


def test_dropping_one_good_keeps_the_others(talk: Talk) -> None:
    bought = ("rope, sea boots and oil", order(Coil_of_Rope=1, Sea_Boots=1, Bottle_of_Lamp_Oil=1))
    turn = talk(bought, ("make it two ropes, and drop the oil", order(Coil_of_Rope=2)))
    assert turn.cart == {"coil_of_rope": 2, "sea_boots": 1}


def test_a_few_are_three(talk: Talk) -> None:
    assert talk(("a few ropes, please", order(Coil_of_Rope=7))).cart == {"coil_of_rope": 3}


@pytest.mark.parametrize("line", ["oh, how much is that then?", "what toll do you ask for it?"])
def test_who_asks_a_price_orders_nothing(talk: Talk, line) -> None:
    turn = talk(SHELF, (line, order(Storm_Lantern=1)))
    assert turn.cart == {} and "42 pence" in turn.says


def test_who_asked_for_a_price_hears_it(talk: Talk) -> None:
    assert "42 pence" in talk(SHELF, ("I only asked how much it costs", CHAT)).says


def test_the_price_of_each_of_those_in_view_is_told(talk: Talk) -> None:
    seen = ("have you boots?", show("Sea Boots", "Ankle Boots"))
    turn = talk(seen, ("how much are they each?", show("Sea Boots")), meaning=True)
    assert "60 pence" in turn.says and "48 pence" in turn.says


def test_the_price_of_other_goods_is_no_bid(talk: Talk) -> None:
    bid = {"state": "NEGOTIATE", "bid": None}
    turn = talk(("two ropes", order(Coil_of_Rope=2)), ("what would sea boots cost me?", bid))
    assert "60 pence" in turn.says and turn.cart == {"coil_of_rope": 2}


@pytest.mark.parametrize(
    "line",
    ["what would you knock off?", "wouldst thou yield it to me for thirty?",
     "my budget is 35. could you do that?"],
)  # fmt: skip
def test_who_haggles_over_goods_in_view_is_answered(talk: Talk, line) -> None:
    turn = talk(SHELF, (line, CHAT))
    details = turn.response.context_details
    assert turn.cart == {"storm_lantern": 1} and details is not None
    assert details.sale_price is not None and 30 <= details.sale_price < 42


def test_a_discount_asked_for_beside_an_order_is_given(talk: Talk) -> None:
    line = "three ropes, please. Any chance of a bit off?"
    details = talk((line, order(Coil_of_Rope=3))).response.context_details
    assert details is not None and details.sale_price is not None and details.sale_price < 60


def test_who_says_yes_to_an_offer_is_asked_to_confirm_it(talk: Talk) -> None:
    again = change(Coil_of_Rope=2)
    turn = talk(("two ropes", order(Coil_of_Rope=2)), ("yes, two ropes", again))
    assert turn.state == "FINAL_CHECK" and turn.cart == {"coil_of_rope": 2}


@pytest.mark.parametrize(
    "line", ["is it safe in a stall?", "what does it smell of?", "a spoil of war", "the sir is up"]
)
def test_words_that_are_words_are_no_names_mistyped(store: World, line: str) -> None:
    session = Session(store, method=get_method("astp-stepwise"), linker=English(None))
    assert session.named(line, sure=False) == frozenset()


def test_goods_beside_an_order_that_are_only_asked_about_are_not_ordered(talk: Talk) -> None:
    line = "two lanterns, and what's the oil come to?"
    turn = talk((line, order(Storm_Lantern=2, Bottle_of_Lamp_Oil=1)))
    assert turn.cart == {"storm_lantern": 2} and "7 pence" in turn.says


def test_one_pair_is_one_piece_of_what_is_sold_in_pairs(talk: Talk) -> None:
    boots = ("have you boots for the sea?", show("Sea Boots"))
    assert talk(boots, ("a pair of those", order(Sea_Boots=2))).cart == {"sea_boots": 1}


@pytest.mark.parametrize(
    "line", ["would you take thirty for it?", "couldn't you let me have it for thirty?"]
)
@pytest.mark.parametrize("decided", [CHAT, show("Storm Lantern")])
def test_a_bid_for_the_goods_in_view_is_answered(talk: Talk, line, decided) -> None:
    turn = talk(SHELF, (line, decided))
    price = turn.response.context_details.sale_price if turn.response.context_details else None
    assert turn.cart == {"storm_lantern": 1} and price is not None and 30 <= price < 42


def test_the_price_that_is_asked_is_agreed_to_not_bargained_over(talk: Talk) -> None:
    bid = {"state": "NEGOTIATE", "bid": 42}
    turn = talk(("a storm lantern", order(Storm_Lantern=1)), ("forty-two, then", bid))
    assert turn.state == "FINAL_CHECK" and turn.cart == {"storm_lantern": 1}


def test_who_turns_an_order_down_is_not_asked_to_confirm_it(talk: Talk) -> None:
    review = {"state": "FINAL_CHECK"}
    turn = talk(("a storm lantern", order(Storm_Lantern=1)), ("nah, I'll leave it today", review))
    assert turn.state == "CASUAL" and turn.cart == {"storm_lantern": 1}


@pytest.mark.parametrize("line", ["what's the damage?", "what do I owe you?", "what's the total?"])
def test_the_sum_of_an_order_is_told(talk: Talk, line) -> None:
    bought = ("two ropes", order(Coil_of_Rope=2))
    turn = talk(bought, (line, show("Coil of Rope")))
    assert turn.state == "OFFER_SELL" and "40 pence" in turn.says


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("what boots have you got?", {"Sea Boots", "Ankle Boots"}),
        ("what's the cheapest thing you've got?", {"Cough Syrup"}),
        ("would the brass one be brighter?", {"Table Lamp"}),
    ],
)
def test_the_goods_that_are_asked_for_are_shown(talk: Talk, line, named) -> None:
    turn = talk(SHELF, (line, show("Storm Lantern")))
    details = turn.response.context_details
    assert details is not None and {item.item_name for item in details.items} == named


def test_goods_that_are_not_sold_are_told_beside_a_price(talk: Talk) -> None:
    turn = talk(("have you a sextant, and how much is the rope?", show("Coil of Rope")))
    assert "20 pence" in turn.says and "do not sell Sextant" in turn.says


def test_both_questions_of_a_line_are_answered(talk: Talk) -> None:
    line = "who made the sea boots, and what are they made of?"
    turn = talk((line, show("Sea Boots")), meaning=True)
    assert "Tom Curnow" in turn.says and "leather" in turn.says


def test_a_complaint_is_a_need(talk: Talk) -> None:
    line = "my little boy has been coughing all night"
    turn = talk(("good morning", CHAT), (line, CHAT), meaning=True)
    assert "Cough Syrup" in str(turn.response.context_details)
    turn = talk(("good morning", CHAT), ("my aunt came from the country", CHAT), meaning=True)
    assert turn.state == "CASUAL"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("who are you, if I may ask?", "Ilse Brandt"),
        ("what sort of shop is this?", "Brandt's store on the quay"),
    ],
)
@pytest.mark.parametrize("decided", [CHAT, show("Storm Lantern")])
def test_who_and_where_the_merchant_is_is_told(talk: Talk, line, told, decided) -> None:
    turn = talk((line, decided))
    assert told in turn.says and turn.state == "CASUAL"


def test_what_the_file_says_of_the_place_is_told_where_it_is_near(talk: Talk) -> None:
    turn = talk(("is the road to Hull safe?", CHAT), meaning=True)
    assert "under water since Sunday" in turn.says
    turn = talk(("how long does the lantern burn?", show("Storm Lantern")), meaning=True)
    assert "eight hours" in turn.says and turn.state == "SHOW_ITEMS"


@pytest.mark.parametrize("line", ["hello there", "oi oi, how's tricks?", "a very good day to you"])
def test_a_greeting_is_greeted(talk: Talk, line) -> None:
    assert re.search(r"\b(?:what|welcome|hello|day|good|look)", talk((line, CHAT)).says.casefold())
    assert talk((line, CHAT)).interventions == []


def test_measures_are_counted_not_what_they_hold(talk: Talk) -> None:
    turn = talk(("two ropes", order(Coil_of_Rope=2)))
    assert "2 Coils of Rope" in turn.says
