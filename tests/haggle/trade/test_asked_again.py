"""A second question: when the merchant has asked once more, and what a judge lets pass then."""

from __future__ import annotations

import pytest

from haggle.language.english.linker import English
from haggle.trade.session_record import from_record, to_record
from haggle.trade.shared_stock import refused

CHATTY = "yes, the wind tore my roof off"
UNCLEAR = "the wind tore my roof off"


class Sure:
    """A judge that finds everything harmless."""

    def agreement(self, answer: str) -> float:
        return 99.0


@pytest.fixture
def reviewed(visit):
    """A customer to whom two axes for 260 gold have just been reviewed, before such a judge."""
    customer = visit()
    customer.session.linker = English(None, Sure())
    customer.offer(("Sharp Axe", 2))
    customer.turn(
        "FINAL_CHECK", "__CART__ for __PRICE__ __CURRENCY__, yes?", player="let me hear it all"
    )
    return customer


def answer(customer, line):
    return customer.turn("COMMIT_SALE", "Sold.", player=line)


def test_a_first_review_is_no_second_question(reviewed):
    assert not reviewed.session.asked_again
    assert answer(reviewed, CHATTY).state == "FINAL_CHECK"


def test_where_a_first_answer_was_not_clear_a_yes_may_stand_beside_small_talk(reviewed):
    assert answer(reviewed, UNCLEAR).withheld
    assert reviewed.session.asked_again
    assert answer(reviewed, CHATTY).state == "COMMIT_SALE"
    assert not reviewed.session.asked_again


@pytest.mark.parametrize(
    "line", ["yes, once the wind is down", "yes? the wind is up", "yes, one axe"]
)
def test_a_catch_or_another_number_is_none_then_either(reviewed, line):
    answer(reviewed, UNCLEAR)
    if "once" in line:  # what a judge would have to tell
        reviewed.session.linker = English(None)
    assert answer(reviewed, line).state != "COMMIT_SALE"


def test_a_review_that_the_model_begins_out_of_turn_is_a_first_one(visit):
    customer = visit()
    customer.session.linker = English(None, Sure())
    customer.offer(("Sharp Axe", 2))
    early = answer(customer, "lovely axes")
    assert (early.state, early.withheld) == ("FINAL_CHECK", "")
    assert not customer.session.asked_again
    assert answer(customer, CHATTY).state == "FINAL_CHECK"


def test_other_terms_are_asked_about_anew(reviewed):
    asked = answer(reviewed, UNCLEAR)
    refused(reviewed.session, asked, "stock")
    assert not reviewed.session.asked_again


def test_a_session_that_is_stored_knows_that_it_asked(reviewed):
    session = reviewed.session
    assert not from_record(to_record(session, session.world), session.world).asked_again
    answer(reviewed, UNCLEAR)
    assert from_record(to_record(session, session.world), session.world).asked_again
