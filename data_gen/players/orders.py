"""Moves that fill an empty cart: orders, by name or by pointing at what was shown or bought."""

from __future__ import annotations

from data_gen.acts import Act, Line, Spoken
from data_gen.language.mentions import ORDINALS, number_word, single
from data_gen.players.speaker import (
    Move,
    Moves,
    Speaker,
    cart_lines,
    just_shown,
    ordered,
    pick,
    reordered,
)
from haggle.trade.formula import Formula
from haggle.trade.ledger import resolve_cart, total
from haggle.trade.session import Session
from haggle.trade.wire import UNLISTED, Quantity
from haggle.trade.world import money

COUNTS = (1, 1, 1, 2, 2, 2, 3, 3, 4, 5)
HEADS = (3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 12, 14, 20)
FEW_HEADS = (3, 4, 5, 6)
SHARES = (2, 2, 3, 3, 4, 5, 6, 8, 10, 12)


def create(name: str) -> Move:
    """An order of some items in the phrases of `name`."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        text, cart = p.lines(p.draw(s, p.rng.choice(COUNTS)))
        return p.say(ordered(name, *cart), "items", items=text)

    return move


def question_order(p: Speaker, s: Session) -> Spoken | None:
    """A question that needs no answer, and an order in the same breath."""
    wanted = p.draw(s, p.rng.choice((1, 1, 2, 3)))
    text, cart = p.lines(wanted)
    about = p.rng.choice(wanted)[0]
    named = p.item(about) if s.world.find(about) else about.casefold()
    return p.say(ordered("question_order", *cart), "items", items=text, item=named)


def order_unsold(p: Speaker, s: Session) -> Spoken | None:
    """An order of nothing that is sold here."""
    text, cart = p.lines(p.draw(s, p.rng.choice((1, 1, 2)), sellable=0))
    return p.say(ordered("order_unsold", *cart), "items", items=text)


def order_haggle(p: Speaker, s: Session) -> Spoken | None:
    """An order with an offer in it."""
    text, lines = p.lines(p.draw(s, p.rng.choice((1, 1, 2, 3))))
    cart, _ = resolve_cart(s.world, lines)
    if not cart:
        return None
    price = max(1, round(total(s.world, cart) * p.rng.uniform(0.4, 0.95)))
    return p.say(
        ordered("order_haggle", *lines), "items", "price", items=text, price=_round_sum(price)
    )


def order_apiece(p: Speaker, s: Session) -> Spoken | None:
    """So many of some items for each of several people; on top of what is in the cart."""
    heads = p.rng.choice(HEADS if p.rng.random() < 0.3 else FEW_HEADS)  # few: within most stocks
    wanted = [
        (name, p.rng.choice((1, 1, 2, 2, 3, 4))) for name, _ in p.draw(s, p.rng.choice((1, 1, 2)))
    ]
    text, each = p.lines(wanted)
    lines = tuple((name, _apiece(name, number, heads)) for name, number in each)
    return _on_top(p, s, "order_apiece", lines, text, heads)


def order_shares(p: Speaker, s: Session) -> Spoken | None:
    """Some of an item for one person and some for another; on top of what is in the cart."""
    name = p.rng.choice([i.item_name for i in s.world.inventory] or [""])
    if not name or name in dict(cart_lines(s)):
        return None
    one, other = p.rng.choice(SHARES), p.rng.choice(SHARES)
    text, _ = p.lines([(name, one)])
    line = (name, Formula(f"{one}+{other}").in_order())
    return _on_top(p, s, "order_shares", (line,), text, other)


def _on_top(
    p: Speaker, s: Session, name: str, lines: tuple[Line, ...], items: str, number: int
) -> Spoken | None:
    """An order of these lines, a first one or beside what is in the cart; `number` is said too."""
    said = number_word(number) if p.rng.random() < p.style.words else str(number)
    act = ordered(name, *lines)
    if s.cart:
        act = reordered(name, *cart_lines(s), *lines, change=lines)
    return p.say(act, "items", "qty", items=items, qty=said)


def _apiece(name: str, each: Quantity, heads: int) -> Quantity:
    """How many of an item that is, left to code to work out."""
    if name.startswith(UNLISTED) or not isinstance(each, int):
        return each
    return Formula.product(each, heads) if each > 1 else heads


def order_all(p: Speaker, s: Session) -> Spoken | None:
    """The whole stock of something."""
    if not s.world.inventory:
        return None
    name = p.rng.choice(s.world.sellable_names)
    return p.say(ordered("order_all", (name, "all")), "item", item=p.item(name, 2))


def order_half(p: Speaker, s: Session) -> Spoken | None:
    """Half the stock of something."""
    if not s.world.inventory:
        return None
    name = p.rng.choice(s.world.sellable_names)
    return p.say(ordered("order_half", (name, "half")), "item", item=p.item(name, 2))


def ambiguous(p: Speaker, s: Session) -> Spoken | None:
    """An order by a name that two items share, so that the merchant has to ask."""
    if just_shown(s) or s.cart:
        return None
    choices = p.names.ambiguous(s.world.sellable_names)
    if not choices:
        return None
    head, pair = p.rng.choice(choices)
    act = Act("create", "unclear", items=tuple(pair))
    return p.say(act, "items", items=single(head, p.rng))


def shown_single(p: Speaker, s: Session) -> Spoken | None:
    """The only item shown, by pointing: one of it, or all there is."""
    shown = just_shown(s)
    if len(shown) != 1:
        return None
    if p.rng.random() < 0.25:
        return p.say(ordered("order_all_shown", (shown[0], "all")))
    return p.say(ordered("create_shown", (shown[0], 1)))


def shown_two(p: Speaker, s: Session) -> Spoken | None:
    """Of two items shown: both, the cheaper or the dearer."""
    shown = just_shown(s)
    if len(shown) != 2:
        return None
    prices = [(s.world.find(n) or s.world.items[0]).price or 0 for n in shown]
    if prices[0] == prices[1] or p.rng.random() < 0.4:
        return p.say(ordered("order_both", (shown[0], 1), (shown[1], 1)))
    cheaper = p.rng.random() < 0.5
    index = prices.index(min(prices) if cheaper else max(prices))
    number = p.rng.choice((1, 1, 2, 2, 3, 4))
    act = ordered("order_cheaper" if cheaper else "order_pricier", (shown[index], number))
    if number == 1:
        return p.say(act)
    return p.say(act, "qty", qty=p.quantity(number))


def shown_some(p: Speaker, s: Session) -> Spoken | None:
    """One of each, or the first, second, last one shown."""
    shown = just_shown(s)
    if not 2 <= len(shown) <= 6:
        return None
    if p.rng.random() < 0.35:
        return p.say(ordered("order_each", *((name, 1) for name in shown)))
    index = p.rng.randrange(len(shown))
    last = index == len(shown) - 1 and p.rng.random() < 0.5
    ordinal = "last" if last else ORDINALS[index] if index < len(ORDINALS) else "last"
    name = shown[-1] if ordinal == "last" else shown[index]
    number = p.rng.choice((1, 1, 1, 2, 3))
    act = ordered("order_ordinal", (name, number))
    if number == 1:
        return p.say(act, "ordinal", ordinal=ordinal)
    return p.say(act, "ordinal", "qty", ordinal=ordinal, qty=p.quantity(number))


def shown_named(p: Speaker, s: Session) -> Spoken | None:
    """Some of what was shown, by name; short names need only be clear among those."""
    shown = just_shown(s)
    if not shown:
        return None
    among = frozenset(shown)
    names = p.rng.sample(shown, min(len(shown), p.rng.choice((1, 1, 2, 3))))
    lines = [(name, p.rng.choice((1, 1, 1, 2, 3, 5))) for name in names]
    parts = [p.names.counted(n, k, p.rng, p.style.words, among) for n, k in lines]
    act = ordered(p.rng.choice(("create", "create", "create_indirect")), *lines)
    return p.say(act, "items", items=" and ".join(parts))


def same_again(p: Speaker, s: Session) -> Spoken | None:
    """The last purchase once more, perhaps without one of its items."""
    if not s.sales or s.state != "COMMIT_SALE":
        return None
    bought = [(s.world.by_id[i], n) for i, n in s.sales[-1].items.items()]
    if not all(item.for_sale for item, _ in bought):
        return None
    lines = [(item.item_name, n) for item, n in bought]
    if len(lines) > 1 and p.rng.random() < 0.6:
        name, number = lines.pop(p.rng.randrange(len(lines)))
        named = p.item(name, number, [n for n, _ in (*lines, (name, 1))])
        return p.say(ordered("same_without", *lines), "item", item=named)
    return p.say(ordered("same_again", *lines))


def _round_sum(price: int) -> str:
    return money(price // 5 * 5 if price > 20 else price)


SHOWN: Moves = ((3, shown_single), (3, shown_two), (2, shown_some), (3, shown_named))
FRESH: Moves = (
    (6, create("create")), (3, create("create_indirect")), (1, create("greet_order")),
    (1.2, question_order), (0.8, order_haggle), (0.5, create("order_free")), (0.7, order_all),
    (0.4, order_half), (1.2, order_apiece), (0.7, order_shares), (0.5, order_unsold),
    (0.8, ambiguous),
)  # fmt: skip


def order(p: Speaker, s: Session) -> Spoken | None:
    """An order that fits the moment."""
    if just_shown(s) and p.rng.random() < 0.8:
        return pick(SHOWN, p, s) or pick(FRESH, p, s)
    return pick(FRESH, p, s)
