"""Several customers at one counter: what others bought meanwhile, and sales that cannot be made."""

from __future__ import annotations

from haggle.trade.checks import failures
from haggle.trade.ledger import Note, floor_price, price_under, total
from haggle.trade.outcome import remember
from haggle.trade.records import TurnRecord
from haggle.trade.resolve import Resolved, degraded
from haggle.trade.session import Sale, Session


def take_notice(session: Session) -> None:
    """Cap the cart at what the shop has now. The turn tells the player what is missing, and the
    review on the table no longer holds."""
    left = {i: session.world.by_id[i].quantity or 0 for i in session.cart}
    cart = {i: min(n, left[i]) for i, n in session.cart.items() if left[i]}
    if cart == session.cart:
        return
    names = session.world.by_id
    session.missed = tuple(
        Note("capped", names[i].item_name, left[i])
        if left[i]
        else Note("sold_out", names[i].item_name)
        for i, n in session.cart.items()
        if n > left[i]
    )
    session.deal = session.deal if cart else None
    session.cart = cart
    session.sale_price = price_under(session.world, cart, session.deal) if cart else None


def sale_problem(before: Session, sale: Sale) -> str:
    """Why a sale must not be made, whatever the guard: `unreviewed`, or below the `floor`; "" when
    it may. `before` is the session as it was when the player spoke."""
    review = before.review
    reviewed = (review.id, review.items, review.price) if review else None
    if reviewed != (sale.review, sale.items, sale.price):
        return "unreviewed"
    lowest = min(floor_price(before.world, sale.items), total(before.world, sale.items))
    return "floor" if sale.price < lowest - 0.005 else ""


def refused(session: Session, turn: TurnRecord, reason: str) -> TurnRecord:
    """The turn once more, without the sale that it made, in a line of code's own.

    `session` is as it was before `turn`; `reason` is `stock`, `purse`, or one of `sale_problem`.
    """
    if reason == "purse":
        session.missed = (*session.missed, Note("purse", ""))
    resolved = degraded(session, reason)
    failed = failures(
        session.world,
        session.procedure,
        session.last,
        resolved.response,
        resolved.extra_numbers,
    )
    told = turn.model_copy(update={"failed": failed, "withheld": reason, "withheld_words": ""})
    return carried(session, resolved, told)


def carried(session: Session, resolved: Resolved, turn: TurnRecord) -> TurnRecord:
    """Carry an outcome of code's own over into the session. The record keeps what `turn` says of
    the player and the model."""
    said = resolved.response
    record = turn.model_copy(
        update={
            "response": said,
            "last": session.last,
            "state": said.state,
            "cart": resolved.cart,
            "interventions": list(resolved.interventions),
        }
    )
    remember(session, turn.player, resolved)
    session.settle(said.state, resolved.cart, resolved.sale_price)
    return record
