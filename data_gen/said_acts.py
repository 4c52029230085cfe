"""What a player does in a line, in the word that the format `acted` has for it.

A scripted player knows its act. Of a line that somebody typed the right decision says it.
"""

from __future__ import annotations

from dataclasses import replace

from data_gen.acts import Act
from data_gen.players.speaker import cart_lines
from haggle.trade.session import Session
from haggle.trade.wire import ASKABLE, Proposal

_KINDS = {
    "browse": "look",
    "recommend": "look",
    "unclear": "look",
    "ask_item": "ask",
    "ask_price": "ask",
    "ask_stock": "ask",
    "ask_unsold": "ask",
    "compare": "ask",
    "restate": "ask",
    "clear": "clear",
    "haggle": "bid",
    "agree": "agree",
    "hesitate": "refuse",
    "leave": "leave",
    "insult": "leave",
}
_STATES = {"END": "leave", "NEGOTIATE": "bid", "FINAL_CHECK": "agree", "COMMIT_SALE": "agree"}


def with_act(session: Session, line: str, proposal: Proposal, act: Act | None = None) -> Proposal:
    """The proposal with what the player does, where the session's format says it."""
    if not session.codec.acts:
        return proposal
    said = _of_act(act) if act else _of_decision(session, line, proposal)
    asks = said in ASKABLE and "?" in line
    return replace(proposal, act=f"{said}+ask" if asks else said)


def _of_act(act: Act) -> str:
    if act.kind == "order":
        return "change" if act.changed else "order"
    return _KINDS.get(act.kind, "talk")


def _of_decision(session: Session, line: str, proposal: Proposal) -> str:
    if proposal.state == "SHOW_ITEMS":
        return "ask" if "?" in line else "look"
    if proposal.state == "OFFER_SELL":
        same = proposal.change == () or proposal.cart == tuple(cart_lines(session))
        return "ask" if same else "change" if session.cart else "order"
    if proposal.cart == ():
        return "clear"
    if proposal.state == "CASUAL" and session.procedure.is_review(session.last):
        return "refuse"
    return _STATES.get(proposal.state, "talk")
