"""One customer at one counter: the ledger (cart, price, tracked state) and what was said."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from haggle.core.engine import Message
from haggle.core.episode import Episode, latest
from haggle.core.text import clean_utterance, player_message, prompts
from haggle.language.reading import Linker, Reading
from haggle.trade.language import DefaultLinker
from haggle.trade.ledger import Cart, Deal, Note, price_under, total
from haggle.trade.methods import DEFAULT_METHOD, Method, get_method
from haggle.trade.procedure import Procedure, load_procedure
from haggle.trade.prompting import (
    PROMPTS,
    ledger_note,
    linked_line,
    system_text,
)
from haggle.trade.response import MerchantResponse
from haggle.trade.wire import Codec, Proposal
from haggle.trade.world import World

if TYPE_CHECKING:
    from haggle.trade.records import TurnRecord

MAX_EXCHANGES = 12


@dataclass(frozen=True, slots=True)
class Sale:
    """A committed sale. `review` is the id of the review that it closed, "" without one."""

    items: Cart
    price: float
    review: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """Terms that were read out, to be confirmed. A new review has a new id."""

    id: str
    items: Cart
    price: float


class Session(Episode):
    """A dialogue at a counter. `cart` and `sale_price` are the ledger, `review` the terms on the
    table.

    `pending` is what a yes to the merchant's last question carries out. `sale_price` is the total
    agreed so far, None without a cart; `deal` is what the player last haggled it down to, and for
    which goods; `shown` are the names shown last. Sold stock leaves the world. `opening` is the
    world as it was at first. `missed` is to be told in this turn: what others bought meanwhile.
    `withheld`: the last answer to a review was not clear enough to sell.
    """

    procedure: Procedure

    def __init__(
        self,
        world: World,
        procedure: Procedure | None = None,
        method: Method | None = None,
        linker: Linker | None = None,
    ) -> None:
        super().__init__(procedure or load_procedure())
        self.world = self.opening = world
        self.method = method or get_method(DEFAULT_METHOD)
        self.linker = linker or DefaultLinker()
        self.cart: Cart = {}
        self.sale_price: float | None = None
        self.deal: Deal | None = None
        self.shown: tuple[str, ...] = ()
        self.sales: list[Sale] = []
        self.review: Review | None = None
        self.withheld = False
        self.pending: Proposal | None = None
        self.missed: tuple[Note, ...] = ()
        self._rendered: tuple[World, str] | None = None
        self._readings: dict[object, Reading] = {}

    @property
    def codec(self) -> Codec:
        """The format of this session's answers."""
        return self.method.codec

    @property
    def system(self) -> str:
        """The system message.

        The compact one names no stock, so it stays that of the opening and prefix caches hold; the
        full one lists quantities and follows the world.
        """
        world = self.world if self.codec.one_message else self.opening
        if self._rendered is None or self._rendered[0] is not world:
            self._rendered = (world, system_text(world, self.procedure, self.method))
        return self._rendered[1]

    @property
    def note(self) -> str:
        """The ledger as the next player line will be preceded by it."""
        return ledger_note(self.world, self.cart, self.sale_price)

    @property
    def review_is_fresh(self) -> bool:
        """Whether the review on the table is what the merchant said last, and holds still."""
        return self.review_holds and self.procedure.is_review(self.state)

    @property
    def has_priced(self) -> bool:
        """Whether what the merchant said last was a price of the order."""
        state = self.procedure.states.get(self.state)
        return state is not None and state.priced

    @property
    def asked_again(self) -> bool:
        """Whether a first answer to the review on the table was not clear, and the merchant has
        asked once more."""
        return self.review_is_fresh and self.withheld

    @property
    def review_holds(self) -> bool:
        """Whether cart and price are still those of the review on the table."""
        review = self.review
        return review is not None and (review.items, review.price) == (self.cart, self.sale_price)

    def legal_states(self) -> list[str]:
        """States the next answer may enter."""
        return self.procedure.legal(self.last, bool(self.cart))

    def messages(
        self, utterance: str | None = None, limit: int | None = MAX_EXCHANGES
    ) -> tuple[Message, ...]:
        """Chat messages so far, ending with `utterance` when one is given.

        Of a dialogue longer than `limit` exchanges the oldest are left out, several at a time; the
        system message never is.
        """
        recent = latest(self.exchanges, limit)
        if self.codec.one_message:
            template = prompts(PROMPTS).get_template("full_history.jinja")
            player = clean_utterance(utterance or "")
            text = template.render(exchanges=recent, player=player).strip()
            return Message("system", self.system), Message("user", text)
        messages = [Message("system", self.system)]
        for exchange in recent:
            messages += exchange.messages()
        if utterance is not None:
            line = player_message(self.note, self.linked_line(utterance))
            messages.append(Message("user", line))
        return tuple(messages)

    def read(self, utterance: str) -> Reading:
        """What a player's line, or a part of it, refers to now; worked out once a turn."""
        shown = self.in_view()
        key = utterance, tuple(self.cart), shown, self.world.catalogue, self.linker
        if key not in self._readings:
            self._readings[key] = self.linker.read(utterance, self.world.view(self.cart, shown))
        return self._readings[key]

    def linked_line(self, utterance: str) -> str:
        """A player's line as the model reads it: cleaned, and linked where the method links."""
        return (
            linked_line(self.read(utterance)) if self.method.links else clean_utterance(utterance)
        )

    def named(self, utterance: str, *, sure: bool = True) -> frozenset[str]:
        """Ids of the items that a line names beyond doubt; without `sure`, also may name."""
        return self.read(utterance).named(sure=sure)

    def uncountable(self, utterance: str) -> frozenset[str]:
        """Ids of the items that a line names with numbers of pieces that nobody can buy."""
        return self.read(utterance).uncountable()

    def in_view(self) -> tuple[str, ...]:
        """The names that `the second one` counts: what was just shown, else what is in the cart."""
        just_shown = self.procedure.states.get(self.state)
        if self.cart and not (just_shown and just_shown.payload == "show"):
            return tuple(self.world.by_id[i].item_name for i in self.cart)
        return self.shown

    def settle(self, new: str, cart: Cart, sale_price: float | None) -> None:
        """Move the ledger on to state `new`; a commit turns the cart into a sale."""
        state = self.procedure.state(new)
        self.cart = {i: n for i, n in cart.items() if i in self.world.by_id}
        self.sale_price = sale_price
        if state.clears:
            if state.needs_cart and self.cart:
                price = total(self.world, self.cart) if sale_price is None else sale_price
                closed = self.review.id if self.review else ""
                self.sales = [*self.sales, Sale(dict(self.cart), price, closed)]
                self.world = without_stock(self.world, self.cart)
            self.cart = {}
        if not self.cart:
            self.sale_price = self.deal = None
        else:
            self._price(price_under(self.world, self.cart, self.deal))
        self.last = self.procedure.track(self.last, new)
        self.state = new
        self.missed = ()
        self.withheld = False
        self._readings = {}
        self._lay_review()

    def _price(self, due: float) -> None:
        """Any other price than the one due under the last deal is a deal of its own."""
        if self.sale_price is None:
            self.sale_price = due
        elif self.sale_price != due:
            self.deal = Deal(dict(self.cart), self.sale_price)

    def _lay_review(self) -> None:
        """A review puts its terms on the table; they lie there until cart or price change."""
        price = self.sale_price
        if price is not None and self.procedure.is_review(self.state):
            self.review = Review(secrets.token_urlsafe(6), dict(self.cart), price)
        elif self.review and (self.cart, price) != (self.review.items, self.review.price):
            self.review = None

    def confirm(self, review_id: str) -> TurnRecord:
        """Close the sale of the review on the table: the game's own call, whatever was said.

        Raises HaggleError when there is no such review: none was made, it was turned down, its id
        is another one's, or the cart has changed since.
        """
        from haggle.trade.confirm import confirmed

        return confirmed(self, review_id)


def without_stock(world: World, sold: Cart) -> World:
    """The world after `sold` left the shelves; what is sold out is no longer for sale."""
    left = {i: max(0, (world.by_id[i].quantity or 0) - n) for i, n in sold.items()}
    return with_stock(world, left)


def with_stock(world: World, left: Mapping[str, int]) -> World:
    """The world with other numbers of some goods on its shelves; itself where none differs."""
    items = [
        item.model_copy(update={"quantity": left[item.item_id]})
        if left.get(item.item_id, item.quantity) != item.quantity
        else item
        for item in world.items
    ]
    if all(new is old for new, old in zip(items, world.items, strict=True)):
        return world
    return World.model_construct(
        name=world.name,
        merchant=world.merchant,
        currency=world.currency,
        situation=world.situation,
        confirmation=world.confirmation,
        items=items,
    )


def decision_text(session: Session, proposal: Proposal, response: MerchantResponse) -> str:
    """An answer as later turns will see it, in the session's format: without its line where that
    comes after the outcome."""
    reports = 4 in session.method.elements
    return session.codec.encode(proposal, session.procedure, response, reports)
