"""Rule of guard `state` about the cheapest goods of a shop, and the dearest: which they are is told
by the price list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from haggle.core.text import clean_utterance
from haggle.trade.again import AGAIN
from haggle.trade.edits import carried_out, held
from haggle.trade.fitting import suited
from haggle.trade.knowledge import (
    adds,
    declines,
    orders,
    removes,
    tells_a_need,
    whole_number,
)
from haggle.trade.language import patterns
from haggle.trade.numbers_told import is_denied
from haggle.trade.ruling import Heard, Ruling, bare
from haggle.trade.session import Session
from haggle.trade.telling import in_short
from haggle.trade.world import Item

BY_PRICE = "by_price"  # why such goods are shown
KIND = 0.4  # nearness to a word for a kind of goods from which one is of it
APART = 0.1  # how much less near than the nearest others of it may be
BRIEF = 20  # words of a sentence that orders by price
MOST_OF_A_KIND = 3  # words that name a kind


@dataclass(frozen=True, slots=True)
class Extreme:
    """The good that a part of a line means by its price. `asks`: it only wants to know."""

    item: Item
    part: str
    asks: bool
    number: int = 1
    like: frozenset[str] = frozenset()  # ids of the goods of the kind that the line names


def by_price(heard: Heard, ruling: Ruling) -> Ruling:
    """The cheapest good is shown where a line asks for it, and ordered where it orders that and no
    other; so is the dearest."""
    session, proposal, line = heard.session, ruling.proposal, heard.line
    state, offer = session.procedure.state(proposal.state), heard.next_with("cart")
    ordering = state.payload == "cart"
    talks = ordering or state.payload in ("show", "bid") or state.transparent
    found = extreme(session, clean_utterance(line)) if talks else None
    if found is None or AGAIN in ruling.reasons or session.pending or ruling.pending:
        return ruling
    changes = ordering and dict(carried_out(session, proposal)) != held(session)
    if found.asks:
        names = [found.item.item_name]
        return ruling if changes else heard.shown(ruling, BY_PRICE, names)
    named = session.named(line, sure=False) - {found.item.item_id}
    other = removes(line) or declines(line) or named - found.like
    wanted = len(found.part.split()) <= BRIEF and (orders(found.part) or adds(found.part))
    if other or offer is None or not wanted:
        return ruling
    cart, name = held(session), found.item.item_name
    cart[name] = found.number + (cart.get(name, 0) if adds(found.part) else 0)
    ordered = replace(bare(proposal, offer), cart=tuple(cart.items()))
    return ruling.because(BY_PRICE, ordered)


def extreme(session: Session, line: str) -> Extreme | None:
    """What a line means by the cheapest or the dearest, of a kind that it names, of those in view,
    or of all; None where it speaks of neither."""
    for part in patterns.NEXT_QUESTION.split(line):
        match = patterns.EXTREME.search(part)
        if match is None or patterns.LONG_AGO.search(part) or is_denied(part[: match.start()]):
            continue
        goods = _pool(session, line, part, match)
        if not goods:
            continue
        prices = sorted(goods, key=lambda item: item.price or 0.0)
        asks = "?" in part or patterns.ASKS_WHICH.search(part)
        wanted = patterns.TAKING.search(part) or not asks
        item = prices[0 if match[1] else -1]
        counts = patterns.OF_CHEAP.search(part[: match.start()])
        number = (whole_number(counts[1].casefold()) if counts else 0) or 1
        every = len(goods) == len(session.world.inventory)
        like = frozenset() if every else frozenset(good.item_id for good in goods)
        return Extreme(item, part, not wanted, number, like)
    return None


def _pool(session: Session, line: str, part: str, match: re.Match[str]) -> Sequence[Item]:
    """The goods of which one is the cheapest: those of the kind that is named right behind, else
    all; none where it is no good that is meant, or one that serves a need."""
    behind = part[match.end() :]
    if patterns.NOT_GOODS.search(behind):
        return ()
    which = patterns.WHICH_KIND.findall(part[: match.start()])
    if kind := _kind(behind) or " ".join(which):
        ids = session.named(kind, sure=False)
        alike = [i for i in session.world.inventory if i.item_id in ids] or _near(session, kind)
        if alike:
            return alike
    goods = [item for item in session.world.inventory if item.for_sale]
    view = [item for item in session.world.known(session.in_view()) if item.for_sale]
    if patterns.OF_THEM.search(behind) and len(view) > 1:
        return view
    if patterns.FOR_A_NEED.search(behind) or tells_a_need(line.replace(part, "")):
        return suited(session, line)
    ids = frozenset() if patterns.OF_ALL.search(behind) else session.named(line, sure=False)
    named = [item for item in goods if item.item_id in ids]
    return named if len(named) > 1 else goods


def _near(session: Session, kind: str) -> list[Item]:
    """The goods that are nearest to a word for a kind; none where the linker cannot tell."""
    items = session.world.inventory
    near = [
        max(both)
        for both in zip(
            session.linker.nearness(kind, [item.item_name for item in items]),
            session.linker.nearness(kind, [in_short(item) for item in items]),
            strict=True,
        )
    ]
    least = max(KIND, max(near, default=0.0) - APART)
    return [item for item, n in zip(items, near, strict=False) if n >= least]


def _kind(behind: str) -> str:
    """The words for a kind of goods that a text begins with; none for "thing" or "you have"."""
    found: list[str] = []
    for word in re.findall(r"[\w'’-]+|[.,;:!?()]", behind.casefold()):
        if word in patterns.words("no_kind") or not word[0].isalpha():
            break
        found.append(word)
    return " ".join(found) if len(found) <= MOST_OF_A_KIND else ""
