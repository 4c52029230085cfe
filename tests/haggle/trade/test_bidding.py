"""A price named beside an order is answered with the order."""

from __future__ import annotations

from typing import Any

import pytest

from haggle.trade.bidding import offered, told_bid
from haggle.trade.session import Session


@pytest.mark.parametrize(
    ("line", "bid", "sure"),
    [
        ("I'll take two, but I'd sooner pay nine for the pair", 9, True),
        ("one of them. can u do 18 gold? im broke", 18, True),
        ("the axe dude. one of them. for 6?", 6, False),
        ("One axe, and I'm offerin' six gold for it.", 6, True),
        ("I'll toss you six for 'em", 6, True),
        ("three axes at 100 each please", "100 each", False),
        ("an axe for 90 gold please", 90, True),
    ],
)
def test_a_price_is_read_beside_an_order(stall: Any, line: str, bid: Any, sure: bool) -> None:
    offer = offered(Session(stall), line)
    assert offer is not None and (offer.bid, offer.sure) == (bid, sure)


@pytest.mark.parametrize(
    "line",
    [
        "I have twelve gold, the axe please",
        "two axes for my twins, they are 4",
        "rope for 6 men",
        "give me two for 9 days",
        "an axe",
        "",
        "x" * 5000,
    ],
)
def test_other_numbers_are_no_price(stall: Any, line: str) -> None:
    assert offered(Session(stall), line) is None


def test_an_order_with_a_bid_is_carried_out_and_the_bid_is_answered(visit: Any) -> None:
    customer = visit(method="astp-stepwise")
    line = "two sharp axes, but I'd sooner pay 250 for the pair"
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Sharp Axe", 2]])
    assert turn.cart == {"axe": 2} and turn.state == "OFFER_SELL"
    assert 250 <= customer.session.sale_price < 260  # met, or half-way


def test_no_bid_goes_below_the_floor_or_is_met_when_it_is_absurd(visit: Any) -> None:
    for price, least in ((200, 208), (5, 260), (400, 260)):
        customer = visit(method="astp-stepwise")
        line = f"two sharp axes, I give you {price} for the pair"
        customer.turn("OFFER_SELL", "", line, cart=[["Sharp Axe", 2]])
        assert customer.session.sale_price >= least


def test_a_number_that_may_count_the_goods_is_no_bid(visit: Any) -> None:
    customer = visit(method="astp-stepwise")
    customer.turn("OFFER_SELL", "", "sharp axes, I could do 3", cart=[["Sharp Axe", 3]])
    assert customer.session.sale_price == 390


@pytest.mark.parametrize(
    ("line", "bid", "right"),
    [
        ("Two axes, 260. Steep. Bulk rate?", 120, None),
        ("260? Can you do better?", 120, None),
        ("260 is steep. Do 240?", 240, 240),
        ("Two axes. A hundred, then?", 100, 100),
        ("Two axes, 260? Ten percent off.", "10%", "10%"),
        ("Knock two off.", 258, 258),
        ("Two axes, 260? Half that.", 130, 130),
    ],
)
def test_a_bid_that_no_number_stands_for_is_open(
    stall: Any, line: str, bid: Any, right: Any
) -> None:
    session = Session(stall)
    session.cart, session.sale_price = {"axe": 2}, 260
    assert told_bid(session, line, bid) == right
