"""How many pieces a player's words give evidence of.

A small model copies a number that was meant for something else: a bid, the stock, a number of an
earlier turn. Where a line says nothing that a number of pieces could come from, it is one piece, or
as many as the cart has. Where the line takes so many out, code counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from haggle.core.text import clean_utterance
from haggle.trade.among import only_asked
from haggle.trade.bidding import likely_bids, of_money, offered
from haggle.trade.edits import numbers_in_line
from haggle.trade.evident import gone, goods_of, only_these, restored
from haggle.trade.knowledge import (
    adds,
    asks_about_goods,
    goes_back,
    has_number,
    knowledge,
    puts_back,
    refers,
    removes,
    tells_a_need,
    wants,
    whole_number,
)
from haggle.trade.language import CUES, UNITS, patterns
from haggle.trade.numbers_told import (
    all_told,
    in_sum,
    is_denied,
    numbers_heard,
    numbers_told,
    of_time,
    shares,
    swapped_with,
)
from haggle.trade.session import Session
from haggle.trade.shared_out import shared_out
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
    order = goods_of(session, asked)
    said, summed = _numbers_of(session, line, order), _summed(session, line, order)
    apart = shared_out(session, line, order)
    said |= apart
    bare = {number.value for number in session.read(line).numbers} if _only_asks(line) else set()
    parts, named, back = shares(line), session.named(line), restored(session, line)
    found: list[tuple[str, Quantity]] = []
    for name, quantity in asked:
        item = world.recognise(name)
        held = cart.get(item.item_id, 0) if item else 0
        if item is None:
            found.append((name, _fewer(line, quantity, held)))
            continue
        others = {n for i, n in said.items() if i != item.item_id}
        if item.item_id in out:
            quantity = max(0, held - out[item.item_id])
        elif item.item_id in back and item.item_id not in said:
            quantity = back[item.item_id]
        elif item.item_id in summed:
            quantity = summed[item.item_id]
        elif item.item_id in said and (held or quantity in others or item.item_id in apart):
            quantity = said[item.item_id]
        elif held and (
            quantity in bare | swapped_with(session, line, said, item)
            or (held == parts and item.item_id not in named)
        ):
            quantity = held
        else:
            quantity = _as_told(session, line, asked, item, quantity)
        found.append((name, quantity))
    less = {i: cart[i] - n for i, n in out.items() if cart.get(i, 0) > n}
    other = [i for i, n in cart.items() if n == 2 and i not in order]
    if len(other) == 1 and patterns.OTHER_ONE.search(line):
        less[other[0]] = 1  # "one will do. Take the other one off again"
    left = (back | less | apart).items()  # goods of the cart that the order leaves out
    found += [(world.by_id[i].item_name, n) for i, n in left if i not in order]
    return tuple(found)


def _as_told(
    session: Session, line: str, asked: CartLines, item: Item, quantity: Quantity
) -> Quantity:
    """The number of a good as a line gives evidence of it."""
    held, before = session.cart.get(item.item_id, 0), _swapped(session, line, asked)
    if held and quantity != held and _is_untouched(session, line, item):
        return held
    if quantity == 1 and _in_place(session, line, item, asked):
        return before
    comes_back = goes_back(line) or patterns.MISSES.search(line)
    if quantity == 1 and not held and comes_back and not is_one(session, line, item, the=False):
        return gone(session).get(item.item_id, 1)
    if not _is_told(session, line, quantity, held, item):
        return held or before or 1
    if quantity == held + 2 and _is_a_pair(line, item):
        return held + 1
    return _fewer(line, quantity, held)


def _fewer(line: str, quantity: Quantity, held: int) -> Quantity:
    """A number of pieces, no more than a few where the line asks for a few."""
    most = held + MOST_OF_A_FEW
    return most if isinstance(quantity, int) and quantity > most and _is_a_few(line) else quantity


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


def _is_told(session: Session, line: str, quantity: Quantity, held: int, item: Item) -> bool:
    """Whether a number of pieces can come from what a line says. Who speaks of any number, or of
    shares, may leave the rest to be worked out; a few more may be meant without."""
    if quantity == "half" or quantity in {1, held}:
        return True
    reading, stock = session.read(line), item.quantity or 0
    counts = {mention.quantity for mention in reading.mentions} - {None}
    others = {number.value for number in reading.numbers} - counts
    offer = offered(session, line)
    bid = offer if offer and not (held and quantity in all_told(line)) else None
    if bid and quantity == bid.number and (bid.sure or bid.number > stock):
        return False  # "do 17 and it's mine"
    no_pieces = of_money(session, line) | likely_bids(session, line, item)
    no_pieces |= of_time(line) & numbers_heard(session)  # "twelve hours? No. A rope then"
    if quantity in no_pieces - counts:
        return False
    words = set(_WORD.findall(clean_utterance(line).casefold()))
    if (
        isinstance(quantity, int)
        and quantity > stock
        and quantity in numbers_heard(session) - counts
    ):
        return False  # "eighty centimetres? that's plenty"
    said = numbers_in_line(session.linked_line(line)) | counts | others
    few = isinstance(quantity, int) and quantity <= held + FEW
    past = (numbers_in_line(exchange.player) for exchange in session.exchanges)
    hinted = words & (knowledge().counting | CUES.shared | CUES.twice)
    return bool(few or said or hinted or quantity in set().union(*past))


def _only_asks(line: str) -> bool:
    """Whether a line only asks, and wants or changes nothing: "how many weeks does it take? One,
    two, three?" """
    parts = patterns.SENTENCE_END.split(clean_utterance(line))
    asks = all("?" in part for part in parts) and patterns.HOW_MANY.search(line)
    changes = wants(line) or adds(line) or puts_back(line) or patterns.SETS.search(line.casefold())
    return bool(asks and not changes)


def _numbers_of(session: Session, line: str, order: Mapping[str, Quantity]) -> dict[str, int]:
    """The numbers that a line tells of goods. Where an order changes some of the cart, the rest
    follows the line as well: "six gears and one loupe"."""
    same = {item for item, number in session.cart.items() if order.get(item) == number}
    return numbers_told(session, line, strictly=order != session.cart, unchanged=same)


def _summed(session: Session, line: str, order: Mapping[str, Quantity]) -> dict[str, int]:
    """The number that a line comes to, for the one good that an order changes: "one each for us
    both, so two"."""
    changed = [item for item, number in order.items() if session.cart.get(item) != number]
    number = in_sum(line)
    return {changed[0]: number} if number and len(changed) == 1 else {}


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
    one = is_one(session, line, item) or patterns.JUST_ONE.search(line)
    return like and item.item_id not in session.cart and not one


def _gone(session: Session, line: str, asked: CartLines) -> set[str]:
    items = [item for name, _ in asked if (item := session.world.recognise(name))]
    return set(session.cart) - ({item.item_id for item in items} - ruled_out(session.world, line))


def is_one(session: Session, line: str, item: Item, *, the: bool = True) -> bool:
    """Whether a line asks for one piece of a good: "a rope", "one rope"; or for "the rope", unless
    `the` is false."""
    reading, before = session.read(line), patterns.A_PIECE_OF if the else patterns.A_GOOD
    mentions = [m for m in reading.mentions if item.item_id in {t.id for t in m.candidates}]
    return any(m.quantity or before.search(reading.line[: m.start]) for m in mentions)


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
        named = session.named(clause, sure=False)
        ids = named & session.cart.keys()
        ids = ids if named or len(session.cart) > 1 else frozenset(session.cart)
        if len(ids) == 1:
            found[next(iter(ids))] = number
    return found
