"""How many pieces a player's words give evidence of.

A small model copies a number that was meant for something else: a bid, the stock, a number of an
earlier turn. Where a line says nothing that a number of pieces could come from, it is one piece, or
as many as the cart has. Where the line takes so many out, code counts.
"""

from __future__ import annotations

import re

from haggle.core.text import clean_utterance
from haggle.language.english.cues import CUES
from haggle.trade.bidding import offered
from haggle.trade.edits import numbers_in_line
from haggle.trade.knowledge import knowledge, whole_number
from haggle.trade.session import Session
from haggle.trade.wire import Quantity

Lines = tuple[tuple[str, Quantity], ...]
FEW = 2  # pieces more that need no number

_CLAUSE_END = re.compile(r"[.;:!?]|,(?!\d)|\b(?:and|but|so)\b")
_TAKES = re.compile(  # "take four out", "lose one", "put two of them back"
    r"\b(?:(?:take|put)(?= (?:\S+ ){1,4}(?:out|off|away|back)\b)|drop|lose|remove|scrap|strike)"
    r" (?:(?:out|off|away|back|just|only|another) )?(\d+|[a-z]+)\b"
)
_WORD = re.compile(r"[a-z]+")


def counted(session: Session, line: str, asked: Lines) -> Lines:
    """An order in numbers that the line gives evidence of."""
    world, cart = session.world, session.cart
    out = _taken_out(session, line)
    before = _swapped(session, asked)
    found: list[tuple[str, Quantity]] = []
    for name, quantity in asked:
        item = world.recognise(name)
        held = cart.get(item.item_id, 0) if item else 0
        if item and item.item_id in out:
            quantity = max(0, held - out[item.item_id])
        elif item and not _is_told(session, line, quantity, held, item.quantity or 0):
            quantity = held or before or 1
        found.append((name, quantity))
    kept = {item.item_id for name, _ in asked if (item := world.recognise(name))}
    missing = [i for i in out if i in cart and i not in kept and cart[i] > out[i]]
    found += [(world.by_id[i].item_name, cart[i] - out[i]) for i in missing]
    return tuple(found)


def _is_told(session: Session, line: str, quantity: Quantity, held: int, stock: int) -> bool:
    """Whether a number of pieces can come from what a line says. Who speaks of any number, or of
    shares, may leave the rest to be worked out; a few more may be meant without."""
    if quantity == "half" or quantity in {1, held}:
        return True
    reading = session.read(line)
    counts = {mention.quantity for mention in reading.mentions} - {None}
    others = {number.value for number in reading.numbers} - counts
    offer = offered(session, line)
    if offer and quantity == offer.number and (offer.sure or offer.number > stock):
        return False  # "do 17 and it's mine"
    words = set(_WORD.findall(clean_utterance(line).casefold()))
    said = numbers_in_line(session.linked_line(line)) | counts | others
    few = isinstance(quantity, int) and quantity <= held + FEW
    past = (numbers_in_line(exchange.player) for exchange in session.exchanges)
    hinted = words & (knowledge().counting | CUES.shared | CUES.twice)
    return bool(few or said or hinted or quantity in set().union(*past))


def _swapped(session: Session, asked: Lines) -> int:
    """The number of the one good that another one takes the place of; 0 where none does."""
    ids = [item.item_id for name, _ in asked if (item := session.world.recognise(name))]
    gone, new = session.cart.keys() - set(ids), set(ids) - session.cart.keys()
    return session.cart[next(iter(gone))] if len(gone) == len(new) == 1 else 0


def _taken_out(session: Session, line: str) -> dict[str, int]:
    """Pieces that a line takes out of the order: "take four of them out"."""
    found: dict[str, int] = {}
    for clause in _CLAUSE_END.split(clean_utterance(line)):
        match = _TAKES.search(clause.casefold())
        number = match and whole_number(match[1])
        if not number:
            continue
        ids = session.named(clause, sure=False) & session.cart.keys()
        ids = ids or (frozenset(session.cart) if len(session.cart) == 1 else frozenset())
        if len(ids) == 1:
            found[next(iter(ids))] = number
    return found
