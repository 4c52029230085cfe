"""The scripted merchant: it knows the player's hidden act, so its labels are exact.

Its answers go through `Merchant.complete` as a model's would; there is no second turn.
"""

from __future__ import annotations

import random

from data_gen.acts import Act
from data_gen.language.phrasebook import PLAIN, Phrasebook, load_phrasebook
from data_gen.players.speaker import cart_lines
from haggle.trade.informed import knowledge_notes
from haggle.trade.ledger import bid_amount, counter_offer, resolve_cart, total
from haggle.trade.session import Session
from haggle.trade.wire import MAX_SHOWN, UNLISTED, Proposal

BROWSED = 6
Decision = tuple[str, str, dict[str, object]]
_PLAIN_ANSWERS = {
    "greet": ("CASUAL", "CASUAL_greet"),
    "smalltalk": ("CASUAL", "CASUAL_smalltalk"),
    "offtopic": ("CASUAL", "CASUAL_offtopic"),
    "silence": ("CASUAL", "CASUAL_silence"),
    "thanks": ("CASUAL", "CASUAL_thanks"),
    "hesitate": ("CASUAL", "CASUAL_hesitate"),
    "attack": ("CASUAL", "CASUAL_attack"),
    "ask_unsold": ("CASUAL", "CASUAL_unsold"),
    "leave": ("END", "END_leave"),
    "insult": ("END", "END_insult"),
}
_SHOWING = {
    "browse": "SHOW_browse",
    "recommend": "SHOW_recommend",
    "ask_item": "SHOW_item",
    "ask_price": "SHOW_price",
    "ask_stock": "SHOW_stock",
    "compare": "SHOW_compare",
    "unclear": "SHOW_ambiguous",
}


def propose(
    session: Session,
    act: Act,
    rng: random.Random,
    book: Phrasebook | None = None,
    manner: str = PLAIN,
    line: str = "",
) -> Proposal:
    """What a merchant who understood `act`, said in `line`, answers, following the procedure's
    conditions."""
    book = book or load_phrasebook()
    state, kind, extra = _decide(session, act)
    if session.codec.speaks_after:
        kind = _seen(session, act, kind, line)
    say = book.line(kind, rng, manner)
    return Proposal(last=session.last, state=state, say=say, **extra)  # type: ignore[arg-type]


def _decide(session: Session, act: Act) -> Decision:
    """State, kind of line and payload for an act."""
    if act.kind in _PLAIN_ANSWERS:
        return (*_PLAIN_ANSWERS[act.kind], {})
    if act.kind in _SHOWING:
        return _show(session, act)
    if act.kind == "order":
        return _order(session, act)
    if not session.cart:
        return "CASUAL", "CASUAL_empty", {}
    match act.kind:
        case "restate":
            return "OFFER_SELL", "OFFER_restate", {"cart": tuple(cart_lines(session))}
        case "clear":
            return "CASUAL", "OFFER_cleared", {"cart": ()}
        case "haggle":
            return "NEGOTIATE", "NEGOTIATE", {"bid": act.bid}
        case "agree" if session.last == "FINAL_CHECK":
            return "COMMIT_SALE", "COMMIT_SALE", {}
        case "agree":
            return "FINAL_CHECK", "FINAL_CHECK", {}
        case _:
            raise ValueError(f"no answer to an act of kind {act.kind!r}")


def _seen(session: Session, act: Act, kind: str, line: str) -> str:
    """The kind of line for who sees what comes of the answer."""
    if kind in {"SHOW_item", "SHOW_compare"}:
        notes = {note.kind for note in knowledge_notes(session, line, "SHOW_ITEMS", act.items)}
        return "SHOW_told" if "told" in notes else "SHOW_unknown" if notes else kind
    if kind == "OFFER_changed" and act.name.startswith("right_"):
        return "OFFER_righted"
    if kind != "NEGOTIATE":
        return kind
    before = session.sale_price or total(session.world, session.cart)
    after = counter_offer(session.world, session.cart, before, act.bid)
    if after == before:
        return "NEGOTIATE_stays"
    asked = bid_amount(act.bid, before, sum(session.cart.values()))
    return "NEGOTIATE_met" if asked == after else "NEGOTIATE_lower"


def _show(session: Session, act: Act) -> Decision:
    """Items shown: those the act is about, or what lies foremost."""
    names = session.world.sellable_names
    if not names:
        return "CASUAL", "CASUAL_unsold", {}
    shown = tuple(n for n in act.items if n in names)[:MAX_SHOWN] or names[:BROWSED]
    return "SHOW_ITEMS", _SHOWING[act.kind], {"show": shown}


def _order(session: Session, act: Act) -> Decision:
    """A new or changed cart; an order of nothing that is sold is no offer, or leaves the last."""
    cart, _ = resolve_cart(session.world, act.cart)
    if not cart:
        if not session.cart:
            return "CASUAL", "CASUAL_unsold", {}
        if not any(name.startswith(UNLISTED) for name, _ in act.cart):
            return "CASUAL", "OFFER_cleared", {"cart": ()}
        return "OFFER_SELL", "OFFER_restate", {"cart": (*cart_lines(session), *act.cart)}
    return "OFFER_SELL", "OFFER_changed" if act.changed else "OFFER_new", {"cart": act.cart}
