"""Shops, their definitions and what they have left: the statements, each within a transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

from sqlalchemy import Connection, delete, insert, select, update

from haggle.core.errors import HaggleError
from serving.store.models import Definition, Shop, Stock

# What may happen to a shop with this name. `file`: it is read from a file, and what was edited
# since stays while the file is the same. `new`: there must be none. `edit`: there must be one.
Change = Literal["any", "file", "new", "edit"]


class NameTaken(HaggleError):
    """There is a shop of this name already."""


class NoShop(HaggleError):
    """There is no shop of this name."""


def put(
    connection: Connection, document: Mapping[str, Any], stock: Mapping[str, int],
    name: str | None, restock: bool, change: Change,
) -> int:  # fmt: skip
    """Make a shop known, or give it another definition; its id."""
    source = digest_of("trade", document) if change == "file" else None
    wanted = select(Shop.id, Shop.definition_id, Shop.source).where(Shop.name == name)
    known = None
    if name is not None:
        known = connection.execute(wanted.with_for_update()).one_or_none()
    if known is not None and change == "new":
        raise NameTaken(
            f"there is a shop {name!r} already", where="name",
            hint="choose another name, or change that one with PUT",
        )  # fmt: skip
    if known is None:
        if change == "edit":
            raise NoShop(f"no shop is called {name!r}", where="name", hint="make it with POST")
        definition_id = put_definition(connection, "trade", document)
        new = insert(Shop).values(name=name, definition_id=definition_id, revision=0, source=source)
        shop_id = connection.execute(new.returning(Shop.id)).scalar_one()
        _fill(connection, shop_id, stock)
        return shop_id
    if source is not None and known.source == source:
        if restock:
            fill_shelves(connection, known.id)
        return known.id
    definition_id = put_definition(connection, "trade", document)
    if source is not None:
        of_file = update(Shop).where(Shop.id == known.id).values(source=source)
        connection.execute(of_file)
    if known.definition_id != definition_id or restock:
        _redefine(connection, known.id, known.definition_id, definition_id, stock, restock)
    return known.id


def _redefine(
    connection: Connection, shop_id: int, old: int, new: int, stock: Mapping[str, int],
    restock: bool,
) -> None:  # fmt: skip
    before = {} if restock else _defined_stock(connection, old)
    left = stock_of(connection, shop_id)
    now = {
        i: left[i] if i in left and before.get(i) == number else number
        for i, number in stock.items()
    }
    connection.execute(delete(Stock).where(Stock.shop_id == shop_id))
    _fill(connection, shop_id, now)
    changed = update(Shop).where(Shop.id == shop_id)
    connection.execute(changed.values(definition_id=new, revision=Shop.revision + 1))


def fill_shelves(connection: Connection, shop_id: int) -> None:
    """Fill the shelves as the shop's definition says."""
    where = Shop.id == shop_id
    definition_id = connection.execute(
        select(Shop.definition_id).where(where).with_for_update()
    ).scalar_one()
    defined = _defined_stock(connection, definition_id)
    connection.execute(delete(Stock).where(Stock.shop_id == shop_id))
    _fill(connection, shop_id, {i: n for i, n in defined.items() if n is not None})
    connection.execute(update(Shop).where(where).values(revision=Shop.revision + 1))


def _fill(connection: Connection, shop_id: int, stock: Mapping[str, int]) -> None:
    rows = [{"shop_id": shop_id, "item_id": i, "quantity": n} for i, n in stock.items()]
    connection.execute(insert(Stock), rows)


def stock_of(connection: Connection, shop_id: int) -> dict[str, int]:
    """What a shop has left, by item."""
    query = select(Stock.item_id, Stock.quantity).where(Stock.shop_id == shop_id)
    return {row.item_id: row.quantity for row in connection.execute(query)}


def _defined_stock(connection: Connection, definition_id: int) -> dict[str, int | None]:
    where = Definition.id == definition_id
    document = connection.execute(select(Definition.document).where(where)).scalar_one()
    return {item["item_id"]: item["quantity"] for item in document["items"]}


def digest_of(kind: str, document: Mapping[str, Any]) -> str:
    """What tells one definition from another."""
    text = json.dumps(document, sort_keys=True)
    return sha256(f"{kind}\0{text}".encode()).hexdigest()


def put_definition(connection: Connection, kind: str, document: Mapping[str, Any]) -> int:
    """Keep a definition; its id, the same for the same definition."""
    digest = digest_of(kind, document)
    found = connection.scalar(select(Definition.id).where(Definition.digest == digest))
    if found is not None:
        return found
    new = insert(Definition).values(digest=digest, kind=kind, document=document)
    return connection.execute(new.returning(Definition.id)).scalar_one()
