"""A yes to the merchant's own question about an order may be said in many ways."""

from __future__ import annotations

from typing import Any

import pytest

from haggle.trade.asking import agrees
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


def test_without_a_question_nothing_is_agreed_to(stall: Any) -> None:
    assert not agrees(Session(stall), "yes")
