"""Moves that put right what the merchant got wrong: the order as the player had meant it."""

from __future__ import annotations

from dataclasses import dataclass

from data_gen.acts import Act, Spoken
from data_gen.players.speaker import Moves, Speaker, cart_lines, cart_names, pick, reordered
from haggle.trade.session import Session
from haggle.trade.wire import Step

Cart = dict[str, int]
ASKING = frozenset(("ask_item", "ask_price", "compare", "recommend"))


@dataclass(frozen=True, slots=True)
class Slip:
    """A turn that went wrong: what the player said and meant, the cart as it was and should be
    now, by the items' names."""

    act: Act
    line: str
    before: Cart
    wanted: Cart


def put_right(slip: Slip, speaker: Speaker, session: Session) -> Spoken | None:
    """The player's next line after a slip; None where nothing is to be put right."""
    held = dict(cart_lines(session))
    if held == slip.wanted:
        return _again(slip, speaker, session) if _can_repeat(slip, session) else None
    missing = {n: q for n, q in slip.wanted.items() if n not in held}
    extra = [n for n in held if n not in slip.wanted]
    other = [n for n, q in slip.wanted.items() if n in held and held[n] != q]
    moves: Moves = [(1, lambda p, s: _all(slip, p, s))]
    if len(missing) + len(extra) + len(other) == 1:
        moves = [(4, lambda p, s: _one(slip, p, s)), *moves]
    elif len(missing) == len(extra) == 1 and not other:
        moves = [(5, lambda p, s: _item(slip, p, s)), *moves]
    if slip.wanted == slip.before and held:
        moves = [*moves, (2, lambda p, s: _back(slip, p, s))]
    return pick(moves, speaker, session)


def _steps(slip: Slip, held: Cart) -> tuple[tuple[str, Step], ...]:
    """What becomes of single lines, so that the cart is as wanted."""
    names = (*held, *(n for n in slip.wanted if n not in held))
    steps = ((n, slip.wanted.get(n, 0)) for n in names)
    return tuple((n, q) for n, q in steps if q != held.get(n, 0))


def _righted(name: str, slip: Slip, session: Session) -> Act:
    """The order as it should be: told as changes, or anew."""
    held = dict(cart_lines(session))
    wanted = tuple(slip.wanted.items())
    if not held or name == "right_all":
        return Act(name, "order", cart=wanted, changed=bool(held))
    return reordered(name, *wanted, change=_steps(slip, held))


def _one(slip: Slip, p: Speaker, s: Session) -> Spoken | None:
    """One line is wrong: its number, or it is missing, or too many."""
    held = dict(cart_lines(s))
    ((item, number),) = _steps(slip, held) if held else slip.wanted.items()
    assert isinstance(number, int)
    if item not in held:
        return p.say(
            _righted("right_missing", slip, s), "items", items=p.lines([(item, number)])[0]
        )
    named = p.item(item, held[item], cart_names(s))
    asked = slip.act.kind in ASKING
    if asked and not slip.wanted:
        return p.say(Act("right_question", "clear"), "item", item=named)
    if number:
        named = p.item(item, number, cart_names(s))
        values = {"item": named, "qty": p.quantity(number), "other": p.quantity(held[item])}
        return p.say(_righted("right_number", slip, s), "item", "qty", **values)
    if not slip.wanted or item in slip.before:
        return None
    name = "right_question" if asked else "right_extra"
    return p.say(_righted(name, slip, s), "item", item=named)


def _item(slip: Slip, p: Speaker, s: Session) -> Spoken | None:
    """One thing was taken for another."""
    held = dict(cart_lines(s))
    (wrong,) = (n for n in held if n not in slip.wanted)
    (right,) = (n for n in slip.wanted if n not in held)
    items = p.lines([(right, slip.wanted[right])])[0]
    named = p.item(wrong, held[wrong], cart_names(s))
    return p.say(_righted("right_item", slip, s), "items", "item", items=items, item=named)


def _all(slip: Slip, p: Speaker, s: Session) -> Spoken | None:
    """The whole order again."""
    if not slip.wanted:
        return p.simple("clear", "clear") if s.cart else None
    items = p.lines(list(slip.wanted.items()))[0]
    return p.say(_righted("right_all", slip, s), "items", items=items)


def _back(slip: Slip, p: Speaker, s: Session) -> Spoken | None:
    """As it was before."""
    return p.say(_righted("right_back", slip, s)) if slip.wanted else None


def _can_repeat(slip: Slip, session: Session) -> bool:
    """Whether what was ignored can be said again and means the same now."""
    kind = slip.act.kind
    if session.procedure.is_review(session.last):
        return False  # a yes in reported words closes no sale
    return bool(session.cart) and kind in {"haggle", "agree"} and not slip.act.cart


def _again(slip: Slip, p: Speaker, s: Session) -> Spoken:
    """The same once more: it was not heard."""
    act = Act("right_again", slip.act.kind, bid=slip.act.bid)
    return p.say(act, "line", line=slip.line.rstrip(".!? "))
