"""Goods that a line asks for and that are not sold here: "do you sell any saffron?"

A small model shows other goods without a word, or talks of other things. What is said instead is no
more than is known: that nothing is called so, or that it is not sold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from haggle.core.text import clean_utterance
from haggle.trade.among import only_asked
from haggle.trade.knowledge import knowledge, tells_a_need, wants
from haggle.trade.language import patterns
from haggle.trade.ledger import Note
from haggle.trade.resolve import Resolved, worded
from haggle.trade.session import Session
from haggle.trade.wanted import has_word_of, telling
from haggle.trade.world import Item

MOST = 3  # words of a name

_CLAUSE = re.compile(r"[^.,;:!?()]+\??")
_WORD = re.compile(r"[a-z][a-z'’-]*")


def missed(session: Session, line: str, resolved: Resolved) -> Resolved:
    """The outcome that says so where the line asks for goods under a name that nothing here has, or
    for goods that are known and not sold."""
    state = session.procedure.state(resolved.proposal.state)
    talks = resolved.proposal.state == session.procedure.fallback
    if not (state.payload in ("show", "cart") or talks):
        return resolved
    ways = () if state.payload == "cart" else patterns.ASKED[:1] if talks else patterns.ASKED
    name = asked_in_vain(session, line, (*ways, patterns.ASKED_BRIEFLY))
    note = Note("unheard_of", name) if name else _unsold(session, line, talks=talks)
    if note is None:
        return resolved
    notes = (*resolved.notes, note)
    return worded(session, replace(resolved, notes=notes), resolved.proposal.say)


def _unsold(session: Session, line: str, *, talks: bool) -> Note | None:
    """What is said of goods that are known and not sold, where a line asks for them."""
    goods = session.world.by_id
    named = [item for i in sorted(session.named(line)) if (item := goods.get(i))]
    unsold = [item for item in named if not item.for_sale]
    asks = "?" in line or tells_a_need(line) or (talks and wants(line))
    asks = asks or bool(only_asked(session, line))
    alone = named == unsold and asks
    if len(unsold) != 1 or not (alone or _asked_for(session, line, unsold[0])):
        return None
    return Note("sold_out" if unsold[0].quantity == 0 else "not_sold", unsold[0].item_name)


def _asked_for(session: Session, line: str, item: Item) -> bool:
    """Whether a line asks beside other things whether something is sold: "have you a saw, and how
    much is the axe?" """
    clauses = (c for c in _CLAUSE.findall(clean_utterance(line)) if patterns.HAVING.search(c))
    return any(item.item_id in session.named(clause) for clause in clauses)


def asked_in_vain(session: Session, line: str, ways: Sequence[re.Pattern[str]]) -> str:
    """The name of goods that a line asks for in one of these ways, and that nothing here has; ""
    where there is none."""
    for clause in _CLAUSE.findall(clean_utterance(line).casefold()):
        clause = clause.strip()
        if not clause.endswith("?"):
            continue
        for way in ways:
            match = way.search(clause)
            name = _name(match["name"]) if match else ""
            if (
                name
                and not session.named(name, sure=False)
                and not has_word_of(session.world, name)
            ):
                return name
    return ""


def _name(words: str) -> str:
    """The words of a name at the beginning of these: as far as the first that says nothing."""
    found: list[str] = []
    for word in _WORD.findall(words):
        if word in knowledge().dull or word in knowledge().no_goods or len(found) == MOST:
            break
        found.append(word)
    return " ".join(found) if telling(" ".join(found)) else ""
