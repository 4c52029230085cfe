"""Orders and numbers that stand beside something else: a bid, an agreement, a question, a number
that the merchant told, another good's number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from haggle.language.english.linker import English
from haggle.trade.asking import question
from haggle.trade.knowledge import asks_what_it_costs
from haggle.trade.methods import get_method
from haggle.trade.session import Session
from haggle.trade.telling import questions_in
from haggle.trade.wire import Proposal
from haggle.trade.world import World

from .conftest import CHAT, DEAL, REVIEW, Talk, change, order, show

LAMP = ("a table lamp", order(Table_Lamp=1))
PAIR = ("two bottles of lamp oil and the sea boots", order(Bottle_of_Lamp_Oil=2, Sea_Boots=1))


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("Three coils of rope please. And what can you take off for all of it?", DEAL,
         {"table_lamp": 1, "coil_of_rope": 3}),
        ("yes and a coil of rope, then we are done", REVIEW, {"table_lamp": 1, "coil_of_rope": 1}),
        ("n a cough syrup. ill take it", REVIEW, {"table_lamp": 1, "cough_syrup": 1}),
        ("the rope too, so lamp and rope, I'm buying", REVIEW, {"table_lamp": 1, "coil_of_rope": 1}),
        ("Make it two table lamps. Could you come down a bit?", DEAL, {"table_lamp": 2}),
        ("table lamps better three. Is a discount possible?", DEAL, {"table_lamp": 3}),
        ("nah 3 lamps not 1. is it cold out there?", CHAT, {"table_lamp": 3}),
    ],
)  # fmt: skip
def test_an_order_beside_a_bid_an_agreement_or_small_talk_is_heard(
    talk: Talk, line, decided, cart
) -> None:
    turn = talk(LAMP, (line, decided))
    assert (turn.state, turn.cart) == ("OFFER_SELL", cart)


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("My brother has a coil of rope. Could you come down a bit?", DEAL),
        ("yes, it is not for a rope", REVIEW),
        ("Yes. The sea sends you its regards.", REVIEW),
        ("well... yes. all right, i'll have it", REVIEW),
        ("No rope. Could you come down a bit?", DEAL),
        ("and your neighbour sells rope for 15", DEAL),
        ("Also my brother bought sea boots here and they leaked. Knock something off?", DEAL),
        ("plus I already have rope and lamp oil. 20?", DEAL),
        ("that is steep for brass and rope. could you do 20?", DEAL),
        ("and I hear rope is going up. ok deal", REVIEW),
        ("I'll take it home to my sea boots", REVIEW),
        ("It goes well with rope, I'll take it", REVIEW),
        ("yes, and my dog ate the sea boots once", REVIEW),
    ],
)
def test_goods_only_spoken_of_are_not_ordered(talk: Talk, line, decided) -> None:
    assert talk(LAMP, (line, decided)).cart == {"table_lamp": 1}


REMARKS = [
    ("three lamps is better than two, my aunt says. could you come down?", DEAL),
    ("six lamps would be better value elsewhere", DEAL),
    ("two lamps stay lit longer, they say. Is it dry today?", CHAT),
    ("a house should be lit by four lamps, my mother said. Is it far to Hull?", CHAT),
    ("20 for it, not 30", DEAL),
]


@pytest.mark.parametrize(("line", "decided"), REMARKS)
def test_numbers_of_a_remark_change_no_order(talk: Talk, line, decided) -> None:
    assert talk(LAMP, (line, decided)).cart == {"table_lamp": 1}


ROPE_TOO = ("two pairs of sea boots", order(Sea_Boots=2, Coil_of_Rope=1))


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("No rope, my own coil of rope is new. It is but one pair of sea boots.", 1),
        ("No, thank you. The coil of rope is at home. Only the sea boots.", 2),
    ],
)
def test_goods_that_were_asked_about_and_refused_are_not_added(talk: Talk, line, number) -> None:
    assert talk(ROPE_TOO).withheld == "asked_goods"
    assert talk(ROPE_TOO, (line, change(Sea_Boots=number))).cart == {"sea_boots": number}


def test_goods_that_are_only_ruled_out_are_taken_out_unasked(store: World) -> None:
    session = Session(store, method=get_method("astp-stepwise"), linker=English())
    session.settle("OFFER_SELL", {"sea_boots": 1, "coil_of_rope": 2}, None)
    left = (("Sea Boots", 1),)
    asked = Proposal(last="OFFER_SELL", state="OFFER_SELL", say="", cart=left)
    assert question(session, "No rope. Two days it rained, and nobody fished.", asked) is None
    more = replace(asked, cart=(*left, ("Table Lamp", 1)))
    assert question(session, "sea boots and a lamp, no rope", more) is not None


def test_how_much_goods_can_do_is_no_price() -> None:
    assert not asks_what_it_costs("how much can the rope lift, anyway?")
    assert not asks_what_it_costs("how much dew does it bring in a night?")
    assert asks_what_it_costs("how much is the rope?")


def test_what_is_in_view_is_ordered_by_its_number(talk: Talk) -> None:
    shown = ("is the rope strong?", show("Coil of Rope"))
    turn = talk(LAMP, shown, ("ok I'll take two coils of that", REVIEW))
    assert turn.cart == {"table_lamp": 1, "coil_of_rope": 2}


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("one coil of rope, and six bottles of lamp oil to begin with",
         order(Coil_of_Rope=6, Bottle_of_Lamp_Oil=1), {"coil_of_rope": 1, "bottle_of_lamp_oil": 6}),
        ("no 2 coils of rope, 3 bottles of lamp oil",
         order(Coil_of_Rope=3, Bottle_of_Lamp_Oil=2), {"coil_of_rope": 2, "bottle_of_lamp_oil": 3}),
    ],
)  # fmt: skip
def test_numbers_stay_with_their_goods(talk: Talk, line, decided, cart) -> None:
    assert talk((line, decided)).cart == cart


@pytest.mark.parametrize(
    ("line", "decided", "cart"),
    [
        ("the lamp oil should be four. And the sea boots, are they warm?", change(Sea_Boots=4),
         {"bottle_of_lamp_oil": 4, "sea_boots": 1}),
        ("lamp oil stays five, I was counting weeks", change(),
         {"bottle_of_lamp_oil": 5, "sea_boots": 1}),
        ("Make it three, not two. And the sea boots, are they warm?", change(Sea_Boots=3),
         {"bottle_of_lamp_oil": 3, "sea_boots": 1}),
        ("one for me and one for the girl next door", change(Bottle_of_Lamp_Oil="+1"),
         {"bottle_of_lamp_oil": 2, "sea_boots": 1}),
        ("And the lamp oil, how many weeks does it last? Five, six?", change(Bottle_of_Lamp_Oil=6),
         {"bottle_of_lamp_oil": 2, "sea_boots": 1}),
        ("no two lamp oils, I double them: four", change(Bottle_of_Lamp_Oil=4),
         {"bottle_of_lamp_oil": 4, "sea_boots": 1}),
        ("not like that: five lamp oils and two pairs of sea boots", change(Sea_Boots=2),
         {"bottle_of_lamp_oil": 5, "sea_boots": 2}),
        ("five lamp oils is too much for us. Sea boots two pairs", change(Sea_Boots=2),
         {"bottle_of_lamp_oil": 2, "sea_boots": 2}),
        ("no, not three lamp oils. Sea boots two pairs", change(Sea_Boots=2),
         {"bottle_of_lamp_oil": 2, "sea_boots": 2}),
        ("I have five lamp oils at home, make the sea boots two", change(Sea_Boots=2),
         {"bottle_of_lamp_oil": 2, "sea_boots": 2}),
        ("last week five lamp oils were gone in a day! Two sea boots please", change(Sea_Boots=2),
         {"bottle_of_lamp_oil": 2, "sea_boots": 2}),
    ],
)  # fmt: skip
def test_a_number_changes_what_it_is_told_of(talk: Talk, line, decided, cart) -> None:
    assert talk(PAIR, (line, decided)).cart == cart


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("the lamp oil and no sea boots. can u do me a deal", change(Bottle_of_Lamp_Oil=2)),
        ("take the sea boots off, just the lamp oil", change(Bottle_of_Lamp_Oil=0, Sea_Boots=0)),
    ],
)
def test_what_is_not_wanted_goes_and_the_rest_stays(talk: Talk, line, decided) -> None:
    assert talk(PAIR, (line, decided)).cart == {"bottle_of_lamp_oil": 2}


def test_goods_that_are_named_alone_come_back(talk: Talk) -> None:
    both = ("no boots and no oil", change(Bottle_of_Lamp_Oil=0, Sea_Boots=0))
    line = "you forgot the sea boots, put them back"
    turn = talk(("a coil of rope", order(Coil_of_Rope=1)), PAIR, both, (line, change(Sea_Boots=1)))
    assert turn.cart.get("sea_boots") == 1 and "bottle_of_lamp_oil" not in turn.cart


def test_a_number_just_heard_orders_nothing(talk: Talk) -> None:
    heard = ("how long does the storm lantern burn?", show("Storm Lantern"))
    turn = talk(
        heard, ("Eight hours, good. And the table lamp, how heavy is it?", order(Table_Lamp=1))
    )
    assert (turn.state, turn.cart) == ("SHOW_ITEMS", {})


def test_a_word_that_a_name_ends_in_means_that(store: World) -> None:
    session = Session(store, method=get_method("astp-stepwise"), linker=English())
    assert session.named("is the lamp heavy?") == {"table_lamp"}
    assert session.named("a bottle of oil") == {"bottle_of_lamp_oil"}


def test_a_question_is_known_without_its_mark() -> None:
    line = "ok a storm lantern. is the oil already in it"
    assert questions_in(line) == ["is the oil already in it"]
    assert questions_in("ok a storm lantern, the oil too") == []


@pytest.mark.parametrize(
    ("line", "decided"),
    [
        ("fine... and you're sure there is no fish in the lamp oil?", change(Bottle_of_Lamp_Oil=0)),
        ("how much is one bottle of the lamp oil? I want to be sure of the sum.",
         change(Bottle_of_Lamp_Oil=1)),
        ("Wait, does the lamp oil really burn clean? My aunt has weak lungs.",
         change(Bottle_of_Lamp_Oil=0)),
        ("the sea boots are good ones, aren't they?", change(Sea_Boots=0)),
    ],
)  # fmt: skip
def test_a_question_changes_no_number(talk: Talk, line, decided) -> None:
    turn = talk(PAIR, (line, decided))
    assert (turn.state, turn.cart) == ("SHOW_ITEMS", {"bottle_of_lamp_oil": 2, "sea_boots": 1})


@pytest.mark.parametrize(
    ("line", "decided", "left"),
    [
        ("could you drop the sea boots?", change(Sea_Boots=0), {"bottle_of_lamp_oil": 2}),
        ("Could the lamp oil be made three?", change(Bottle_of_Lamp_Oil=3),
         {"bottle_of_lamp_oil": 3, "sea_boots": 1}),
        ("Did I say sea boots? I meant the cough syrup. Swap it.",
         change(Sea_Boots=0, Cough_Syrup=1), {"bottle_of_lamp_oil": 2, "cough_syrup": 1}),
        ("I only asked about the sea boots, I don't want them.", change(Sea_Boots=0),
         {"bottle_of_lamp_oil": 2}),
    ],
)  # fmt: skip
def test_a_request_in_a_question_is_carried_out(talk: Talk, line, decided, left) -> None:
    assert talk(PAIR, (line, decided)).cart == left


@pytest.mark.parametrize("line", ["sixty?? i could do 50", "60 is steep. 40 and we have a deal"])
def test_a_bid_for_goods_in_view_is_no_number_of_pieces(talk: Talk, line) -> None:
    shown = ("what are the sea boots?", show("Sea Boots"))
    number = int(line.split()[3 if line.startswith("60") else -1])
    assert talk(shown, (line, order(Sea_Boots=number))).cart == {"sea_boots": 1}


def test_a_bid_beside_the_same_order_is_a_bid(talk: Talk) -> None:
    boots = ("the sea boots", order(Sea_Boots=1))
    line = "Sixty again. Fifty-five, split the difference."
    assert talk(boots, (line, change(Sea_Boots=55))).state == "NEGOTIATE"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("ok serious question whats the cheapest thing in here", "Cough Syrup"),
        ("what is the most expensive thing you sell?", "Sea Boots"),
        ("the cheapest boots?", "Ankle Boots"),
        ("i asked which is the cheapest", "Cough Syrup"),
        ("what is the cheapest way to moor a boat?", "Coil of Rope"),
        ("this is my dearest lantern", "Storm Lantern"),
    ],
)
def test_the_cheapest_and_the_dearest_are_shown(talk: Talk, line, shown) -> None:
    turn = talk((line, show("Storm Lantern")))
    details = turn.response.context_details
    assert details and [item.item_name for item in details.items or ()] == [shown]
