"""What a merchant may say of an outcome: lines that are always so, for small models to choose from.

A model of 135 million weights decides well and words badly. With `speech` "lines" it chooses its
line under the grammar, from those that fit what happened; a larger one may speak freely.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from pydantic import model_validator

from haggle.core.config import Record, load_config
from haggle.grammar.json_text import read_object
from haggle.grammar.values import Field, Fields, Label, Value
from haggle.trade import placeholders
from haggle.trade.knowledge import (
    asks_for_a_deal,
    asks_for_help,
    asks_for_price,
    asks_of_others,
    declines,
    greets,
    hesitates,
    may_trick,
    orders,
)
from haggle.trade.language import FOLDER, patterns
from haggle.trade.ledger import bid_amount
from haggle.trade.resolve import Resolved
from haggle.trade.session import Session
from haggle.trade.world import Manner, MerchantInfo

SMALL_TALK = "CASUAL_smalltalk"
LONG = 8  # words from which a line may be a trick
SHOWN = ("browse", "recommend", "price", "item", "stock", "compare", "ambiguous")
SHOWING = {placeholders.ITEMS, placeholders.PRICES}  # what lines of goods on show speak of
SEVERAL = ("browse", "compare", "ambiguous")  # for more than one good


class MerchantLines(Record):
    """`merchant_lines.yaml`: spoken lines by kind of answer and manner; numbers as placeholders."""

    manners: dict[Manner, list[str]]
    righting: list[str]
    answering: list[str]
    states: dict[str, dict[Manner, list[str]]]

    @model_validator(mode="after")
    def _lines_have_no_numbers(self) -> MerchantLines:
        for kind, manners in self.states.items():
            for line in (line for lines in manners.values() for line in lines):
                unknown = placeholders.used(line) - set(placeholders.ALL)
                if unknown or any(c.isdigit() for c in line):
                    raise ValueError(f"{kind}: digits or unknown placeholder in {line!r}")
        return self


@cache
def _file() -> MerchantLines:
    return load_config(FOLDER / "merchant_lines.yaml", MerchantLines)


def merchant_lines() -> dict[str, dict[Manner, list[str]]]:
    """Lines by kind and manner. Raises HaggleError naming a mistake in the file."""
    return _file().states


def manner_of(merchant: MerchantInfo) -> Manner:
    """How a merchant speaks: as the shop's file says, or as most words of the persona do."""
    return merchant.manner or _manner(merchant.persona)


@lru_cache(maxsize=256)
def _manner(persona: str) -> Manner:
    cues = _file().manners
    hits = {manner: len(_any(tuple(cues[manner])).findall(persona)) for manner in cues}
    best = max(hits, key=lambda manner: hits[manner])
    return best if hits[best] else "plain"


@cache
def _any(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OneOfLines:
    """One of these lines, as the object that holds it: a `haggle.core.codec.ActionSpec`."""

    lines: tuple[str, ...]

    def tree(self) -> Value:
        """All lines that may be said."""
        return Fields((Field("say", Label(self.lines)),))


def lines_for(session: Session, line: str, resolved: Resolved) -> OneOfLines | tuple[str, ...]:
    """The lines that fit an outcome, without those said before in this conversation. Those of one
    kind fit equally well; among several kinds the model chooses."""
    names = kinds(session, line, resolved)
    fitting = _of(names, manner_of(session.world.merchant))
    if names == (SMALL_TALK,):
        asked, answering = "?" in line, frozenset(_file().answering)
        fitting = tuple(line for line in fitting if (line in answering) == asked)
    if not resolved.shown:
        fitting = tuple(line for line in fitting if not _names_goods(line))
    elif names == ("SHOW_told",) and _is_new(session, resolved.shown):
        fitting = tuple(filter(_names_goods, fitting))
    said = {str(read_object(e.said).get("say")) for e in session.exchanges if e.said}
    left = tuple(line for line in fitting if line not in said) or fitting
    return left if len(names) == 1 else OneOfLines(left)


def _names_goods(line: str) -> bool:
    return not SHOWING.isdisjoint(placeholders.used(line))


def _is_new(session: Session, shown: Sequence[str]) -> bool:
    """Whether goods are told of that were not in view: the line names them."""
    return not set(shown) <= {*session.in_view(), *session.shown}


@lru_cache(maxsize=256)
def _of(names: tuple[str, ...], manner: Manner) -> tuple[str, ...]:
    found = [merchant_lines()[name] for name in names]
    manners: tuple[Manner, ...] = ("plain", manner)
    return tuple(dict.fromkeys(line for of in found for m in manners for line in of.get(m, ())))


def kinds(session: Session, line: str, resolved: Resolved) -> tuple[str, ...]:
    """The kinds of lines that fit an outcome, by what code knows of it and of the player's line."""
    state = resolved.proposal.state
    moved = session.cart != resolved.cart
    notes = {str(note.kind) for note in resolved.notes}
    if state == "SHOW_ITEMS":
        return _shown(notes, line, len(resolved.shown))
    if state == "OFFER_SELL":
        if not moved:
            return ("OFFER_unchanged",) if notes else ("OFFER_restate",)
        if not session.cart:
            return ("OFFER_new",)
        righted = _any(tuple(_file().righting)).search(line)
        return ("OFFER_changed", "OFFER_righted") if righted else ("OFFER_changed",)
    if state == "NEGOTIATE":
        return (_bargained(session, resolved),)
    if state == "END":
        consent = session.read(line).consent
        return ("END_insult",) if consent and consent.abuses() else ("END_leave",)
    if session.procedure.is_review(state):
        return (f"{state}_yes",)
    if state != session.procedure.fallback:
        return (state,)
    if session.cart and not resolved.cart:
        return ("OFFER_cleared",)
    if notes & {"unheard_of", "not_sold", "sold_out"}:
        return ("CASUAL_unsold",)
    return ("SHOW_told",) if "told" in notes else _talk(session, line)


def _talk(session: Session, line: str) -> tuple[str, ...]:
    """Kinds of small talk; what would be odd is left out, the model chooses among the rest."""
    asks, opening = "?" in line or asks_for_help(line), not session.exchanges
    if "?" not in line and declines(line):
        return ("CASUAL_hesitate",)
    silent = not any(character.isalnum() for character in line)
    if greets(line) and opening and not silent:
        return ("CASUAL_greet",)
    if asks_of_others(line) and "?" in line:
        return (SMALL_TALK,)
    foreign = any(not m.candidates for m in session.read(line).mentions)
    tricks = len(line.split()) >= LONG and may_trick(line)
    empty = not opening and not session.cart and not session.sales
    fits = {
        "greet": opening,
        "smalltalk": not silent,
        "offtopic": asks or tricks,
        "silence": silent,
        "thanks": bool(patterns.THANKS.search(line)),
        "hesitate": bool(session.cart) and hesitates(line),
        "attack": tricks,
        "unsold": foreign or ("?" in line and asks_for_a_deal(line)),
        "empty": empty and orders(line),
    }
    return tuple(f"CASUAL_{name}" for name, fit in fits.items() if fit)


def _shown(notes: set[str], line: str, goods: int) -> tuple[str, ...]:
    if asks_for_price(line):  # what is told besides follows
        return ("SHOW_price",)
    if "told" in notes:
        return ("SHOW_told",)
    if "unknown" in notes:
        return ("SHOW_unknown",)
    return tuple(f"SHOW_{name}" for name in SHOWN if goods > 1 or name not in SEVERAL)


def _bargained(session: Session, resolved: Resolved) -> str:
    if resolved.sale_price == session.sale_price:
        return "NEGOTIATE_stays"
    asked = bid_amount(resolved.proposal.bid, session.sale_price or 0.0, sum(session.cart.values()))
    return "NEGOTIATE_met" if asked == resolved.sale_price else "NEGOTIATE_lower"
