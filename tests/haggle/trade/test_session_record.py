"""A session as a record: it goes on where it was, without a model."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from haggle.core.errors import HaggleError
from haggle.trade.formula import Formula
from haggle.trade.session import Session
from haggle.trade.session_record import from_record, to_record
from haggle.trade.wire import Proposal


def again(session: Session, shop) -> Session:
    """The session after it went through JSON text."""
    return from_record(json.loads(json.dumps(to_record(session, shop))), shop)


@pytest.mark.parametrize(
    "method", ["astp-compact", "astp-stepwise", "astp-acted", "astp", "baseline1"]
)
def test_a_session_goes_on_where_it_was_after_every_turn(visit, stall, method):
    customer, other = visit(method=method), visit(method=method)
    steps = [
        lambda c: c.turn("SHOW_ITEMS", "Look: __ITEMS__.", "what have you?", show=["Sharp Axe"]),
        lambda c: c.offer(["Sharp Axe", 2], ["Local Map", 1]),
        lambda c: c.turn("NEGOTIATE", "__PRICE__.", "for 300?", bid=300),
        lambda c: c.text("unreadable"),
        lambda c: c.review(),
        lambda c: c.turn("COMMIT_SALE", "Done.", "yes"),
        lambda c: c.turn("END", "Bye."),
    ]
    for step in steps:
        other.session = again(other.session, stall)
        first, second = step(customer), step(other)
        assert first.model_dump() == second.model_dump()
        one, two = to_record(customer.session, stall), to_record(other.session, stall)
        for record in (one, two):  # the ids of reviews are drawn
            record["review"] = record["review"] and {**record["review"], "id": ""}
            record["sales"] = [{**sale, "review": ""} for sale in record["sales"]]
        assert one == two
        assert customer.session.messages("and?") == other.session.messages("and?")
        assert customer.session.legal_states() == other.session.legal_states()


def test_review_and_sales_keep_their_ids(visit, stall):
    customer = visit()
    customer.offer(["Sharp Axe", 2])
    customer.review()
    session = again(customer.session, stall)
    review = customer.session.review
    assert review and session.review == review
    session.confirm(review.id)
    assert again(session, stall).sales == session.sales and session.sales[0].review == review.id
    assert again(session, stall).world.by_id["axe"].quantity == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"cart": (("Sharp Axe", Formula("2*3")), ("Local Map", "all"))},
        {"change": (("Sharp Axe", "+2"),)},
    ],
)
def test_what_waits_for_a_yes_still_waits(stall, fields):
    session = Session(stall)
    session.pending = replace(Proposal("OFFER_SELL", "OFFER_SELL", "so?"), **fields)
    pending = again(session, stall).pending
    assert pending == session.pending
    if cart := fields.get("cart"):
        assert (
            pending and pending.cart and getattr(pending.cart[0][1], "told", "") == cart[0][1].told
        )


def test_a_record_of_another_version_or_with_a_mistake_is_told(stall):
    record = to_record(Session(stall), stall)
    with pytest.raises(HaggleError, match="stored in version 2; this Haggle reads 1"):
        from_record(record | {"version": 2}, stall)
    with pytest.raises(HaggleError, match="cart"):
        from_record(record | {"cart": 7}, stall)
    with pytest.raises(HaggleError, match="unknown method"):
        from_record(record | {"method": "astp-compac"}, stall)
