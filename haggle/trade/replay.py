"""Put a session where an earlier conversation left it, from what each side said and did."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from haggle.core.config import Record
from haggle.core.errors import HaggleError, nearest
from haggle.trade.edits import shortened
from haggle.trade.language import patterns
from haggle.trade.ledger import total
from haggle.trade.outcome import remember
from haggle.trade.placeholders import unfill
from haggle.trade.resolve import Resolved
from haggle.trade.response import ContextDetails, ItemLine, MerchantResponse
from haggle.trade.said_act import with_act
from haggle.trade.session import Session
from haggle.trade.wire import Bid, Proposal
from haggle.trade.world import money

_AMOUNT = re.compile(r"(?<![\w.])(\d{1,7})(?![\w.]*\d)")


class PastItem(Record):
    """An item of an earlier answer."""

    item_id: str
    quantity: int = 1


class PastAnswer(Record):
    """An earlier answer as a game kept it (fields of the ASTP response, flat)."""

    npc_dialogue: str
    context_type: str
    context_subtype: str | None = None
    items: list[PastItem] = []
    original_price: float | None = None
    sale_price: float | None = None

    @property
    def state(self) -> str:
        """The flat state label."""
        return self.context_subtype or self.context_type


class PastExchange(Record):
    """One earlier round."""

    player: str
    npc: PastAnswer


def replay(session: Session, exchange: PastExchange) -> None:
    """Take over one earlier round: the ledger moves, and later prompts show it.

    Raises HaggleError for a state or item that this procedure or world does not know.
    """
    npc, world, procedure = exchange.npc, session.world, session.procedure
    state = procedure.state(npc.state)
    names = {i.item_id: _name(session, i.item_id) for i in npc.items}
    cart = {i.item_id: i.quantity for i in npc.items} if state.priced else dict(session.cart)
    price = npc.sale_price if npc.sale_price is not None else None
    if state.priced and price is None:
        price = total(world, cart)
    if not state.priced:
        price = session.sale_price
    proposal = Proposal(
        last=session.last,
        state=npc.state,
        say=unfill(npc.npc_dialogue, money(price) if price is not None else None),
        cart=tuple((names[i.item_id], i.quantity) for i in npc.items)
        if state.payload == "cart"
        else None,
        show=tuple(names.values()) if state.payload == "show" else None,
        bid=bid_in(exchange.player) if state.payload == "bid" else None,
    )
    proposal = with_act(session, exchange.player, proposal)
    proposal = shortened(session, exchange.player, proposal)
    response = _response(session, npc, names)
    shown = tuple(names.values()) if state.payload == "show" else ()
    remember(session, exchange.player, Resolved(response, proposal, cart, price, shown))
    session.settle(npc.state, cart, price)
    session.shown = shown or session.shown


def bid_in(text: str) -> Bid:
    """The bid a line of text most likely names: `N%`, the last number, or None."""
    percent = patterns.PERCENT.search(text)
    if percent:
        return f"{percent[1]}%"
    amounts = _AMOUNT.findall(text)
    return int(amounts[-1]) if amounts else None


def _name(session: Session, item_id: str) -> str:
    item = session.world.by_id.get(item_id)
    if item is None:
        raise HaggleError(
            f"unknown item {item_id!r}",
            where=session.world.name,
            hint=nearest(item_id, session.world.by_id),
        )
    return item.item_name


def _response(session: Session, npc: PastAnswer, names: Mapping[str, str]) -> MerchantResponse:
    details: Any = None
    if npc.context_subtype:
        details = ContextDetails(
            context_subtype=npc.context_subtype,
            items=[
                ItemLine(
                    item_id=i.item_id,
                    item_name=names[i.item_id],
                    quantity=i.quantity,
                    price=session.world.by_id[i.item_id].price,
                )
                for i in npc.items
            ],
            original_price=npc.original_price,
            sale_price=npc.sale_price,
        )
    return MerchantResponse(
        last_trade_context=session.last,
        context_type=npc.context_type,
        context_details=details,
        npc_dialogue=npc.npc_dialogue,
    )
