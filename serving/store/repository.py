"""The transactions: shops, sessions, and a turn with its sale."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, bindparam, delete, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from haggle.core.errors import HaggleError
from serving.store import shelves
from serving.store.database import WAIT_S, StoreError, database_url, open_database, place_of, told
from serving.store.models import (
    Definition,
    Player,
    Shop,
    Stock,
    StoredSale,
    StoredSession,
    StoredTurn,
)
from serving.store.schema import prepare
from serving.store.shelves import Change

R = TypeVar("R")
_BEGAN = time.time() - time.monotonic()
# The statements of a turn, built once: that takes longer than to run them.
_FIND = (
    select(
        StoredSession.id, StoredSession.kind, StoredSession.definition_id, StoredSession.shop_id,
        StoredSession.player_id, StoredSession.version, StoredSession.document,
        func.coalesce(Shop.revision, 0),
    )
    .join_from(StoredSession, Shop, StoredSession.shop_id == Shop.id, isouter=True)
    .where(StoredSession.id == bindparam("number"))
)  # fmt: skip
_MOVE = (
    update(StoredSession)
    .where(StoredSession.id == bindparam("number"), StoredSession.version == bindparam("before"))
    .values(version=bindparam("after"), document=bindparam("episode"), used_at=bindparam("now"))
)
_TURN, _SALE = insert(StoredTurn), insert(StoredSale)
_REVISE = update(Shop).where(Shop.id == bindparam("shop")).values(revision=Shop.revision + 1)
_TAKE = (
    update(Stock)
    .where(
        Stock.shop_id == bindparam("shop"),
        Stock.item_id == bindparam("item"),
        Stock.quantity >= bindparam("number"),
    )
    .values(quantity=Stock.quantity - bindparam("number"))
)


@dataclass(frozen=True, slots=True)
class Row:
    """A session as it is stored; `revision` is that of its shop."""

    id: str
    kind: str
    definition_id: int
    shop_id: int | None
    player_id: str | None
    version: int
    document: dict[str, Any]
    revision: int


@dataclass(frozen=True, slots=True)
class Order:
    """A sale to be made; `review` is the id of the review that it closes, `lines` are the goods as
    the receipt has them."""

    review: str
    items: Mapping[str, int]
    price: float
    lines: Sequence[Mapping[str, Any]] | None = None
    currency: str | None = None


class Conflict(HaggleError):
    """Another turn of the session came first, or the session was forgotten meanwhile."""


class NotSold(Exception):
    """A sale that the shop or the player cannot make now; nothing of the turn was stored."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Store:
    """A database of sessions. Each public method is one transaction; all of it is done or nothing.

    `database` is as `serving.store.database.database_url` takes it. Raises HaggleError where it
    cannot be opened or has other tables than these; a StoreError where it fails later.
    """

    def __init__(
        self, database: str = "", *, migrate: bool = False, wait_s: float = WAIT_S
    ) -> None:
        url = database_url(database)
        self.place = place_of(url)
        self.engine = open_database(url, wait_s)
        self._writer = self.engine.execution_options(writes=True)
        try:
            with told(self.place):
                prepare(self.engine, self.place, migrate)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the database go."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads."""
        with told(self.place), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes; an error takes all of it back."""
        with told(self.place), self._writer.begin() as connection:
            yield connection

    def _put(self, work: Callable[[Connection], R]) -> R:
        """Do a piece of work that finds or makes a row; once more where another server made it at
        the same moment."""
        try:
            with self.writing() as connection:
                return work(connection)
        except StoreError as error:
            if not isinstance(error.__cause__, IntegrityError):
                raise
        with self.writing() as connection:
            return work(connection)

    # --- shops and players

    def put_shop(
        self, document: Mapping[str, Any], stock: Mapping[str, int], name: str | None = None,
        restock: bool = False, change: Change = "any",
    ) -> int:  # fmt: skip
        """Make a shop known; its id. One with a name is shared and keeps what it has left; where
        its definition has another number of an item than before, that number counts. With
        `restock` all of them do. Raises NameTaken or NoShop as `change` says."""
        return self._put(lambda c: shelves.put(c, document, stock, name, restock, change))

    def shop(self, shop_id: int) -> tuple[int, int]:
        """The definition and the revision of a shop."""
        with self.reading() as connection:
            row = connection.execute(
                select(Shop.definition_id, Shop.revision).where(Shop.id == shop_id)
            ).one()
            return row.definition_id, row.revision

    def shops(self) -> dict[str, int]:
        """The ids of the shops that have a name, oldest first."""
        query = select(Shop.name, Shop.id).where(Shop.name.is_not(None)).order_by(Shop.id)
        with self.reading() as connection:
            return {row.name: row.id for row in connection.execute(query)}

    def restock(self, shop_id: int) -> None:
        """Fill the shelves as the shop's definition says."""
        with self.writing() as connection:
            shelves.fill_shelves(connection, shop_id)

    def stock(self, shop_id: int) -> dict[str, int]:
        """What a shop has left, by item."""
        with self.reading() as connection:
            return shelves.stock_of(connection, shop_id)

    def put_definition(self, kind: str, document: Mapping[str, Any]) -> int:
        """Keep a definition; its id, the same for the same definition."""
        return self._put(lambda c: shelves.put_definition(c, kind, document))

    def definition(self, definition_id: int) -> dict[str, Any]:
        """A definition that is kept."""
        with self.reading() as connection:
            where = Definition.id == definition_id
            return connection.execute(select(Definition.document).where(where)).scalar_one()

    def put_player(self, player: str, purse: float | None = None) -> None:
        """Make a player known, or fill the purse anew; None where the game keeps the money."""
        amount = None if purse is None else round(purse * 100)

        def work(connection: Connection) -> None:
            known = update(Player).where(Player.id == player).values(purse=amount)
            if not connection.execute(known).rowcount:
                connection.execute(insert(Player).values(id=player, purse=amount))

        self._put(work)

    def purse(self, player: str) -> float | None:
        """What a player has to spend; None where the game keeps that, or nobody has that name."""
        with self.reading() as connection:
            amount = connection.scalar(select(Player.purse).where(Player.id == player))
            return None if amount is None else amount / 100

    # --- sessions

    def open(
        self, kind: str, definition_id: int, document: Mapping[str, Any], *,
        shop_id: int | None = None, player_id: str | None = None,
    ) -> str:  # fmt: skip
        """Store a new session, and its player where nobody knows that one yet; its id."""
        number = secrets.token_urlsafe(16)

        def work(connection: Connection) -> str:
            if player_id is not None:
                known = select(Player.id).where(Player.id == player_id)
                if connection.scalar(known) is None:
                    connection.execute(insert(Player).values(id=player_id, purse=None))
            connection.execute(
                insert(StoredSession).values(
                    id=number, kind=kind, definition_id=definition_id, shop_id=shop_id,
                    player_id=player_id, version=0, document=document, opened_at=time.time(),
                    used_at=steady_time(),
                )
            )  # fmt: skip
            return number

        return self._put(work)

    def find(self, number: str) -> Row | None:
        """A session; None where there is none."""
        if not _may_be_an_id(number):
            return None
        with self.reading() as connection:
            found = connection.execute(_FIND, {"number": number}).one_or_none()
            return Row(*found) if found else None

    def touch(self, number: str) -> None:
        """Note that a session is in use."""
        with self.writing() as connection:
            where = StoredSession.id == number
            connection.execute(update(StoredSession).where(where).values(used_at=steady_time()))

    def count(self) -> int:
        """How many sessions there are."""
        with self.reading() as connection:
            return connection.scalar(select(func.count()).select_from(StoredSession)) or 0

    def forget(self, numbers: Collection[str]) -> int:
        """Delete sessions with their turns, and shops that were theirs alone; sales stay. Returns
        how many there were."""
        with self.writing() as connection:
            return _forget(connection, numbers)

    def unused(self, before: float, beyond: int, busy: Collection[str]) -> list[str]:
        """The sessions, not those that are `busy`, that were used last before a time; and of the
        others those used longest ago, so that `beyond` are left of all."""
        idle = StoredSession.used_at < before
        free = StoredSession.id.not_in(busy)
        ids = select(StoredSession.id).order_by(StoredSession.used_at)
        with self.reading() as connection:
            found = list(connection.scalars(ids.where(idle, free)))
            left = connection.scalar(select(func.count()).select_from(StoredSession)) or 0
            more = left - len(found) - beyond
            if more > 0:
                found += connection.scalars(ids.where(~idle, free).limit(more))
            return found

    # --- turns

    def commit(
        self,
        row: Row,
        document: Mapping[str, Any],
        record: Mapping[str, Any],
        order: Order | None = None,
        key: str | None = None,
        answer: Mapping[str, Any] | None = None,
    ) -> None:
        """Store a turn, the session after it, and the sale that it made; with a key and an answer,
        by which it is told again.

        `row` is the session as it was read before the turn. Raises Conflict when it has changed
        since or has a turn of this key, NotSold when stock or purse do not suffice.
        """
        now = time.time()
        with self.writing() as connection:
            moved = {
                "number": row.id, "before": row.version, "after": row.version + 1,
                "episode": document, "now": steady_time(),
            }  # fmt: skip
            if not connection.execute(_MOVE, moved).rowcount:
                raise Conflict(
                    "another turn of this session came first",
                    where=row.id,
                    hint="look where it stands, then say the next line",
                )
            turn = {
                "session_id": row.id, "number": row.version + 1, "record": record, "at": now,
                "key": key, "answer": answer,
            }  # fmt: skip
            try:
                connection.execute(_TURN, turn)
            except IntegrityError as error:
                raise Conflict(
                    "a turn of this key was made meanwhile", where=key or row.id,
                    hint="send it again: it is answered with that turn",
                ) from error  # fmt: skip
            if order is not None:
                _sell(connection, row, order, now)

    def turns(self, number: str) -> list[dict[str, Any]]:
        """The records of a session's turns, first one first."""
        where = StoredTurn.session_id == number
        query = select(StoredTurn.record).where(where).order_by(StoredTurn.number)
        with self.reading() as connection:
            return list(connection.scalars(query))

    def answer(
        self, number: str, *, key: str = "", review: str = ""
    ) -> tuple[str, dict[str, Any]] | None:
        """What was said in the turn of a session that has this key, or that closed this review,
        and what it was answered with; None where there is none, or its answer was not kept."""
        if not all(map(_may_be_an_id, (number, key, review))):
            return None
        sale = select(StoredSale.turn).filter_by(session_id=number, review=review)
        which = StoredTurn.key == key if key else StoredTurn.number == sale.scalar_subquery()
        query = select(StoredTurn.record, StoredTurn.answer).filter_by(session_id=number)
        with self.reading() as connection:
            found = connection.execute(query.where(which)).one_or_none()
            return (found.record["player"], found.answer) if found and found.answer else None

    def sales(self, shop_id: int | None = None, session_id: str | None = None) -> list[StoredSale]:
        """The sales of a shop, of a session, or all, first one first."""
        query = select(StoredSale).order_by(StoredSale.id)
        if shop_id is not None:
            query = query.where(StoredSale.shop_id == shop_id)
        if session_id is not None:
            query = query.where(StoredSale.session_id == session_id)
        with self.reading() as connection:
            return [StoredSale(**row._mapping) for row in connection.execute(query)]


def _may_be_an_id(text: str) -> bool:
    """Whether a text that a caller sent may be an id; PostgreSQL does not take every text."""
    return text.isascii() and text.isprintable()


def steady_time() -> float:
    """The time as the clock said it when this process began, and what has passed since: a clock
    that is set anew makes no session look unused."""
    return _BEGAN + time.monotonic()


def _sell(connection: Connection, row: Row, order: Order, now: float) -> None:
    """Take goods from the shelf and money from the purse. Two sales of a shop wait for each other
    at its revision. A second sale of one review breaks off as a Conflict."""
    sale = {
        "session_id": row.id, "review": order.review, "turn": row.version + 1,
        "shop_id": row.shop_id, "player_id": row.player_id, "items": dict(order.items),
        "price": order.price, "at": now, "lines": order.lines, "currency": order.currency,
    }  # fmt: skip
    try:
        connection.execute(_SALE, sale)
    except IntegrityError as error:
        raise Conflict(
            "this review was sold already", where=order.review, hint="let it be reviewed again"
        ) from error
    connection.execute(_REVISE, {"shop": row.shop_id})
    for item_id, number in sorted(order.items.items()):
        taken = {"shop": row.shop_id, "item": item_id, "number": number}
        if not connection.execute(_TAKE, taken).rowcount:
            raise NotSold("stock")
    if row.player_id is not None:
        due = round(order.price * 100)
        able = (Player.purse.is_(None)) | (Player.purse >= due)
        paid = update(Player).where(Player.id == row.player_id, able)
        if not connection.execute(paid.values(purse=Player.purse - due)).rowcount:
            raise NotSold("purse")


def _forget(connection: Connection, numbers: Collection[str]) -> int:
    chosen = StoredSession.id.in_(numbers)
    query = select(StoredSession.shop_id, StoredSession.definition_id).where(chosen)
    rows = connection.execute(query).all()
    count = connection.execute(delete(StoredSession).where(chosen)).rowcount
    shops = {row.shop_id for row in rows}
    connection.execute(delete(Shop).where(Shop.id.in_(shops), Shop.name.is_(None)))
    definitions = {row.definition_id for row in rows if row.shop_id is not None}
    unused = ~exists().where(Shop.definition_id == Definition.id)
    unused &= ~exists().where(StoredSession.definition_id == Definition.id)
    connection.execute(delete(Definition).where(Definition.id.in_(definitions), unused))
    return count
