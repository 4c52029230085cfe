"""Whether a player's words bear an order out, so that nothing is left to ask.

They do where each of the goods that change is named, or pointed at, in the number that it comes to,
and where the words say nothing besides: no goods, no number, nothing of them ("two axes hang
there").
"""

from __future__ import annotations

import re

from haggle.core.text import clean_utterance
from haggle.language.reading import Mention
from haggle.trade.among import choices, told_parts, wants_something
from haggle.trade.bidding import offered
from haggle.trade.evident import in_clauses, only_these
from haggle.trade.knowledge import (
    adds_or_joins,
    hesitates,
    orders,
    removes,
    takes_all,
    without_echoes,
)
from haggle.trade.language import CUES, patterns
from haggle.trade.ledger import Cart
from haggle.trade.numbers_told import clause_of, is_denied
from haggle.trade.session import Session
from haggle.trade.wanted import telling, unwanted

_WORD = re.compile(r"[a-z]+")


def as_worded(session: Session, line: str, cart: Cart) -> Cart:
    """An order with the goods that a line names beyond doubt in the numbers that it gives them."""
    reading, out, told = session.read(line), unwanted(session.world, line), dict[str, set[int]]()
    for mention in reading.mentions:
        item, number = one_meant(session, line, mention), _number(reading.line, mention)
        words = set(_WORD.findall(clause_of(reading.line, mention.start).casefold()))
        steps = CUES.shared | CUES.each | (CUES.by if item in session.cart else frozenset())
        known = item in cart or item in session.cart or len(mention.candidates) == 1
        if item and known and item not in out and number and not words & steps:
            told.setdefault(item, set()).add(number)
    told |= {i: {n} for i, n in _pointed_at(session, line).items() if i not in told}
    return cart | {i: min(numbers) for i, numbers in told.items() if len(numbers) == 1}


def borne_out(session: Session, line: str, cart: Cart) -> bool:
    """Whether an order is what a line says, with what is in the cart already."""
    held, out, told = session.cart, unwanted(session.world, line), _numbers(session, line, cart)
    if told is None or _leaves_open(session, line) or _besides(session, line):
        return False
    gone = held.keys() - cart.keys()
    changed = {i for i, number in cart.items() if number != held.get(i)}
    if not gone <= out | in_clauses(session, line, removes) or not changed <= told.keys() - out:
        return False
    if only_these(session, line) and len(told) == 1 and cart.keys() - told.keys():
        return False
    asked = orders(line) or adds_or_joins(line)  # "the lamp is for a boat" orders no boat
    if any((told[i] or {held.get(i) or asked}) != {cart[i]} for i in told.keys() & cart.keys()):
        return False
    offer = offered(session, line)
    known = {*cart.values(), sum(cart.values()), offer.number if offer else None}
    return _others(session, line) <= known


def _besides(session: Session, line: str) -> frozenset[str]:
    """The stems of what a line says beside the goods that it names: in "two pickaxes hang on your
    wall" that they hang there."""
    reading = session.read(line)
    names = [t.name for m in reading.mentions for t in m.candidates]
    typed = [reading.line[m.start : m.end] for m in reading.mentions]
    return telling(reading.line.casefold()) - telling(" ".join((*names, *typed)).casefold())


def _leaves_open(session: Session, line: str) -> bool:
    """Whether a line asks about goods, tells of them or of a need, names them to choose from, or
    leaves numbers to be worked out."""
    said = clean_utterance(line)
    asked = [part for part in patterns.ASKING_PART.split(said) if "?" in part]
    about = any(session.named(part, sure=False) for part in asked)
    unmarked = any(map(patterns.ASKS.search, told_parts(line)))
    told = hesitates(line) or patterns.SUPPOSING.search(line) or patterns.TELLS.search(line)
    return bool(about or unmarked or told or wants_something(session, line) or takes_all(line))


def _numbers(session: Session, line: str, cart: Cart) -> dict[str, set[int]] | None:
    """The numbers that a line tells of goods, a step as what it comes to; None where some of its
    words may mean several goods."""
    reading, held, out = session.read(line), session.cart, unwanted(session.world, line)
    told: dict[str, set[int]] = {i: {n} for i, n in _pointed_at(session, line).items()}
    packs: int | None = None
    for mention in reading.mentions:
        item = one_meant(session, line, mention)
        number, packs = _number(reading.line, mention) or packs, None
        if item is None and mention.guessed and patterns.OF_SOME.match(reading.line, mention.end):
            packs = number  # "four pots of salve"
            continue
        if item is None or (item not in out and is_denied(reading.line[: mention.start])):
            return None
        if item in out or (number and held.get(item, 0) + number == cart.get(item)):
            number = cart.get(item, 0)
        told.setdefault(item, set()).update({number} if number else set())
    return told


def one_meant(session: Session, line: str, mention: Mention) -> str | None:
    """Id of the good that words mean: the only one that they fit; or of those which they fit the
    only one that is in the order, in view, or was talked about."""
    ids = {thing.id for thing in mention.candidates if thing.for_sale}
    view = {item.item_id for item in session.world.known(session.in_view())}
    near = session.cart.keys() | view
    if len(ids) > 1:
        ids = ids & near or ids & {item.item_id for item in choices(session)}
    elif mention.guessed:
        ids &= near | session.named(line)
    return next(iter(ids)) if len(ids) == 1 else None


def _number(line: str, mention: Mention) -> int | None:
    """How many of a good words tell; None where they do not."""
    return mention.quantity or (1 if patterns.A_GOOD.search(line[: mention.start]) else None)


def _pointed_at(session: Session, line: str) -> Cart:
    """The only good in view, in the number that a line points at it with: "nine of those"."""
    view, reading = session.world.known(session.in_view()), session.read(line)
    found = {
        n.value for n in reading.numbers if patterns.OF_THOSE_BEHIND.match(reading.line, n.end)
    }
    number = next(iter(found)) if len(found) == 1 else None
    return {view[0].item_id: number} if number and len(view) == 1 else {}


def _others(session: Session, line: str) -> set[int | None]:
    """The numbers of a line that count no goods and are no echo of what was just heard."""
    heard = session.exchanges[-1].outcome if session.exchanges else ""
    reading = session.read(without_echoes(line, heard))
    ends = ((number, reading.line[number.end :]) for number in reading.numbers)
    return {n.value for n, behind in ends if n.value != 1 or patterns.OF_SOME.match(behind)}
