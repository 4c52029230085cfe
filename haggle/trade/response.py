"""The answer of a merchant as a game receives it: the papers' fields, resolved by code."""

from __future__ import annotations

from collections.abc import Mapping

from haggle.core.config import Record
from haggle.trade.world import World


class ItemLine(Record):
    """One item of the cart, or one item shown. `price` is per piece."""

    item_id: str
    item_name: str
    quantity: int
    price: float | None


class ContextDetails(Record):
    """The trade part of an answer (ASTP Listing 5, context_details). Prices are totals."""

    context_subtype: str
    items: list[ItemLine] = []
    original_price: float | None = None
    sale_price: float | None = None


class MerchantResponse(Record):
    """One answer (ASTP Listing 5, <RESPONSE_FORMAT>) after post-processing."""

    last_trade_context: str = ""
    context_reason: str = ""
    context_type: str
    context_details: ContextDetails | None = None
    npc_thoughts: str = ""
    npc_action: str = ""
    npc_dialogue: str

    @property
    def state(self) -> str:
        """The flat state label: the subtype in a trade, else the context type."""
        return self.context_details.context_subtype if self.context_details else self.context_type

    @property
    def cart(self) -> dict[str, int]:
        """Quantities by item id of the items carried."""
        return (
            {i.item_id: i.quantity for i in self.context_details.items}
            if self.context_details
            else {}
        )


def item_lines(world: World, cart: Mapping[str, int]) -> list[ItemLine]:
    """The lines of a cart, or of a sale. What the shop no longer has is named by its id."""
    found = []
    for item_id, number in cart.items():
        item = world.by_id.get(item_id)
        name, price = (item.item_name, item.price) if item else (item_id, None)
        found.append(ItemLine(item_id=item_id, item_name=name, quantity=number, price=price))
    return found
