"""The scripted merchant: it knows the player's hidden act, so its labels are exact.

Its answers go through `Merchant.complete` as a model's would; there is no second turn.
"""

from __future__ import annotations

import random

from data_gen.acts import Act
from data_gen.phrasebook import Phrasebook, load_phrasebook
from haggle.ledger import resolve_cart
from haggle.session import Session
from haggle.wire import MAX_SHOWN, UNLISTED, Proposal

BROWSED = 6


def propose(
    session: Session, act: Act, rng: random.Random, book: Phrasebook | None = None
) -> Proposal:
    """What a merchant who understood `act` answers, following the procedure's conditions."""
    book = book or load_phrasebook()
    state, kind, extra = _decide(session, act)
    return Proposal(last=session.last, state=state, say=book.line(kind, rng), **extra)  # type: ignore[arg-type]


def _decide(session: Session, act: Act) -> tuple[str, str, dict[str, object]]:
    """State, kind of line and payload for an act."""
    has_cart = bool(session.cart)
    names = session.world.sellable_names
    match act.kind:
        case "greet":
            return "CASUAL", "CASUAL_greet", {}
        case "smalltalk":
            return "CASUAL", "CASUAL_smalltalk", {}
        case "hesitate":
            return "CASUAL", "CASUAL_hesitate", {}
        case "attack":
            return "CASUAL", "CASUAL_attack", {}
        case "leave":
            return "END", "END_leave", {}
        case "insult":
            return "END", "END_insult", {}
        case "browse" | "recommend" | "ask_item" | "ask_price" if not names:
            return "CASUAL", "CASUAL_unsold", {}
        case "browse" | "recommend" | "ask_item" | "ask_price":
            shown = (act.items or names)[: BROWSED if act.kind == "browse" else MAX_SHOWN]
            if act.kind == "recommend" and not act.items:
                shown = names[:BROWSED]
            line = {
                "browse": "SHOW_browse",
                "recommend": "SHOW_recommend",
                "ask_item": "SHOW_item",
                "ask_price": "SHOW_price",
            }[act.kind]
            return "SHOW_ITEMS", line, {"show": tuple(shown)}
        case "clear":
            if not has_cart:
                return "CASUAL", "CASUAL_empty", {}
            return "CASUAL", "OFFER_cleared", {"cart": ()}
        case "haggle":
            if not has_cart:
                return "CASUAL", "CASUAL_empty", {}
            return "NEGOTIATE", "NEGOTIATE", {"bid": act.bid}
        case "order":
            return _order(session, act)
        case "agree":
            if not has_cart:
                return "CASUAL", "CASUAL_empty", {}
            if session.last == "FINAL_CHECK":
                return "COMMIT_SALE", "COMMIT_SALE", {}
            return "FINAL_CHECK", "FINAL_CHECK", {}


def _order(session: Session, act: Act) -> tuple[str, str, dict[str, object]]:
    """A new or changed cart; an order of nothing that is sold is no offer."""
    cart, _ = resolve_cart(session.world, act.cart)
    if not cart:
        if session.cart and not any(name.startswith(UNLISTED) for name, _ in act.cart):
            return "CASUAL", "OFFER_cleared", {"cart": ()}
        return "CASUAL", "CASUAL_unsold", {}
    return "OFFER_SELL", "OFFER_changed" if act.changed else "OFFER_new", {"cart": act.cart}
