"""Characters a game can trust, from small models on the player's own machine.

    import haggle

    shop = haggle.open_shop("my_shop.yaml")          # the shipped model, guard `state`
    turn = shop.say("good day! two lanterns, please")
    print(turn.says, turn.state, shop.cart, shop.sales)

Importing it is light: a model is loaded when a shop is opened.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from haggle.core.engine import Engine
    from haggle.trade.records import TurnRecord
    from haggle.trade.session import Sale

__version__ = "0.1.0"
__all__ = ["Shop", "open_shop"]


def open_shop(
    shop: str | Path,
    *,
    guard: str = "state",
    engine: str | Engine = "llamacpp",
    confirmation: str | None = None,
    embeddings: bool | Literal["auto"] = "auto",
) -> Shop:
    """A merchant in a shop, and one customer before the counter.

    `shop` is a YAML, JSON or CSV file, or the name of a shop that Haggle brings; `engine` a serve
    config (its name or file), or an engine that other shops use as well. With `embeddings`
    questions are answered, and nicknames of goods guessed, by their meaning (needs the extra of
    that name; `"auto"`: only where it is installed). Raises HaggleError for a file with a mistake,
    an unknown guard, or a model that is not there.
    """
    from haggle.language.english.linker import load_english
    from haggle.trade.merchant import Merchant, check_guard
    from haggle.trade.methods import DEFAULT_METHOD, get_method
    from haggle.trade.session import Session
    from haggle.trade.world_io import named_world, with_confirmation
    from serving.engines import load_engine, method_for, read_engine_config

    level = check_guard(guard)
    world = with_confirmation(named_world(str(shop)), confirmation)
    linker = load_english(embeddings)
    own = read_engine_config(engine) if isinstance(engine, str) else None
    loaded: Any = engine if own is None else load_engine(own)
    method, doubt = DEFAULT_METHOD, 0.0
    if config := own or getattr(loaded, "config", None):
        method, doubt = method_for(config), config.ask_below
    session = Session(world, method=get_method(method), linker=linker)
    merchant = Merchant(loaded, level, ask_below=doubt)
    merchant.domain.read_ahead(session)
    merchant.warm(session)
    return Shop(session, merchant, owns=own is not None)


class Shop:
    """One conversation with a merchant: its cart, price and sales, all kept by code."""

    def __init__(self, session: Any, merchant: Any, *, owns: bool = True) -> None:
        self.session, self.merchant = session, merchant
        self._owns = owns

    def say(self, line: str) -> TurnRecord:
        """The merchant's answer to a line: `says` is what to show, `state` where the trade is."""
        turn: TurnRecord = self.merchant.reply(self.session, line)
        return turn

    def confirm(self) -> TurnRecord:
        """Buy what was reviewed, whatever was said. Raises HaggleError without a review."""
        review = self.session.review
        turn: TurnRecord = self.session.confirm(review.id if review else "")
        return turn

    @property
    def cart(self) -> dict[str, int]:
        """What lies on the counter: pieces by the name of the item."""
        items = self.session.world.by_id
        return {items[item_id].item_name: number for item_id, number in self.session.cart.items()}

    @property
    def price(self) -> float | None:
        """The price of the cart as agreed so far; None without a cart."""
        price: float | None = self.session.sale_price
        return price

    @property
    def sales(self) -> list[Sale]:
        """The sales made, by item id."""
        return list(self.session.sales)

    @property
    def ended(self) -> bool:
        """Whether the merchant has closed the conversation."""
        return bool(self.session.ended)

    def close(self) -> None:
        """Free the engine, where this shop loaded it."""
        if self._owns:
            self.merchant.engine.close()

    def __enter__(self) -> Shop:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
