"""Checks on one turn. Validator, guard, rewards and metrics all call these and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from haggle.trade.language import DIGITS, numbers_in, patterns
from haggle.trade.ledger import Cart, floor_price, total
from haggle.trade.procedure import Procedure
from haggle.trade.response import MerchantResponse
from haggle.trade.world import World, counted

_TOLERANCE = 0.005
_DIGIT = re.compile(r"\d")


def transition_valid(procedure: Procedure, last: str, new: str) -> bool:
    """Property 1.1 of ASTP: the transition is in E."""
    return procedure.is_valid(last, new)


def critical_respected(procedure: Procedure, last: str, new: str) -> bool:
    """Property 1.2 of ASTP: a critical state is entered only after its mandatory state."""
    return not procedure.breaks_critical(last, new)


def inference_consistent(reported: str, last: str) -> bool:
    """Property 1.3 of ASTP: the reported previous state is the true one."""
    return reported == last


def items_sellable(world: World, response: MerchantResponse) -> bool:
    """SIRR's condition (SIBP 4.3): a trade answer's items are all for sale at their true price."""
    details = response.context_details
    if details is None:
        return True
    for line in details.items:
        item = world.by_id.get(line.item_id)
        if item is None or not item.for_sale or line.price is None:
            return False
        if abs(line.price - (item.price or 0)) > _TOLERANCE:
            return False
    return True


def items_in_stock(world: World, response: MerchantResponse) -> bool:
    """No quantity is below one or above the stock."""
    details = response.context_details
    return details is None or all(
        1 <= line.quantity <= (world.by_id[line.item_id].quantity or 0)
        for line in details.items
        if line.item_id in world.by_id
    )


def price_consistent(response: MerchantResponse) -> bool:
    """The total stated equals the sum of the item details in the same answer (ASTP, Table 2)."""
    details = response.context_details
    if details is None or details.original_price is None:
        return True
    expected = sum((line.price or 0) * line.quantity for line in details.items)
    return abs(details.original_price - expected) <= _TOLERANCE


def price_above_floor(world: World, response: MerchantResponse) -> bool:
    """The sale price is not below what this merchant accepts for the cart."""
    details = response.context_details
    if details is None or details.sale_price is None:
        return True
    cart = {i: n for i, n in response.cart.items() if i in world.by_id}
    return details.sale_price >= min(floor_price(world, cart), total(world, cart)) - _TOLERANCE


@lru_cache(maxsize=256)
def _of_money(currency: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of this money behind a number in words, and of an amount of it in digits."""
    unit = re.escape(currency)
    return (
        re.compile(rf"(?=\s+{unit})(?:{patterns.BEHIND_SPELLED})", re.IGNORECASE),
        re.compile(rf"({DIGITS})\s*(?:{unit})|(?:{unit})\s*({DIGITS})", re.IGNORECASE),
    )


def numbers_true(world: World, response: MerchantResponse, extra: Iterable[float] = ()) -> bool:
    """Every number spoken is one the ledger knows, so no wrong price can be heard.

    In a priced state all numbers must be totals, unit prices, line totals or quantities of this
    cart, or part of an item name. Elsewhere only amounts of money are held to that. `extra` are
    further true numbers (stock left).
    """
    details = response.context_details
    text = response.npc_dialogue
    known = {round(number, 2) for number in extra}
    priced = details is not None and details.original_price is not None
    for line in details.items if details else ():
        price = line.price or 0
        known |= {float(line.quantity), round(price, 2), round(price * line.quantity, 2)}
    if details is not None:
        known |= {
            round(p, 2) for p in (details.original_price, details.sale_price) if p is not None
        }
    spelled, amount = _of_money(world.currency)
    if spelled.search(text):
        return False
    if priced:
        spoken = numbers_in(text)
    else:
        spoken = [
            n for pair in amount.findall(text) for part in pair if part for n in numbers_in(part)
        ]
    strange = {round(number, 2) for number in spoken} - known
    return not strange or strange <= _of_names(world, text, priced)


def _of_names(world: World, text: str, priced: bool) -> set[float]:
    """Numbers that belong to goods: those in a name, and where no total is told the prices of the
    goods that a text names."""
    said, known = text.casefold(), set[float]()
    for item in world.items:
        named = item.item_name.casefold() in said
        if (named or priced) and _DIGIT.search(item.item_name):
            known |= {round(n, 2) for n in numbers_in(item.item_name)}
        if named and not priced and item.for_sale:
            known.add(round(item.price or 0, 2))
    return known


def contradicts_terms(player: str, cart: Cart, sale_price: float) -> bool:
    """Whether a player's yes names other terms than the reviewed ones (a number not on the table).

    Such a yes confirms something else, so it must be reviewed again rather than committed. An
    amount above the price is payment with a tip and contradicts nothing.
    """
    plain = re.sub(r"\b[A-Za-z]\w*\d\w*", "", player)  # "gr8" is no price
    sure = patterns.SURELY.sub("", plain)  # "100% yes" is no price
    sure = patterns.CLOCK.sub("", sure)
    known = {round(sale_price, 2), *(float(n) for n in cart.values()), float(sum(cart.values()))}
    return any(round(n, 2) not in known and n < sale_price for n in numbers_in(sure))


def review_complete(world: World, response: MerchantResponse) -> bool:
    """Whether a review says what it is a review of: every item with its quantity, and the price.

    A player who says yes to "Shall we, then?" has not been asked (ASTP's FINAL_CHECK).
    """
    details = response.context_details
    if details is None or details.sale_price is None:
        return True
    said = response.npc_dialogue.casefold()
    named = all(
        counted(world.by_id[line.item_id], line.quantity).casefold() in said
        or (line.quantity == 1 and line.item_name.casefold() in said)
        for line in details.items
        if line.item_id in world.by_id
    )
    return named and round(details.sale_price, 2) in {round(n, 2) for n in numbers_in(said)}


def failures(
    world: World,
    procedure: Procedure,
    last: str,
    response: MerchantResponse,
    extra_numbers: Iterable[float] = (),
) -> list[str]:
    """Names of the checks this answer fails, given the true tracked state before it."""
    new = response.state
    results = {
        "transition": transition_valid(procedure, last, new),
        "critical": critical_respected(procedure, last, new),
        "inference": inference_consistent(response.last_trade_context, last),
        "sellable": items_sellable(world, response),
        "stock": items_in_stock(world, response),
        "price": price_consistent(response),
        "floor": price_above_floor(world, response),
        "numbers": numbers_true(world, response, extra_numbers),
    }
    return [name for name, passed in results.items() if not passed]
