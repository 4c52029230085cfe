"""What a player does in a line, in the word that the format `acted` has for it: the decision that
the line led to tells it."""

from __future__ import annotations

from dataclasses import replace

from haggle.trade.edits import held
from haggle.trade.session import Session
from haggle.trade.wire import ASKABLE, Proposal


def with_act(session: Session, line: str, proposal: Proposal, act: str = "") -> Proposal:
    """The proposal with what the player does, where the session's format says it: `act`, or what
    the decision tells."""
    if not session.codec.acts:
        return proposal
    said = act or _told_by(session, line, proposal)
    asks = said in ASKABLE and "?" in line
    return replace(proposal, act=f"{said}+ask" if asks else said)


def _told_by(session: Session, line: str, proposal: Proposal) -> str:
    procedure, state = session.procedure, session.procedure.state(proposal.state)
    if state.payload == "cart":
        same = proposal.change == () or dict(proposal.cart or ()) == held(session)
        return "ask" if same else "change" if session.cart else "order"
    if state.payload == "show":
        return "ask" if "?" in line else "look"
    if state.payload == "bid":
        return "bid"
    if procedure.is_review(proposal.state) or procedure.is_critical(proposal.state):
        return "agree"
    if state.resets:
        return "leave"
    if proposal.cart == ():
        return "clear"
    return "refuse" if procedure.is_review(session.last) else "talk"
