"""Goods that take the place of others in the order: "swap the red for two blue", "the brass one in
its place", "exchange it for the smaller flask".

Who swaps says what comes, and what goes as far as it has to be said: the rest of the order stays,
whatever a model makes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from haggle.core.text import clean_utterance
from haggle.trade.among import without_ones
from haggle.trade.counted import is_one
from haggle.trade.edits import numbers_in_line
from haggle.trade.evident import evident_lines, item_id, kept_by
from haggle.trade.knowledge import (
    SENTENCE_END,
    asks_what_it_costs,
    has_number,
    knowledge,
    puts_back,
    whole_number,
)
from haggle.trade.language import CUES, patterns
from haggle.trade.session import Session
from haggle.trade.wanted import goods_stems, in_names, name_stems, ruled_out, said_stems
from haggle.trade.wire import CartLines, Quantity


@dataclass(frozen=True, slots=True)
class Swap:
    """The words of a swap: for what comes in and, where they are said, for what goes."""

    new: str
    old: str = ""
    behind: str = ""
    replaces: bool = False  # "this instead of that", which may be told of other things than goods


def swapped(session: Session, line: str, asked: CartLines) -> CartLines:
    """The whole order after a swap; its other goods as `asked`, or as in the cart. Empty where the
    line swaps nothing, several times, or leaves open what for what."""
    found = [swap for part in SENTENCE_END.split(line) if (swap := _said(session, line, part))]
    if len(found) != 1 or patterns.ANOTHER_SWAP.search(found[0].behind):
        return ()
    return _carried_out(session, line, found[0], asked)


def _said(session: Session, line: str, part: str) -> Swap | None:
    """The swap that a sentence of a line tells."""
    if asks_what_it_costs(part):
        return None
    for pattern in (*patterns.EXCHANGES, patterns.INSTEAD_OF):
        match = pattern.search(part)
        if match and not patterns.NOT_ASKED.search(part[: match.start()]):
            found, replaces = match.groupdict(), pattern is patterns.INSTEAD_OF
            if not (replaces and "?" in part):
                return Swap(found["new"], found.get("old") or "", part[match.end() :], replaces)
    instead = patterns.IN_PLACE.search(part)
    shared = not CUES.shared.isdisjoint(line.casefold().split())  # "a third of them"
    return Swap(instead[0]) if instead and session.has_priced and not shared else None


def _carried_out(session: Session, line: str, swap: Swap, asked: CartLines) -> CartLines:
    """The order after a swap."""
    cart, by_id = session.cart, session.world.by_id
    new = _comes(session, swap)
    gone = new and _goes(session, swap, new)
    if (
        not new
        or not gone
        or new in ruled_out(session.world, line)
        or gone in kept_by(session, line)
    ):
        return ()
    item, part = by_id[new], _count(session, swap.old, gone)
    left = max(0, cart[gone] - part) if part else 0
    numbers = {item_id(session.world, name): count for name, count in asked}
    if not said_stems(swap.old) and swap.old and numbers.get(gone, 0) == cart[gone]:
        return ()  # "it" may be the player's own purse; the model takes it so
    counted = _count(session, swap.new, new)
    told = counted or _told_behind(line, swap, numbers.get(new))
    piece = patterns.A_PIECE.match(swap.new.casefold())
    one = piece or (not part and is_one(session, swap.new, item))
    one = one and not patterns.SAME_NUMBER.search(line)
    number = told or (1 if one else part or cart[gone])
    if new in cart:  # more of it, where that is told
        if swap.replaces or not isinstance(number, int) or not (counted or piece):
            return ()
        number += cart[new]
    rest = _rest(session, line, numbers, {new, gone})
    others = {
        name: count
        for name, count in evident_lines(session, line, asked)
        if item_id(session.world, name) not in cart.keys() | {new}
    }
    kept = {by_id[gone].item_name: left} if left else {}
    whole = {**rest, **kept, **others, item.item_name: number}
    return tuple(whole.items())


def _rest(
    session: Session, line: str, asked: Mapping[str | None, Quantity], but: Set[str]
) -> dict[str, Quantity]:
    """The goods of the order that no swap touches, as it is asked for where the line may speak of
    them, else as they are."""
    named, said = session.named(line, sure=False), numbers_in_line(session.linked_line(line))
    out = session.cart.keys() if puts_back(line) else ruled_out(session.world, line)
    return {
        session.world.by_id[i].item_name: asked[i]
        if i in asked and (i in named or asked[i] in said)
        else held
        for i, held in session.cart.items()
        if i not in but and (i in asked or i not in out)
    }


def _told_behind(line: str, swap: Swap, asked: Quantity | None) -> Quantity | None:
    """A number that is asked for, where it is told behind a swap: "for sparklers, two bundles"."""
    words = set(clean_utterance(line).casefold().replace(".", " ").split())
    said = asked in numbers_in_line(swap.behind) or words & CUES.twice
    return asked if said else None


def _comes(session: Session, swap: Swap) -> str:
    """The id of the good that comes in; empty where that is open. What is only described is of the
    kind of what goes: "exchange it for the smaller flask", "for the cheap one"."""
    cart, goods = session.cart.keys(), session.world.inventory
    ids = session.named(swap.new) or session.named(swap.new, sure=False)
    if len(ids) == 1 and not ids <= cart:
        return next(iter(ids))
    old = session.named(swap.old, sure=False) & cart
    named = said_stems(swap.new)
    if len(ids) == 1 and old and not ids & old and _is_said(session, ids, named):
        return next(iter(ids))  # more of what is in the cart
    counted = not named and has_number(without_ones(swap.new))  # "change the rope to three"
    if not swap.old or swap.replaces or counted:
        return ""
    kind = named or frozenset().union(*(name_stems(session.world.by_id[i].item_name) for i in old))
    others = [i for i in goods if i.item_id not in cart and name_stems(i.item_name) & kind]
    return others[0].item_id if len(others) == 1 else ""


def _is_said(session: Session, ids: Set[str], named: Set[str]) -> bool:
    """Whether words name goods, not only describe them."""
    return any(named & name_stems(session.world.by_id[i].item_name) for i in ids)


def _goes(session: Session, swap: Swap, new: str) -> str:
    """The id of the good that leaves the order: the one that is named, else the only one that is
    like what comes, else the only one."""
    cart, names = session.cart.keys() - {new}, session.world.by_id
    old, described = said_stems(swap.old), goods_stems(session.world)[0]
    named = frozenset(i for i in cart if old & name_stems(names[i].item_name))
    if swap.old and len(named) != 1:
        named = session.named(swap.old, sure=False) & cart
    named = named or frozenset(i for i in cart if old & described.get(i, frozenset()))
    if len(named) == 1:
        return next(iter(named))
    several = len(cart) > 1 and patterns.SEVERAL_OF.search(swap.old)
    if named or old or swap.replaces or several:
        return ""
    for words in (name_stems, _kinds):
        like = [i for i in cart if words(names[i].item_name) & words(names[new].item_name)]
        if len(like) == 1:
            return like[0]
        if like:
            return ""
    return next(iter(cart)) if len(cart) == 1 else ""


def _kinds(name: str) -> frozenset[str]:
    """The kinds of goods that a name is of."""
    return frozenset(f"#{kind}" for kind in knowledge().kinds) & in_names((name,))


def _count(session: Session, words: str, good: str) -> int:
    """The number that words tell of a good; 0 where they tell none."""
    mentions = session.read(words).mentions if words else ()
    told = [m.quantity for m in mentions if good in {t.id for t in m.candidates} and m.quantity]
    return next(filter(None, [*told, *map(whole_number, words.casefold().split())]), 0)
