"""A yes to the merchant's own question about an order may be said in many ways."""

from __future__ import annotations

from typing import Any

import pytest

from haggle.trade.asking import agrees, question
from haggle.trade.session import Session
from haggle.trade.wire import Proposal


@pytest.fixture
def asked(stall: Any) -> Session:
    """A customer who was asked whether one axe is meant."""
    session = Session(stall)
    session.pending = Proposal(last="", state="OFFER_SELL", say="", cart=(("Sharp Axe", 1),))
    return session


@pytest.mark.parametrize(
    "line",
    [
        "yes",
        "Yes, that's right.",
        "yea thats it, one",
        "Aye, just the one. And what about my six gold, deal?",
        "Right, one. And I said six gold, can you come down?",
        "sure thing boss, what's it made of?",
        "Yes, one sharp axe",
    ],
)
def test_a_yes_carries_the_order_out(asked: Session, line: str) -> None:
    assert agrees(asked, line)


@pytest.mark.parametrize(
    "line",
    [
        "yes but make it three",
        "no, two",
        "yes, and the rope",
        "not quite",
        "yes, without the axe",
        "yes but take the axe out",
        "nope",
        "what?",
        "",
        "...",
    ],
)
def test_other_numbers_other_goods_and_a_no_do_not(asked: Session, line: str) -> None:
    assert not agrees(asked, line)


def test_a_one_beside_the_numbers_that_were_asked_about_is_no_other_number(stall: Any) -> None:
    session = Session(stall)
    session.pending = Proposal(last="", state="OFFER_SELL", say="", cart=(("Sharp Axe", 2),))
    assert agrees(session, "Yes, that's it, two axes. One for each hand.")
    assert not agrees(session, "Yes, that's it, three axes. One for each hand.")


def test_without_a_question_nothing_is_agreed_to(stall: Any) -> None:
    assert not agrees(Session(stall), "yes")


@pytest.fixture
def buyer(visit: Any) -> Any:
    """A customer who has ordered one axe."""
    found = visit(method="astp-stepwise")
    found.turn("OFFER_SELL", "", "one sharp axe", cart=[["Sharp Axe", 1]])
    return found


ROPES = [["Sharp Axe", 2], ["Sturdy Rope (20m)", 2]]


def test_goods_without_evidence_are_asked_about_and_the_rest_is_done(buyer: Any) -> None:
    line = "two axes, and a pair of those long twisty things"
    turn = buyer.turn("OFFER_SELL", "", line, cart=ROPES)
    assert buyer.session.cart == {"axe": 2}
    assert turn.withheld == "asked_goods" and turn.interventions == ["not_named", "safe_line"]
    assert "260 gold" in turn.says and turn.says.endswith("2 Sturdy Ropes (20m) as well?")


@pytest.mark.parametrize("answer", ["yes", "the twisty things, I said", "yes please, two"])
def test_who_agrees_or_says_the_same_again_gets_them(buyer: Any, answer: str) -> None:
    buyer.turn("OFFER_SELL", "", "two axes, and a pair of twisty things", cart=ROPES)
    turn = buyer.turn("OFFER_SELL", "", answer, cart=ROPES)
    assert buyer.session.cart == {"axe": 2, "rope": 2} and not turn.withheld


@pytest.mark.parametrize("answer", ["no", "no no, I meant something else", "nah not those"])
def test_who_says_no_does_not(buyer: Any, answer: str) -> None:
    buyer.turn("OFFER_SELL", "", "two axes, and a pair of twisty things", cart=ROPES)
    turn = buyer.turn("OFFER_SELL", "", answer, cart=ROPES)
    assert buyer.session.cart == {"axe": 2} and not turn.withheld


def test_what_a_line_rules_out_is_not_asked_about(buyer: Any) -> None:
    turn = buyer.turn("OFFER_SELL", "", "two axes, not the rope", cart=ROPES)
    assert buyer.session.cart == {"axe": 2} and not turn.withheld


def test_a_new_customer_is_asked_what_is_meant(visit: Any) -> None:
    found = visit(method="astp-stepwise")
    turn = found.turn("OFFER_SELL", "", "gimme the beauty with the handle", cart=[["Sharp Axe", 1]])
    assert (turn.state, turn.says) == ("CASUAL", "Do you mean 1 Sharp Axe?")
    assert found.turn("CASUAL", "", "that's the one").cart == {"axe": 1}


@pytest.mark.parametrize(
    "answer", ["no", "no, not that, the other beauty", "who are you?", "what does it cost?", "hmm"]
)
def test_only_a_yes_or_the_same_again_answers_the_question(visit: Any, answer: str) -> None:
    found = visit(method="astp-stepwise")
    found.turn("OFFER_SELL", "", "gimme the beauty with the handle", cart=[["Sharp Axe", 1]])
    assert found.turn("OFFER_SELL", "", answer, cart=[["Sharp Axe", 1]]).cart == {}


@pytest.mark.parametrize("line", ["hello", "lovely weather today", "how is business?"])
def test_who_orders_nothing_is_not_asked_whether_goods_are_meant(visit: Any, line: str) -> None:
    turn = visit(method="astp-stepwise").turn("OFFER_SELL", "", line, cart=[["Sharp Axe", 1]])
    assert turn.cart == {} and not turn.withheld


def test_what_is_asked_about_comes_beside_what_is_there(buyer: Any) -> None:
    rope = [["Sturdy Rope (20m)", 2]]
    line = "and a pair of those twisty things too"
    assert buyer.turn("OFFER_SELL", "", line, cart=rope).withheld == "asked_goods"
    turn = buyer.turn("OFFER_SELL", "", "the twisty things, I said", cart=rope)
    assert turn.cart == {"axe": 1, "rope": 2}


def test_an_unlikely_order_of_what_is_only_asked_about_is_answered_not_asked_back(stall: Any):
    order = Proposal(last="", state="OFFER_SELL", say="", cart=(("Sharp Axe", 1),))
    assert question(Session(stall), "one sharp axe perhaps", order) is not None
    assert question(Session(stall), "And what is that sharp axe made of?", order) is None


def test_goods_ordered_by_name_go_before_an_unlikely_order(stall: Any) -> None:
    session = Session(stall)
    session.cart = {"axe": 1}
    order = Proposal(last="", state="OFFER_SELL", say="", change=(("Sharp Axe", 3),))
    ruling = question(session, "I'll take the map for it", order)
    assert ruling is not None and ruling.action is not None
    assert dict(ruling.action.cart or ()) == {"Sharp Axe": 1, "Local Map": 1}
    asked = question(session, "better three of those", order)
    assert asked is not None and asked.pending is not None
