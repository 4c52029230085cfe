"""Rule of guard `state` about orders that a line tells by another order, naming no goods: the last
sale "again", the order doubled, "two of everything"."""

from __future__ import annotations

from dataclasses import replace

from haggle.core.text import clean_utterance
from haggle.trade.edits import numbers_in_line
from haggle.trade.knowledge import whole_number
from haggle.trade.language import patterns
from haggle.trade.ledger import Cart
from haggle.trade.ruling import Heard, Ruling, bare
from haggle.trade.session import Session


def told_by_another(heard: Heard, ruling: Ruling) -> Ruling:
    """The order that a line tells by another one, in place of what a model makes of it."""
    session, proposal = heard.session, ruling.proposal
    state, offer = session.procedure.state(proposal.state), heard.next_with("cart")
    talks = state.payload in ("cart", "show") or state.transparent
    if not talks or offer is None or ruling.reasons or session.pending:
        return ruling
    cart = _meant(session, clean_utterance(heard.line).casefold())
    if not cart:
        return ruling
    goods = session.world.by_id
    told = tuple((goods[i].item_name, n) for i, n in cart.items() if i in goods)
    return replace(ruling, action=replace(bare(proposal, offer), cart=told))


def _meant(session: Session, line: str) -> Cart:
    """The order that a sentence of a line tells by another; empty where none does, or where a line
    names goods."""
    if session.named(line, sure=False):
        return {}
    found = (_told(session, sentence) for sentence in patterns.SENTENCE_END.split(line))
    return next(filter(None, found), {})


def _told(session: Session, sentence: str) -> Cart:
    each = patterns.OF_EVERYTHING.search(sentence) if len(session.cart) > 1 else None
    again = patterns.SAME_AGAIN.search(sentence)
    twice = patterns.TWICE_ALL.search(sentence) or (again and session.cart)
    if not (each or again or twice) or patterns.OTHERWISE.search(sentence):
        return {}
    numbers = numbers_in_line(session.linked_line(sentence))
    if each:
        number = whole_number(each[1])
        return dict.fromkeys(session.cart, number) if numbers == {number} else {}
    if numbers:
        return {}
    if twice:
        return {item: 2 * number for item, number in session.cart.items()}
    return dict(session.sales[-1].items) if session.sales else {}
