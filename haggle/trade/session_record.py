"""A session as a record: kept by a server or a game, and rebuilt without a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haggle.core.config import Record, parse
from haggle.core.episode import Exchange, check_version
from haggle.language.reading import Linker
from haggle.trade.ledger import Cart, Deal
from haggle.trade.methods import get_method
from haggle.trade.procedure import load_procedure
from haggle.trade.session import Review, Sale, Session, with_stock
from haggle.trade.wire import codec, encode_compact
from haggle.trade.world import World

VERSION = 1


class SessionRecord(Record):
    """What a session holds besides its shop. `opening` and `stock` are the pieces of what stands in
    other numbers than in the shop's definition: at first, and now. `pending` is in the compact
    format."""

    version: int = VERSION
    procedure: str
    method: str
    last: str
    state: str
    last_line: str
    exchanges: tuple[Exchange, ...]
    opening: dict[str, int]
    stock: dict[str, int]
    cart: Cart
    sale_price: float | None
    deal: Deal | None
    shown: tuple[str, ...]
    sales: tuple[Sale, ...]
    review: Review | None
    pending: str = ""
    withheld: bool = False


def to_record(session: Session, shop: World) -> dict[str, Any]:
    """The session as plain data. `shop` is the definition it is kept beside."""
    pending = session.pending
    record = SessionRecord(
        procedure=session.procedure.name,
        method=session.method.name,
        last=session.last,
        state=session.state,
        last_line=session.last_line,
        exchanges=session.exchanges,
        opening=_other_stock(session.opening, shop),
        stock=_other_stock(session.world, shop),
        cart=session.cart,
        sale_price=session.sale_price,
        deal=session.deal,
        shown=session.shown,
        sales=tuple(session.sales),
        review=session.review,
        pending=encode_compact(pending, session.procedure) if pending else "",
        withheld=session.withheld,
    )
    return record.model_dump(mode="json")


def from_record(data: Mapping[str, Any], shop: World, linker: Linker | None = None) -> Session:
    """The session that a record is of, in the same shop. Raises HaggleError for a record that is
    none, is of another version, or names what this Haggle does not have."""
    check_version(data, VERSION, "session")
    record = parse(data, SessionRecord, "session")
    procedure = load_procedure(record.procedure)
    session = Session(
        with_stock(shop, record.opening), procedure, get_method(record.method), linker
    )
    session.world = with_stock(shop, record.stock)
    session.last, session.state = record.last, record.state
    session.last_line, session.exchanges = record.last_line, record.exchanges
    session.cart, session.sale_price = record.cart, record.sale_price
    session.deal, session.shown = record.deal, record.shown
    session.sales, session.review = list(record.sales), record.review
    session.withheld = record.withheld
    if record.pending:
        session.pending = codec("compact").decode(record.pending, procedure)
    return session


def _other_stock(world: World, shop: World) -> dict[str, int]:
    defined = shop.by_id
    return {
        item.item_id: item.quantity
        for item in world.items
        if item.quantity is not None and item.quantity != defined[item.item_id].quantity
    }
