"""Which goods of an order a player's words give evidence of.

Goods may come into the cart where the line names them or says a word of their names, where it can
mean those that were shown, where they fit what it orders in other words, and where they were in the
cart before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, takewhile

from haggle.core.text import clean_utterance
from haggle.trade.among import turned_down
from haggle.trade.fitting import fits
from haggle.trade.knowledge import (
    SENTENCE_END,
    adds,
    adds_or_joins,
    goes_back,
    has_number,
    orders,
    puts_back,
    refers,
    removes,
    stays,
    stems,
    takes_all,
    wants,
)
from haggle.trade.language import patterns
from haggle.trade.ledger import Cart
from haggle.trade.prompting import noted_cart
from haggle.trade.session import Session
from haggle.trade.shared_out import shared_out
from haggle.trade.wanted import name_stems, put_back, ruled_out, said_stems
from haggle.trade.wire import UNLISTED, CartLines, Quantity
from haggle.trade.world import World

BRIEF = 6  # words of a sentence that swaps goods for their like


def evident_goods(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods that a line may put into the cart, and of those in it; none that it rules
    out."""
    world = session.world
    found = session.named(line, sure=False) | session.cart.keys()
    if refers(line):
        found |= {item.item_id for item in world.known(session.shown)}
        found |= told_of(session)
    if orders(line) and "?" not in line:
        found |= {item.item_id for item in fits(world, line)}
    found |= partly_named(session, line)
    if goes_back(line):
        found |= held_before(session)
    back = restored(session, line).keys()
    return (frozenset(found) - ruled_out(world, line) - turned_down(session, line)) | back


_ARTICLES = frozenset().union(*map(patterns.words, ("the", "a", "any", "them")))


def misheard(session: Session, line: str) -> frozenset[str]:
    """Ids of goods in the cart that a line says it never ordered, or does not need, by words of
    their names and no others: not "I never asked for better boots"."""
    found: set[str] = set()
    for pattern in patterns.NEVER_ORDERED:
        for match in pattern.finditer(clean_utterance(line)):
            said = frozenset(stems(match[1])) - _ARTICLES
            for item in session.named(match[1], sure=False) & session.cart.keys():
                if said <= frozenset(stems(session.world.by_id[item].item_name)):
                    found.add(item)
    return frozenset(found)


def told_of(session: Session) -> frozenset[str]:
    """Ids of the goods that the merchant just told something of."""
    outcome = session.exchanges[-1].outcome if session.exchanges else ""
    told = [part for part in SENTENCE_END.split(outcome.partition("told: ")[2]) if part]
    texts = {i.item_id: (*i.facts, i.description) for i in session.world.inventory if told}
    return frozenset(i for i, known in texts.items() if any(t in k for t in told for k in known))


def partly_named(session: Session, line: str) -> frozenset[str]:
    """Ids of goods of whose names a line says a word that names no other: "two wax", "the blue
    one"."""
    goods = session.world.by_id
    told = frozenset().union(*(name_stems(goods[i].item_name) for i in session.named(line)))
    said = said_stems(clean_utterance(line)) - told
    return frozenset(i.item_id for i in session.world.inventory if said & name_stems(i.item_name))


def held_before(session: Session) -> frozenset[str]:
    """Ids of goods that were in the cart at some time of this talk: "as it was", "put it back"."""
    return frozenset().union(*_carts(session))


def _carts(session: Session) -> Iterator[Cart]:
    """The cart before each turn, from the last one back."""
    ids = {item.item_name: item.item_id for item in session.world.inventory}
    for exchange in reversed(session.exchanges):
        noted = noted_cart(exchange.note)
        yield {ids[name]: number for name, number in noted.items() if name in ids}


def restored(session: Session, line: str) -> Cart:
    """Goods that a change took out and a line wants back, in their numbers: "put it back,
    she is not that fussy"."""
    match = patterns.BACK.search(clean_utterance(line).casefold())
    if match is None:
        return {}
    named = session.named(match[0], sure=False) or session.named(line)
    carts = (_without(cart, session.cart) for cart in _carts(session))
    wanted = ({i: n for i, n in cart.items() if i in (named or cart)} for cart in carts)
    return next(filter(None, wanted), {})


def missing(session: Session, line: str) -> Cart:
    """Goods that a line misses in the order, or wants back, in the numbers that it tells, or that
    they had: "where are my jars?", "bring the others back"."""
    parts = SENTENCE_END.split(clean_utterance(line))
    missing_in = [part for part in parts if patterns.MISSES.search(part)]
    all_back = any(map(_brings_back, parts))
    if not (missing_in or all_back):
        return {}
    past = gone(session)
    rest = line if all_back else " ".join(part for part in parts if part not in missing_in)
    named = session.named(line, sure=False)
    wanted = named if all_back else session.named(" ".join(missing_in), sure=False)
    wanted = (wanted & session.named(line)) or wanted & (past.keys() | session.cart.keys())
    if all_back and not named - session.cart.keys():
        wanted = frozenset(past)
    if named:
        wanted -= ruled_out(session.world, rest) | put_back(session.world, rest)
    held = session.cart if any(map(patterns.WHERE_IS.search, missing_in)) else {}
    told = {i: _number_of(session, line, i) or n for i, n in past.items() if i in wanted}
    return {i: n for i, n in held.items() if i in wanted} | told


def _brings_back(part: str) -> bool:
    """Whether a sentence wants all back, and now: "put it all back"."""
    asks = "?" in part and patterns.BEGS.search(part) is None
    later = asks or patterns.LATER_ON.search(part) is not None
    return not later and patterns.BRINGS_BACK.search(part) is not None


def gone(session: Session) -> Cart:
    """Goods that were in the order and are no more, in the numbers they had last; those of a sale
    are not."""
    if session.sales and not session.cart:
        return {}  # they are sold
    found: Cart = {}
    for cart in takewhile(bool, _carts(session)):  # where it is empty, the order began
        found = cart | found
    return _without(found, session.cart)


def _without(cart: Cart, held: Cart) -> Cart:
    return {item: number for item, number in cart.items() if item not in held}


def _number_of(session: Session, line: str, item: str) -> int:
    """The number that a line tells of a good; 0 where it tells none."""
    sure = (m for m in session.read(line).mentions if {t.id for t in m.candidates} == {item})
    return next((m.quantity for m in sure if m.quantity), 0)


def evident_lines(session: Session, line: str, asked: CartLines) -> CartLines:
    """The lines of an order that may stand: evident goods, and less of what is in the cart. Goods
    that are ruled out stay where all others change: "double everything but the white"."""
    world, cart, evident = session.world, session.cart, evident_goods(session, line)
    ids = [item_id(world, name) for name, _ in asked]
    numbers = [number if isinstance(number, int) else 0 for _, number in asked]
    evident |= shared_out(session, line, goods_of(session, asked)).keys()
    changed = takes_all(line) and not puts_back(line)
    return tuple(
        told
        for told, i, number in zip(asked, ids, numbers, strict=True)
        if i is None or i in evident or _is_less(cart, i, number, as_many=changed)
    )


def goods_of(session: Session, asked: CartLines) -> dict[str, Quantity]:
    """The known goods of an order by id, with their numbers."""
    items = ((session.world.recognise(name), number) for name, number in asked)
    return {item.item_id: number for item, number in items if item}


def _is_less(cart: Cart, item: str, number: int, *, as_many: bool) -> bool:
    held = cart.get(item, 0)
    return 0 < number < held or (as_many and number == held)


def lost_goods(session: Session, line: str, asked: CartLines) -> list[str]:
    """Ids of goods that an order leaves out though the line has no words for that."""
    kept = {item_id(session.world, name) for name, _ in asked}
    gone = [i for i in session.cart if i not in kept]
    named = session.named(line, sure=False)
    taken = ruled_out(session.world, line)
    consent = session.read(line).consent
    adding = adds(line) or patterns.YES_AND.match(line.casefold()) is not None
    adding = adding and not (consent and consent.replaces())
    staying = kept_by(session, line)
    wanted = frozenset() if removes(line) else in_clauses(session, line, wants) - taken
    meant = taken if adding or not (asked or removes(line)) else named - wanted
    return [i for i in gone if i in staying or i not in meant]


def kept_by(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods that a line says to keep, or are all that it wants."""
    reading = session.read(line)
    beside = [match.span() for match in patterns.WITH_THE.finditer(reading.line)]
    named = [m for m in reading.mentions if any(a <= m.start < b for a, b in beside)]
    joined = {thing.id for mention in named for thing in mention.candidates}
    return (in_clauses(session, line, _keeps) | joined) - ruled_out(session.world, line)


def _keeps(clause: str) -> bool:
    only = patterns.ONLY_THESE.search(clause) and not (puts_back(clause) or has_number(clause))
    return stays(clause) or bool(only)


def only_these(session: Session, line: str) -> bool:
    """Whether a line wants what it names and nothing else: "just the map", "the map alone"."""
    reading = session.read(line)
    return patterns.NO_MORE.search(line) is not None or any(
        patterns.ONLY.search(reading.line[: mention.start])
        or patterns.ALONE.match(reading.line, mention.end)
        for mention in reading.mentions
    )


def left_out(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods in the cart beside the only ones that a line wants: "just the map"."""
    named = session.named(line) & session.cart.keys()
    if not only_these(session, line) or not named or "?" in line or adds(line):
        return frozenset()
    return frozenset(session.cart.keys() - session.named(line, sure=False))


def sent_back(session: Session, line: str) -> frozenset[str]:
    """Ids of goods in the cart that a clause takes out of it: "take the small ones out"."""
    told = " ".join(part for part in SENTENCE_END.split(line) if "?" not in part)
    return in_clauses(session, told, _sends_back, sure=True) & session.cart.keys()


def _sends_back(clause: str) -> bool:
    if has_number(clause) or patterns.A_PART.search(clause) or patterns.NOT_SO.search(clause):
        return False
    told = patterns.SENDS_BACK.search(clause) is not None and puts_back(clause)
    return told or patterns.NONE_OF.search(clause) is not None


def in_clauses(
    session: Session, line: str, says: Callable[[str], bool], *, sure: bool = False
) -> frozenset[str]:
    """Ids of the goods that a line may name, or for `sure` names, in clauses which say something of
    them."""
    reading = session.read(line)
    ends = [match.start() for match in patterns.CLAUSE_OF_ORDER.finditer(reading.line)]
    found: set[str] = set()
    for start, end in pairwise((0, *ends, len(reading.line))):
        named = [m for m in reading.mentions if start <= m.start < end]
        named = [m for m in named if not sure or len(m.candidates) == 1]
        if named and says(reading.line[start:end]):
            found.update(thing.id for mention in named for thing in mention.candidates)
    return frozenset(found)


def swapped_out(session: Session, line: str, asked: CartLines) -> frozenset[str]:
    """Ids of goods in the cart whose like takes their place in as many pieces or more: "two storm
    lanterns instead"."""
    part = next((p for p in SENTENCE_END.split(line) if patterns.INSTEAD.search(p)), "")
    if not part or len(part.split()) > BRIEF:
        return frozenset()
    numbers = {item_id(session.world, name): number for name, number in asked}
    new = session.named(part) - session.cart.keys()
    if len(new) != 1 or session.named(part, sure=False) & session.cart.keys():
        return frozenset()
    goods, number = session.world.by_id, numbers.get(next(iter(new)), 0)
    kind = name_stems(goods[next(iter(new))].item_name)
    return frozenset(
        i for i, held in session.cart.items()
        if name_stems(goods[i].item_name) & kind and isinstance(number, int) and held <= number
    )  # fmt: skip


def is_swap(session: Session, line: str, lost: list[str], asked: CartLines) -> bool:
    """Whether goods of an order take the place of their like: "blue, then"."""
    world = session.world
    own = said_stems(clean_utterance(line))
    new = [i for name, _ in asked if (i := item_id(world, name)) and i not in session.cart]
    called = {i: name_stems(world.by_id[i].item_name) for i in (*lost, *new)}
    swapped = [
        any(called[i] & called[n] and own & called[n] - called[i] for n in new) for i in lost
    ]
    return all(swapped) and not adds_or_joins(line)


def item_id(world: World, name: str) -> str | None:
    """The id of the item that a name a model wrote means; None for what is not known or sold."""
    item = world.recognise(name.removeprefix(UNLISTED))
    return item.item_id if item is not None else None
