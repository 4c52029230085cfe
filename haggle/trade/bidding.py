"""A price that a player names beside an order: "two of them, for nine the pair".

A decision carries an order or a bid, not both. Where a line has both, the order is carried out, and
the merchant answers the bid with it.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass, replace
from functools import lru_cache

from haggle.trade.among import one_of_those
from haggle.trade.edits import carried_out, held
from haggle.trade.knowledge import (
    SENTENCE_END,
    asks_for_less,
    haggles,
    knowledge,
    respelled,
    says,
    tells_a_need,
)
from haggle.trade.language import patterns
from haggle.trade.ledger import Cart, bid_amount, counter_offer, total
from haggle.trade.numbers_told import numbers_of
from haggle.trade.procedure import Payload
from haggle.trade.resolve import Resolved, worded
from haggle.trade.session import Session
from haggle.trade.wanted import ruled_out
from haggle.trade.wire import Bid, Proposal
from haggle.trade.world import Item

BRIEF = 5  # words of a sentence that is a bid though it does not speak of money
LIKELY = 0.4  # of the price: less is no bid that is meant


@dataclass(frozen=True, slots=True)
class Offer:
    """A price that a line names. `sure`: it speaks of money or of paying; else the number might be
    one of people or pieces."""

    number: int
    bid: Bid
    sure: bool


def offered(session: Session, line: str, *, purse: bool = False) -> Offer | None:
    """The price of a line that names one; None where none does. With `purse` what somebody has is
    one as well: "I have only thirty crowns"."""
    reading = session.read(line)
    text, cues = reading.line.casefold(), knowledge()
    money = _money(session.world.currency)
    named_at = {mention.start for mention in reading.mentions}
    for number in reading.numbers:
        before, behind = respelled(text[: number.start]), text[number.end :]
        has = patterns.HAS_MONEY.search(before) is not None
        if number.value is None or number.value in _asked(session, line) or (has and not purse):
            continue
        each = re.match(rf"\s*(?:{money}\s*)?{patterns.EACH_PIECE}", behind) is not None
        named = re.match(rf"\s*{money}", behind) is not None
        bought = bool(re.match(rf"\s*(?:{money}\s*)?{patterns.BID_FOR}", behind))
        goods = re.match(rf"\s*(?:{money}\s*)?{patterns.FOR_GOODS}", behind)
        bought |= bool(goods and patterns.SUCH_ONES.match(behind[goods.end() :]))
        swaps = patterns.SWAPS.search(before) is not None
        bought = bought or (
            goods is not None and number.end + goods.end() in named_at and not swaps
        )
        alone = patterns.STOPS.match(behind) is not None
        pays, asks = patterns.PAYS.search(before), patterns.BIDS.search(before)
        sure = bool(bought or (pays and (alone or named or each)) or (asks and named))
        bare = says(text, cues.haggling) and _is_bare(before, behind)
        if sure or named or has or bare or (asks and (alone or each)):
            return Offer(number.value, f"{number.value} each" if each else number.value, sure)
    return None


@lru_cache(maxsize=256)
def _money(currency: str) -> str:
    """What money is called, as a regular expression: "twelve pieces of silver"."""
    names = "|".join((re.escape(currency.casefold()), *sorted(knowledge().money)))
    return rf"{patterns.COINS_OF}(?:{names})(?!\w)"


def told_bid(session: Session, line: str, bid: Bid) -> Bid:
    """A bid; open where the line has only the numbers that stand, of the price and the pieces, and
    the bid is none of them, nor the price less one of them, nor half of it: "twelve pair, 471. Bulk
    rate?" """
    price, pieces = session.sale_price, session.cart.values()
    told = numbers_of(session.read(line))
    if not isinstance(bid, int) or price is None or not told:
        return bid
    comes = bid in told or price - bid in told or 2 * bid == price
    return bid if comes or not told <= {price, sum(pieces), *pieces} else None


def of_money(session: Session, line: str) -> set[int | None]:
    """The numbers of a line that count money: "twelve shillings is a lot"."""
    reading, money = session.read(line), _money(session.world.currency)
    text = reading.line.casefold()
    return {n.value for n in reading.numbers if re.match(rf"\s*{money}", text[n.end :])}


def likely_bids(session: Session, line: str, item: Item) -> set[int | None]:
    """The numbers of a line that may well be bids and no pieces of a good: "six is robbery. Five";
    "only if you do it for twelve"."""
    price, reading = session.sale_price or item.price or 0.0, session.read(line)
    text, haggling = reading.line.casefold(), session.cart and says(line, knowledge().haggling)
    numbers = (n for n in reading.numbers if n.value and LIKELY * price <= n.value <= price)
    most, takes = item.quantity or 0, patterns.TAKING.search(text) or patterns.SETS.search(text)
    beyond = not (session.cart or takes)  # "I'll take 12" of nine
    return {
        n.value
        for n in numbers
        if (beyond and (n.value or 0) > most and not patterns.OF_GOODS.match(text[n.end :]))
        or patterns.LET_FOR.search(text[: n.start])
        or (beyond and _is_said_to_a_price(text[: n.start], text[n.end :]))
        or (haggling and _is_bare(text[: n.start], text[n.end :]))
    }


def _is_bare(before: str, behind: str) -> bool:
    """Whether a number is all that a sentence says first: "Five." """
    alone = patterns.STOPS.match(behind)
    return bool(alone and re.search(r"(?:^|[.!?])\s*$", before))


def _is_said_to_a_price(before: str, behind: str) -> bool:
    """Whether a number answers a price: "I could do 12", "20 and we have a deal"."""
    does = patterns.BIDS.search(before) and patterns.STOPS.match(behind)
    return bool(does or patterns.AND_A_DEAL.match(behind))


def _asked(session: Session, line: str) -> set[float | None]:
    """The prices that stand: what the merchant asks for the cart, for goods of a line, and for the
    only good in view."""
    goods, view = session.world.by_id, session.world.known(session.in_view())
    named = [goods[i] for i in session.named(line, sure=False)]
    alone = view if len(view) == 1 else []
    return {session.sale_price, *(item.price for item in (*named, *alone))}


def bargained(session: Session, line: str, proposal: Proposal, states: Set[str]) -> Proposal | None:
    """The bid of a line that a proposal passes over: of goods in the cart a bid, of goods that are
    named or in view an order of one. None where there is none. `states` may follow."""
    procedure, world = session.procedure, session.world
    state = procedure.state(proposal.state)
    ordering = state.payload == "cart" and dict(carried_out(session, proposal)) != held(session)
    if ordering or state.payload == "bid" or state.clears or state.resets or not haggles(line):
        return None
    haggling = bool(session.cart or says(line, knowledge().haggling))
    offer = offered(session, line, purse=haggling)
    brief = len(SENTENCE_END.split(line.strip())[-1].split()) <= BRIEF  # "would you do 125"
    less = offer is None and asks_for_less(line) and _requests(line)
    meant = less or (offer and (offer.sure or brief or haggling))
    cart = session.cart or (only_good(session, line) if meant else {})
    price = session.sale_price if session.cart else total(world, cart)
    likely = offer is not None and _is_likely(offer, price or 0.0, sum(cart.values()))
    if not cart or not (likely or less):
        return None
    wanted: Payload = "bid" if session.cart else "cart"
    follows = next((s for s in states if procedure.states[s].payload == wanted), None)
    if follows is None:
        return None
    told = replace(proposal, state=follows, cart=None, change=None, show=None, bid=None)
    if session.cart:
        return replace(told, bid=offer.bid if offer else None)
    return replace(told, cart=tuple((world.by_id[i].item_name, n) for i, n in cart.items()))


def only_good(session: Session, line: str) -> Cart:
    """One piece of the only good that a line names, or that is in view; none where it asks for
    others."""
    world = session.world
    if tells_a_need(line):
        return {}
    ids = session.named(line) or session.named(line, sure=False)
    items = [world.by_id[i] for i in ids] or one_of_those(session, line)
    items = items or world.known(session.in_view())
    found = {item.item_id: 1 for item in items if item.for_sale}
    return found if len(items) == 1 and not found.keys() & ruled_out(world, line) else {}


def _requests(line: str) -> bool:
    """Whether a line asks for something: "what a good price!" does not."""
    cues = knowledge()
    return "?" in line or bool(says(line, cues.requesting) and not says(line, cues.denying))


def _is_likely(offer: Offer, price: float, pieces: int) -> bool:
    """Whether an offer is a bid that is meant: below the price, and not absurdly so."""
    wanted = bid_amount(offer.bid, price, pieces)
    return wanted is not None and LIKELY * price <= wanted < price


def answered(session: Session, line: str, resolved: Resolved) -> Resolved:
    """The outcome of an order with the merchant's answer to the bid beside it."""
    offer = offered(session, line, purse=bool(says(line, knowledge().haggling)))
    state = session.procedure.state(resolved.proposal.state)
    less = offer is None and "?" in line and asks_for_less(line)
    less = less and resolved.cart != session.cart
    if not (offer or less) or state.payload != "cart" or not resolved.cart:
        return resolved
    if offer and not offer.sure and offer.number in resolved.cart.values():
        return resolved
    world, cart = session.world, resolved.cart
    current = resolved.sale_price if resolved.sale_price is not None else total(world, cart)
    if offer and not _is_likely(offer, current, sum(cart.values())):
        return resolved
    price = counter_offer(world, cart, current, offer.bid if offer else None)
    return worded(session, resolved, resolved.proposal.say, price)
