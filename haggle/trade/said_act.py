"""What a player does in a line, in the word that the format `acted` has for it: the decision that
the line led to tells it."""

from __future__ import annotations

from dataclasses import replace

from haggle.trade.edits import held
from haggle.trade.session import Session
from haggle.trade.wire import ASKABLE, Proposal

_STATES = {"END": "leave", "NEGOTIATE": "bid", "FINAL_CHECK": "agree", "COMMIT_SALE": "agree"}


def with_act(session: Session, line: str, proposal: Proposal, act: str = "") -> Proposal:
    """The proposal with what the player does, where the session's format says it: `act`, or what
    the decision tells."""
    if not session.codec.acts:
        return proposal
    said = act or _told_by(session, line, proposal)
    asks = said in ASKABLE and "?" in line
    return replace(proposal, act=f"{said}+ask" if asks else said)


def _told_by(session: Session, line: str, proposal: Proposal) -> str:
    if proposal.state == "SHOW_ITEMS":
        return "ask" if "?" in line else "look"
    if proposal.state == "OFFER_SELL":
        same = proposal.change == () or dict(proposal.cart or ()) == held(session)
        return "ask" if same else "change" if session.cart else "order"
    if proposal.cart == ():
        return "clear"
    if proposal.state == "CASUAL" and session.procedure.is_review(session.last):
        return "refuse"
    return _STATES.get(proposal.state, "talk")
