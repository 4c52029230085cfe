"""What code knows better than a model: stock, prices, how far to go when haggling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from haggle.trade.knowledge import is_money
from haggle.trade.language import patterns
from haggle.trade.lines import lines, listed
from haggle.trade.wire import UNLISTED, Bid, Quantity, is_bid
from haggle.trade.world import Haggling, Item, World, counted, money

Cart = dict[str, int]


NoteKind = Literal[
    "capped", "not_sold", "unheard_of", "sold_out", "impossible", "purse", "told", "unknown", "also"
]


@dataclass(frozen=True, slots=True)
class Deal:
    """Goods, and the price that they were last haggled down to."""

    goods: Cart
    price: float


@dataclass(frozen=True, slots=True)
class Note:
    """Something code changed in what was asked, to be said: capped at stock, not sold, nothing by
    that name, sold out, in a number that nobody can buy, more than the player's purse holds; or
    what is told of goods, or that nothing is known of them."""

    kind: NoteKind
    name: str
    left: int = 0


def resolve_cart(
    world: World, lines: Sequence[tuple[str, Quantity]]
) -> tuple[Cart, tuple[Note, ...]]:
    """The cart that can really be sold for the lines asked for, with notes on what was changed.

    Quantities are capped at the stock, items that are not sold are left out, zero and negative
    quantities vanish. Partial names are recognised where only one item can be meant. Of an item
    named twice the later line counts: the list is the whole cart, so it is a correction.
    """
    asked: dict[str, int] = {}
    notes: list[Note] = []
    for name, quantity in lines:
        wanted = name.removeprefix(UNLISTED).strip()
        item = world.recognise(patterns.MEASURE.sub("", wanted)) if wanted else None
        if item is None or not item.for_sale:
            if wanted and not is_money(wanted, world.currency):
                sold_out = item is not None and item.quantity == 0
                shown = item.item_name if item else wanted
                notes.append(Note("sold_out" if sold_out else "not_sold", shown))
            continue
        number = share_of(item, quantity)
        if number > 0:
            asked[item.item_id] = number
    cart: Cart = {}
    for item_id, number in asked.items():
        item = world.by_id[item_id]
        stock = item.quantity or 0
        cart[item_id] = min(number, stock)
        if number > stock:
            notes.append(Note("capped", item.item_name, stock))
    return cart, tuple(notes)


def share_of(item: Item, quantity: Quantity) -> int:
    """Pieces meant: a number as it is, "all" of the stock, "half" of it rounded up."""
    stock = item.quantity or 0
    if quantity == "all":
        return stock
    return -(-stock // 2) if quantity == "half" else int(quantity)


def total(world: World, cart: Cart) -> float:
    """List price of the cart."""
    return round(sum((world.by_id[i].price or 0) * n for i, n in cart.items()), 2)


def floor_price(world: World, cart: Cart) -> float:
    """The least the merchant sells this cart for, rounded up to a whole coin."""
    return _round_up(total(world, cart) * (1 - world.merchant.haggling.max_discount))


def price_under(world: World, cart: Cart, deal: Deal | None) -> float:
    """What a cart costs after a deal: up to the quantities of the deal goods cost the same fraction
    of their list price as then, all others cost the list price. Never below the floor.

    A pure function of deal and cart, so nothing is gained by taking goods out and in again.
    """
    listed_price = total(world, cart)
    if deal is None or not world.merchant.haggling.keep_discount:
        return listed_price
    dealt = {i: min(n, deal.goods[i]) for i, n in cart.items() if i in deal.goods}
    if not dealt:
        return listed_price
    before = total(world, dealt)
    kept = deal.price
    if dealt != deal.goods:
        kept = _round_up(before * deal.price / total(world, deal.goods)) if before else 0.0
    price = round(listed_price - before + kept, 2)
    return min(listed_price, max(floor_price(world, cart), price))


def _round_up(amount: float) -> float:
    return float(-(-round(amount, 6) // 1))


def bid_amount(bid: Bid, current: float, pieces: int) -> float | None:
    """The total a bid stands for, given the price on the table; None when it names no number."""
    if bid is None or isinstance(bid, int):
        return bid
    if not is_bid(bid):
        return None
    if bid.endswith("%"):
        return round(current * (1 - int(bid[:-1]) / 100), 2)
    if bid.startswith("-"):
        return current - int(bid[1:])
    return float(int(bid.removesuffix(" each")) * pieces)


def counter_offer(world: World, cart: Cart, current: float, bid: Bid) -> float:
    """The merchant's answer to a bid: never below the floor, never above the current price.

    A bid at or above the floor is met half-way first and accepted when it is close; without a
    number the price gives way by one step of the list price. One below nothing, or absurdly low
    (`Haggling.least_bid`), moves nothing.
    """
    haggling: Haggling = world.merchant.haggling
    floor = min(floor_price(world, cart), current)
    step = max(1.0, total(world, cart) * haggling.step)
    wanted = bid_amount(bid, current, sum(cart.values()))
    if wanted is None:
        return max(floor, _round_up(current - step)) if haggling.max_discount else current
    if wanted >= current or wanted <= 0 or wanted < haggling.least_bid * current:
        return current
    if wanted >= floor and current - wanted <= step:
        return wanted
    return max(floor, min(current, _round_up((current + max(wanted, floor)) / 2)))


def speak_cart(world: World, cart: Cart) -> str:
    """`4 Sharp Axes and 1 Local Map`; `nothing` for an empty cart."""
    return listed([counted(world.by_id[i], n) for i, n in cart.items()]) or lines().lists["nothing"]


def speak_prices(world: World, items: Sequence[Item]) -> str:
    """`Sharp Axe for 130 gold and Local Map for 60 gold`."""
    told, currency = lines().lists["priced"].format, world.currency
    prices = (told(name=i.item_name, price=money(i.price or 0), currency=currency) for i in items)
    return listed([*prices])
