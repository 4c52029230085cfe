"""Render what a model reads: system text, ledger note and player line, per wire format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from haggle.core.text import prompts
from haggle.grammar.json_text import to_json
from haggle.language.reading import Mention, Reading
from haggle.trade.ledger import Cart
from haggle.trade.methods import Method
from haggle.trade.procedure import Procedure
from haggle.trade.wire import UNLISTED
from haggle.trade.world import World, money, plain_number

PROMPTS = Path(__file__).parent / "prompts"


def linked_line(reading: Reading) -> str:
    """A line with what its words refer to marked behind them.

        swap the axe for two dozen heal pots
        swap the axe {Sharp Axe} for two dozen heal pots {Healing Potion x24}

    Marks are suggestions: `{A / B}` says that words fit two or three names, `{?A}` that A is known
    but not for sale or named together with a word of something else; words that fit nothing, or
    more than three names, stay bare. A number that counts nothing and needs reading has a mark of
    its own, `{40}`; `{A x?}` has a number that nobody can buy, such as minus three.
    """
    marks = [(mention.end, _mark(mention)) for mention in reading.mentions]
    marks += [(number.end, number.digits) for number in reading.numbers if number.digits]
    pieces, at = [], 0
    for end, mark in sorted(marks, key=lambda mark: mark[0]):
        pieces += [reading.line[at:end], f" {{{mark}}}"]
        at = end
    return "".join(pieces) + reading.line[at:]


def _mark(mention: Mention) -> str:
    names = [("" if thing.for_sale else UNLISTED) + thing.name for thing in mention.candidates]
    told = " / ".join(names) or UNLISTED + mention.foreign
    if mention.uncountable:
        return f"{told} x?"
    return told if mention.quantity is None else f"{told} x{mention.quantity}"


def ledger_note(world: World, cart: Cart, sale_price: float | None) -> str:
    """The ledger as the compact prompt states it before each player line."""
    if not cart:
        return "cart []"
    lines = to_json([[world.by_id[i].item_name, n] for i, n in cart.items()])
    return f"cart {lines} price {money(sale_price or 0)}"


def noted_cart(message: str) -> dict[str, int]:
    """The cart that the ledger note of a user message states, by the items' names."""
    note = message.partition("\n")[0]
    if not note.startswith("cart ["):
        return {}
    try:
        lines, _ = json.JSONDecoder().raw_decode(note.removeprefix("cart "))
        return {str(name): int(number) for name, number in lines}
    except (ValueError, TypeError):
        return {}


def _context(world: World, procedure: Procedure, method: Method) -> dict[str, Any]:
    return {
        "world": world,
        "merchant": world.merchant,
        "situation": world.situation,
        "currency": world.currency,
        "inventory": world.inventory,
        "procedure": procedure,
        "elements": method.elements,
        "placeholders": method.placeholders,
        "think": method.think,
        "money": money,
        "game_items": json.dumps(
            [{"item_id": i.item_id, "item_name": i.item_name} for i in world.items],
            ensure_ascii=False,
        ),
        "merchant_inventory": json.dumps(
            [
                {
                    "item_id": i.item_id,
                    "item_name": i.item_name,
                    "quantity": i.quantity,
                    "price": plain_number(i.price or 0),
                }
                for i in world.inventory
            ],
            ensure_ascii=False,
        ),
    }


def system_text(world: World, procedure: Procedure, method: Method) -> str:
    """The system message: shop, rules and response format (ASTP, Prompt Architecture).

    World texts cannot hold chat markup (`World` refuses it), so nothing is changed here.
    """
    template = prompts(PROMPTS).get_template(method.codec.template)
    return template.render(_context(world, procedure, method)).strip()
