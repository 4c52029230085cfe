"""What a player means, apart from how it is said: the hidden truth that makes labels exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from haggle.wire import Bid, Quantity

Kind = Literal[
    "greet", "browse", "ask_item", "ask_price", "recommend", "order", "clear", "haggle", "agree",
    "hesitate", "smalltalk", "attack", "leave", "insult",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Act:
    """A player's hidden act. `name` is the phrasebook's act, `kind` what it asks of the merchant.

    `cart` is the full cart the player wants after an order, item names as in the inventory and
    `?words` for what is not listed; `items` are names asked about or fitting a purpose; `bid` is
    what a haggling player proposes.
    """

    name: str
    kind: Kind
    cart: tuple[tuple[str, Quantity], ...] = ()
    items: tuple[str, ...] = ()
    bid: Bid = None
    changed: bool = False
