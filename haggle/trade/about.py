"""Questions about the merchant and the shop, answered with what the shop's file says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from haggle.core.text import clean_utterance
from haggle.trade.knowledge import SENTENCE_END
from haggle.trade.language import patterns
from haggle.trade.ledger import Note
from haggle.trade.lines import lines
from haggle.trade.resolve import Resolved, finish
from haggle.trade.session import Session
from haggle.trade.telling import Score, ended, known_of, questions

NEAR = 0.3  # nearness in meaning from which a sentence on the shop answers a question
OF_GOODS = 0.1  # how much nearer it must be than what is known of goods


def introduced(session: Session, line: str, resolved: Resolved) -> Resolved:
    """The outcome with the name of the merchant, the place, or what the file says of them, where a
    line asks for that and names no goods."""
    state = session.procedure.state(resolved.proposal.state)
    if "?" not in line or not (state.transparent or state.payload == "show"):
        return resolved
    said = clean_utterance(line)
    text = _told(session, said) if not session.named(line, sure=False) else ""
    if not text:
        return resolved
    proposal = replace(
        resolved.proposal, state=session.procedure.fallback, show=None, cart=None, change=None
    )
    price, told = session.sale_price, (*resolved.interventions, "introduced")
    note = Note("told", text)
    return finish(session, proposal, dict(session.cart), price, (), (note,), told)


def _told(session: Session, line: str) -> str:
    world, templates = session.world, lines().about
    found = []
    if patterns.ASKS_NAME.search(line):
        found.append(templates["name"].format(name=world.merchant.name))
    if patterns.ASKS_PLACE.search(line):
        found.append(templates["place"].format(place=world.situation.location))
    return " ".join(map(ended, found)) or _nearest(session, line)


def _nearest(session: Session, line: str) -> str:
    """The sentence on shop or merchant that is nearest in meaning to a question, where it is near,
    and nearer than all that is known of goods."""
    near, world = session.linker.nearness, session.world
    asked = " ".join(questions(line))
    persona = SENTENCE_END.split(world.merchant.persona)
    background = SENTENCE_END.split(world.situation.background)
    clauses = {c: text for text in (*persona, *background) for c in patterns.PARTS.split(text) if c}
    best, clause = _best(near, asked, list(clauses))
    if best < NEAR:
        return ""
    text = clauses[clause]
    goods = [told for item in world.inventory for told in known_of(item, world.currency)]
    if best < _best(near, asked, goods)[0] + OF_GOODS:
        return ""
    return lines().about["persona"].format(text=text) if text in persona else text


def _best(near: Score, line: str, texts: Sequence[str]) -> tuple[float, str]:
    return max(zip(near(line, texts), texts, strict=False), default=(0.0, ""))
