"""Moves that change a cart, some of them with an agreement or a price in the same breath."""

from __future__ import annotations

from data_gen.acts import Act, Spoken
from data_gen.language.mentions import ORDINALS
from data_gen.players.orders import order_apiece, order_shares
from data_gen.players.speaker import Move, Moves, Speaker, cart_lines, cart_names, reordered
from haggle.trade.ledger import resolve_cart, total
from haggle.trade.session import Session
from haggle.trade.wire import Step
from haggle.trade.world import money


def add(name: str) -> Move:
    """More items on top, in the phrases of `name`."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        wanted = p.draw(s, p.rng.choice((1, 1, 1, 2)), 0.93)
        if not wanted:
            return None
        text, lines = p.lines(wanted)
        cart = (*cart_lines(s), *lines)
        values = {"items": text}
        must = ["items"]
        if name == "add_haggle":
            full, _ = resolve_cart(s.world, cart)
            values["price"] = money(
                max(1, round(total(s.world, full) * p.rng.uniform(0.6, 0.95)) // 5 * 5)
            )
            must.append("price")
        return p.say(reordered(name, *cart, change=lines), *must, **values)

    return move


def _some_line(p: Speaker, s: Session, least: int = 1) -> tuple[int, str, int] | None:
    lines = [(i, n, q) for i, (n, q) in enumerate(cart_lines(s)) if q >= least]
    return p.rng.choice(lines) if lines else None


def set_number(name: str, least: int = 1) -> Move:
    """A line of the cart gets another number, said by `name`: in all, more, fewer, twice, half."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        line = _some_line(p, s, least)
        if line is None:
            return None
        index, item, number = line
        rng = p.rng
        values: dict[str, str] = {}
        step: Step
        if name in {"set_quantity", "confirm_set"}:
            new = rng.choice([n for n in (1, 2, 3, 4, 5, 6, 8, 10, 12) if n != number])
            values["qty"], step = p.quantity(new), new
        elif name == "add_more":
            more = rng.choice((1, 2, 2, 3, 3, 4, 5, 6, 10))
            new, values["qty"] = number + more, p.quantity(more)
            step = f"+{more}"
        elif name == "put_back_some":
            fewer = rng.randrange(1, number)
            new, values["qty"] = number - fewer, p.quantity(fewer)
            step = f"-{fewer}"
        elif name in {"one_more", "confirm_one_more"}:
            new, step = number + 1, "+1"
        elif name == "double_item":
            new, step = number * 2, "x2"
        else:
            new, step = -(-number // 2), "half"
        plural = 1 if name in {"one_more", "confirm_one_more"} else 2
        values["item"] = p.item(item, plural, cart_names(s))
        lines = cart_lines(s)
        lines[index] = (item, new)
        return p.say(reordered(name, *lines, change=((item, step),)), *values, **values)

    return move


def set_quantity_it(p: Speaker, s: Session) -> Spoken | None:
    """Another number of the only thing in the cart."""
    if len(s.cart) != 1:
        return None
    ((item, number),) = cart_lines(s)
    new = p.rng.choice([n for n in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20) if n != number])
    act = reordered("set_quantity_it", (item, new), change=((item, new),))
    return p.say(act, "qty", qty=p.quantity(new))


def remove(name: str) -> Move:
    """A line of the cart goes, in the phrases of `name`."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        lines = cart_lines(s)
        if len(lines) < 2:
            return None
        index = p.rng.randrange(len(lines))
        item, number = lines.pop(index)
        values = {"item": p.item(item, number, cart_names(s))}
        if name == "remove_haggle":
            rest, _ = resolve_cart(s.world, lines)
            values["price"] = money(max(1, round(total(s.world, rest) * p.rng.uniform(0.6, 0.95))))
        return p.say(reordered(name, *lines, change=((item, 0),)), *values, **values)

    return move


def remove_ordinal(p: Speaker, s: Session) -> Spoken | None:
    """The first, second, last line of the cart goes."""
    lines = cart_lines(s)
    if not 2 <= len(lines) <= len(ORDINALS):
        return None
    index = p.rng.randrange(len(lines))
    last = index == len(lines) - 1 and p.rng.random() < 0.5
    item, _ = lines.pop(index)
    act = reordered("remove_ordinal", *lines, change=((item, 0),))
    return p.say(act, "ordinal", ordinal="last" if last else ORDINALS[index])


def keep_only(p: Speaker, s: Session) -> Spoken | None:
    """All goes but one line."""
    lines = cart_lines(s)
    if len(lines) < 2:
        return None
    item, number = p.rng.choice(lines)
    act = reordered("keep_only", (item, number))
    return p.say(act, "item", item=p.item(item, number, cart_names(s)))


def swap(name: str) -> Move:
    """One line gives way to other items."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        lines = list(cart_lines(s))
        wanted = p.draw(s, 1, 0.97)
        if not wanted:
            return None
        index = p.rng.randrange(len(lines))
        item, number = lines[index]
        if p.rng.random() < 0.3:
            wanted = [(wanted[0][0], number)]
        text, parts = p.lines(wanted)
        named = p.item(item, number, cart_names(s))
        cart = (*lines[:index], *parts, *lines[index + 1 :])
        act = reordered(name, *cart, change=((item, 0), *parts))
        return p.say(act, "item", "items", item=named, items=text)

    return move


def replace_all(p: Speaker, s: Session) -> Spoken | None:
    """Another order instead of all of it."""
    wanted = p.draw(s, p.rng.choice((1, 1, 2, 3)), 0.95)
    if not wanted:
        return None
    text, cart = p.lines(wanted)
    return p.say(reordered("replace_all", *cart), "items", items=text)


def double(p: Speaker, s: Session) -> Spoken | None:
    """Twice as much of everything."""
    lines = cart_lines(s)
    twice = tuple((name, "x2") for name, _ in lines)
    return p.say(reordered("double", *((n, q * 2) for n, q in lines), change=twice))


def halve(p: Speaker, s: Session) -> Spoken | None:
    """Half as many of the only thing in the cart."""
    lines = cart_lines(s)
    if len(lines) != 1 or lines[0][1] < 2:
        return None
    ((item, number),) = lines
    return p.say(reordered("halve", (item, -(-number // 2)), change=((item, "half"),)))


def clear(p: Speaker, s: Session) -> Spoken | None:
    """All called off."""
    return p.say(Act("clear", "clear", changed=True))


CHANGES: Moves = (
    (5, add("add")), (2, set_number("add_more")), (1.5, set_number("one_more")),
    (3, remove("remove")), (1, remove_ordinal), (1.2, set_number("put_back_some", 2)),
    (1.2, keep_only), (2.5, set_number("set_quantity")), (1.5, set_quantity_it),
    (3, swap("swap")), (1.2, replace_all), (0.8, double), (0.8, set_number("double_item")),
    (0.8, halve), (0.8, set_number("halve_item", 2)), (1, clear), (0.8, add("add_haggle")),
    (0.5, remove("remove_haggle")), (0.6, add("bundle_haggle")), (1.0, order_apiece),
    (0.6, order_shares),
)  # fmt: skip
AGREED_CHANGES: Moves = (
    (3, add("accept_add")), (1.2, set_number("confirm_one_more")),
    (1.5, set_number("confirm_set")), (1.5, remove("confirm_remove")),
)  # fmt: skip
REVIEW_CHANGES: Moves = (*AGREED_CHANGES, (1.5, swap("refuse_change")), (3, add("add")),
                         (2, remove("remove")), (2, set_number("set_quantity")),
                         (1, set_number("one_more")), (1, set_number("put_back_some", 2)),
                         (0.7, clear), (1, keep_only), (1, replace_all), (0.6, halve))  # fmt: skip
# What a drill exercises on top: changes that leave a model guessing which line is meant.
DRILL: Moves = (
    *CHANGES, (2, swap("swap")), (2, replace_all), (1, keep_only), (1, double), (1, remove_ordinal),
    (1, set_number("double_item")), (1, set_number("halve_item", 2)), (1, add("add_haggle")),
    (1.5, order_apiece), (1, order_shares),
)  # fmt: skip
AT_REVIEW_DRILL: Moves = (*REVIEW_CHANGES, (1.5, replace_all), (1, swap("swap")), (1, double))
