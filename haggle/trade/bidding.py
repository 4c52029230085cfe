"""A price that a player names beside an order: "two of them, for nine the pair".

A decision carries an order or a bid, not both. Where a line has both, the order is carried out, and
the merchant answers the bid with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from haggle.trade.knowledge import knowledge, with_g
from haggle.trade.ledger import bid_amount, counter_offer, total
from haggle.trade.resolve import Resolved, worded
from haggle.trade.session import Session
from haggle.trade.wire import Bid

LIKELY = 0.4  # of the price: less is no bid that is meant

_EACH = r"(?:each|apiece|a piece|a pop|per piece|per)\b"


@dataclass(frozen=True, slots=True)
class Offer:
    """A price that a line names. `sure`: it speaks of money or of paying; else the number might be
    one of people or pieces."""

    number: int
    bid: Bid
    sure: bool


def offered(session: Session, line: str) -> Offer | None:
    """The price of a line that names one; None where none does."""
    reading = session.read(line)
    text, cues = reading.line.casefold(), knowledge()
    money = rf"(?:{re.escape(session.world.currency.casefold())}|{'|'.join(sorted(cues.money))})\b"
    for number in reading.numbers:
        before, behind = with_g(text[: number.start]), text[number.end :]
        if number.value is None or _ends(cues.purse, before):
            continue
        each = re.match(rf"\s*(?:{money}\s*)?{_EACH}", behind) is not None
        named = re.match(rf"\s*{money}", behind) is not None
        bought = re.match(rf"\s*(?:{money}\s*)?(?:{'|'.join(cues.bid_for)})", behind) is not None
        alone = re.match(r"\s*(?:$|[.,;:!?)]|and\b)", behind) is not None
        pays, asks = _ends(cues.paying, before), _ends(cues.bidding, before)
        sure = bought or (pays and (alone or named or each)) or (asks and named)
        if sure or named or (asks and (alone or each)):
            return Offer(number.value, f"{number.value} each" if each else number.value, sure)
    return None


def _ends(phrases: Sequence[str], before: str) -> bool:
    ends = rf"\b(?:{'|'.join(phrases)})\s+(?:(?:my|the|that|about|around)\s+)?$"
    return re.search(ends, before) is not None


def answered(session: Session, line: str, resolved: Resolved) -> Resolved:
    """The outcome of an order with the merchant's answer to the bid beside it."""
    offer = offered(session, line)
    state = session.procedure.state(resolved.proposal.state)
    if offer is None or state.payload != "cart" or not resolved.cart:
        return resolved
    if not offer.sure and offer.number in resolved.cart.values():
        return resolved
    world, cart = session.world, resolved.cart
    current = resolved.sale_price if resolved.sale_price is not None else total(world, cart)
    wanted = bid_amount(offer.bid, current, sum(cart.values()))
    if wanted is None or not LIKELY * current <= wanted < current:
        return resolved
    price = counter_offer(world, cart, current, offer.bid)
    return worded(session, resolved, resolved.proposal.say, price)
