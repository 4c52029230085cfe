"""How many pieces a player's words give evidence of.

A small model copies a number that was meant for something else: a bid, the stock, a number of an
earlier turn. Where a line says nothing that a number of pieces could come from, it is one piece, or
as many as the cart has. Where the line takes so many out, code counts.
"""

from __future__ import annotations

import re

from haggle.core.text import clean_utterance
from haggle.trade.among import only_asked
from haggle.trade.bidding import likely_bids, of_money, offered
from haggle.trade.edits import numbers_in_line
from haggle.trade.evident import only_these, restored
from haggle.trade.knowledge import (
    asks_about_goods,
    has_number,
    knowledge,
    refers,
    removes,
    tells_a_need,
    whole_number,
)
from haggle.trade.language import CUES, UNITS, patterns
from haggle.trade.session import Session
from haggle.trade.wanted import name_stems, ruled_out
from haggle.trade.wire import CartLines, Quantity
from haggle.trade.world import Item

MOST_OF_A_FEW = 3
FEW = 2  # pieces more that need no number

_WORD = re.compile(r"[a-z]+")


def counted(session: Session, line: str, asked: CartLines) -> CartLines:
    """An order in numbers that the line gives evidence of."""
    world, cart = session.world, session.cart
    out = taken_out(session, line)
    before = _swapped(session, line, asked)
    said = _said(session, line, strictly=not _same(session, asked))
    found: list[tuple[str, Quantity]] = []
    for name, quantity in asked:
        item = world.recognise(name)
        held = cart.get(item.item_id, 0) if item else 0
        if item and item.item_id in out:
            quantity = max(0, held - out[item.item_id])
        elif item and item.item_id in said:
            quantity = said[item.item_id]
        elif item and held and quantity != held and _is_untouched(session, line, item):
            quantity = held
        elif item and quantity == 1 and _in_place(session, line, item, asked):
            quantity = before
        elif item and not _is_told(session, line, quantity, held, item):
            quantity = held or before or 1
        elif item and quantity == held + 2 and _is_a_pair(line, item):
            quantity = held + 1
        elif isinstance(quantity, int) and quantity > held + MOST_OF_A_FEW and _is_a_few(line):
            quantity = held + MOST_OF_A_FEW
        found.append((name, quantity))
    kept = {item.item_id for name, _ in asked if (item := world.recognise(name))}
    missing = [i for i in out if i in cart and i not in kept and cart[i] > out[i]]
    found += [(world.by_id[i].item_name, cart[i] - out[i]) for i in missing]
    back = restored(session, line)
    found += [(world.by_id[i].item_name, n) for i, n in back.items() if i not in kept]
    return tuple(found)


def passed_over(session: Session, line: str, asked: CartLines) -> CartLines:
    """New goods that a line names beyond doubt and an order leaves out, in the number that the line
    tells, or one: "two pies, one bun". None of a line that asks."""
    world, reading = session.world, session.read(line)
    if "?" in line or only_these(session, line) or asks_about_goods(line, reading):
        return ()
    known = {item.item_id for name, _ in asked if (item := world.recognise(name))}
    known |= session.cart.keys() | ruled_out(world, line) | only_asked(session, line)
    found: dict[str, int | None] = {}
    for mention in reading.mentions:
        sure = len(mention.candidates) == 1 and not mention.guessed and not mention.uncountable
        thing = mention.candidates[0] if sure else None
        if thing is None or not thing.for_sale or thing.id in known:
            continue
        if not is_denied(reading.line[: mention.start]):
            found[thing.name] = found.get(thing.name) or mention.quantity
    return tuple((name, number or 1) for name, number in found.items())


def numbered(session: Session, line: str, lines: CartLines) -> CartLines:
    """Of goods that an order leaves out those that a line names with a number of their own."""
    named = {
        mention.candidates[0].name
        for mention in session.read(line).mentions
        if mention.quantity and len(mention.candidates) == 1
    }
    return tuple((name, number) for name, number in lines if name in named)


def is_denied(before: str) -> bool:
    """Whether the words of a clause before a name say that it is not wanted now."""
    clause = patterns.CLAUSE_OF_NUMBERS.split(before.casefold())[-1]
    words = set(_WORD.findall(clause))
    return bool(patterns.DENIED.search(clause) or words & knowledge().ruling_out)


def _is_told(session: Session, line: str, quantity: Quantity, held: int, item: Item) -> bool:
    """Whether a number of pieces can come from what a line says. Who speaks of any number, or of
    shares, may leave the rest to be worked out; a few more may be meant without."""
    if quantity == "half" or quantity in {1, held}:
        return True
    reading, stock = session.read(line), item.quantity or 0
    counts = {mention.quantity for mention in reading.mentions} - {None}
    others = {number.value for number in reading.numbers} - counts
    offer = offered(session, line)
    bid = offer if offer and not (held and quantity in _all_told(line)) else None
    if bid and quantity == bid.number and (bid.sure or bid.number > stock):
        return False  # "do 17 and it's mine"
    if quantity in (of_money(session, line) | likely_bids(session, line, item)) - counts:
        return False
    words = set(_WORD.findall(clean_utterance(line).casefold()))
    if isinstance(quantity, int) and quantity > stock and quantity in _told(session) - counts:
        return False  # "eighty centimetres? that's plenty"
    said = numbers_in_line(session.linked_line(line)) | counts | others
    few = isinstance(quantity, int) and quantity <= held + FEW
    past = (numbers_in_line(exchange.player) for exchange in session.exchanges)
    hinted = words & (knowledge().counting | CUES.shared | CUES.twice)
    return bool(few or said or hinted or quantity in set().union(*past))


def _all_told(line: str) -> set[int]:
    """The numbers that a line tells of all pieces together."""
    return {whole_number(word) for word in patterns.ALL_TOLD.findall(line.casefold())}


def _told(session: Session) -> set[int | None]:
    """The numbers in what the merchant just told of goods: "eighty centimetres"."""
    outcome = session.exchanges[-1].outcome if session.exchanges else ""
    reading = session.read(outcome.partition("told: ")[2])
    return {m.quantity for m in reading.mentions} | {n.value for n in reading.numbers}


def _same(session: Session, asked: CartLines) -> bool:
    """Whether an order is what is in the cart already."""
    items = [(session.world.recognise(name), number) for name, number in asked]
    return {item.item_id: number for item, number in items if item} == session.cart


def _said(session: Session, line: str, *, strictly: bool) -> dict[str, int]:
    """The numbers of goods in the cart that a line tells: "make it just one bundle"; "one more
    rope" is one more than there are. `strictly` needs words that
    set a number: "make it six axes"."""
    if "?" in line or not CUES.each.isdisjoint(_WORD.findall(line.casefold())):
        return {}
    reading, found = session.read(line), dict[str, int]()
    if strictly and (listed := _listed(session, line)):
        return listed
    for mention in reading.mentions:
        held = session.cart.get(mention.candidates[0].id) if len(mention.candidates) == 1 else None
        if not held or not mention.quantity:
            continue
        clause = clause_of(reading.line, mention.start).casefold()
        words = set(_WORD.findall(clause))
        if words & (CUES.shared | CUES.each):
            continue
        if patterns.MORE.search(clause):
            found[mention.candidates[0].id] = held + mention.quantity
        elif not words & CUES.by and (patterns.SETS.search(clause) or not strictly):
            found[mention.candidates[0].id] = mention.quantity
    return found


def _listed(session: Session, line: str) -> dict[str, int]:
    """The numbers of goods where a line tells each of two or more in full: "two cartridges with the
    one fan"; none where any word may tell of a change."""
    mentions = session.read(line).mentions
    words = set(_WORD.findall(clean_utterance(line).casefold()))
    sure = [m for m in mentions if len(m.candidates) == 1 and m.quantity and not m.guessed]
    ids = {m.candidates[0].id for m in sure}
    changes = words & (CUES.by | CUES.shared | CUES.each | CUES.twice) or removes(line)
    if changes or len(ids) < 2 or len(sure) < len(mentions) or len(ids) < len(sure):
        return {}
    return {m.candidates[0].id: m.quantity for m in sure if m.quantity}


def clause_of(line: str, at: int) -> str:
    """The clause of a line that a place in it belongs to."""
    ends = [match.start() for match in patterns.CLAUSE_OF_NUMBERS.finditer(line)]
    start = max((end for end in ends if end <= at), default=0)
    return line[start : min((end for end in ends if end > at), default=len(line))]


def _is_untouched(session: Session, line: str, item: Item) -> bool:
    """Whether a line tells a need and nothing that can change the number of a good in the cart."""
    words = set(_WORD.findall(clean_utterance(line).casefold()))
    named = item.item_id in session.named(line, sure=False)
    changes = has_number(line) or removes(line) or refers(line) or words & knowledge().counting
    return tells_a_need(line) and not (named or changes)


def _is_a_few(line: str) -> bool:
    """Whether a line asks for a few of something, and tells no number."""
    words = set(_WORD.findall(line.casefold()))
    few = patterns.A_FEW.search(line.casefold()) and not words & UNITS.keys()
    return bool(few) and not re.search(r"\d", line)


def _is_a_pair(line: str, item: Item) -> bool:
    """Whether a line asks for one pair of what is sold in pairs: "a pair of those", of gloves."""
    words = _WORD.findall(item.item_name.casefold())
    pair_of = patterns.PAIR_OF.search(item.description.casefold()) is not None
    paired = pair_of or not CUES.paired.isdisjoint(words[-1:])
    return paired and patterns.ONE_PAIR.search(line) is not None and not numbers_in_line(line) - {1}


def _in_place(session: Session, line: str, item: Item, asked: CartLines) -> bool:
    """Whether a good comes in the place of its like, in a number that is not said."""
    gone = _gone(session, line, asked)
    like = any(
        name_stems(session.world.by_id[i].item_name) & name_stems(item.item_name) for i in gone
    )
    return like and item.item_id not in session.cart and not is_one(session, line, item)


def _gone(session: Session, line: str, asked: CartLines) -> set[str]:
    items = [item for name, _ in asked if (item := session.world.recognise(name))]
    return set(session.cart) - ({item.item_id for item in items} - ruled_out(session.world, line))


def is_one(session: Session, line: str, item: Item) -> bool:
    """Whether a line asks for one piece of a good: "a rope", "one rope"."""
    reading = session.read(line)
    mentions = [m for m in reading.mentions if item.item_id in {t.id for t in m.candidates}]
    return any(m.quantity or patterns.A_PIECE_OF.search(reading.line[: m.start]) for m in mentions)


def _swapped(session: Session, line: str, asked: CartLines) -> int:
    """The number of the one good that another one takes the place of; 0 where none does."""
    gone = _gone(session, line, asked)
    ids = {item.item_id for name, _ in asked if (item := session.world.recognise(name))}
    new = ids - session.cart.keys()
    return session.cart[next(iter(gone))] if len(gone) == len(new) == 1 else 0


def taken_out(session: Session, line: str) -> dict[str, int]:
    """Pieces that a line takes out of the order: "take four of them out"."""
    found: dict[str, int] = {}
    for clause in patterns.CLAUSE_OF_NUMBERS.split(clean_utterance(line)):
        match = patterns.TAKES.search(clause.casefold())
        number = match and whole_number(match[1] or match["passive"] or match["fewer"])
        if not number:
            continue
        ids = session.named(clause, sure=False) & session.cart.keys()
        ids = ids or (frozenset(session.cart) if len(session.cart) == 1 else frozenset())
        if len(ids) == 1:
            found[next(iter(ids))] = number
    return found
