"""Conversations that a store keeps: opened, read for a turn, and stored with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from haggle.core.config import Record, parse
from haggle.core.episode import Episode
from haggle.core.errors import HaggleError
from haggle.core.turn import Turn
from haggle.language.reading import Linker
from haggle.sop import talk_record
from haggle.sop.domain import Talk
from haggle.sop.task import Task
from haggle.trade import session_record
from haggle.trade.methods import Method
from haggle.trade.response import item_lines
from haggle.trade.session import Session, with_stock
from haggle.trade.shared_stock import refused, sale_problem, take_notice
from haggle.trade.world import World
from serving.store.repository import Conflict, NotSold, Order, Row, Store
from serving.store.shelves import Change

Tell = Callable[[Any, Any], Record]  # of an episode after a turn and the turn, its answer
KEPT = 256  # definitions and shops that stay in memory, read once


@dataclass(frozen=True, slots=True)
class Kind:
    """How a kind of episode is stored: what it takes place in, and the domain's own functions."""

    setting: type[Record]
    to_record: Callable[[Any, Any], dict[str, Any]]
    from_record: Callable[[Mapping[str, Any], Any, Linker | None], Episode]


KINDS = {
    "trade": Kind(World, session_record.to_record, session_record.from_record),
    "sop": Kind(
        Task,
        lambda talk, _task: talk_record.to_record(talk),
        lambda data, task, _linker: talk_record.from_record(data, task),
    ),
}


@dataclass
class Held:
    """An episode as it was read for a turn. `before` is where it stood then."""

    row: Row
    setting: Any
    episode: Any
    before: Any


class Episodes:
    """The conversations of a store. `linker` reads what players type in shops."""

    def __init__(self, store: Store, linker: Linker | None = None) -> None:
        self.store, self._linker = store, linker
        self._setting = lru_cache(KEPT)(self._read_setting)
        self._present = lru_cache(KEPT)(self._read_present)

    def put_shop(
        self, world: World, *, shared: bool, restock: bool = False, change: Change = "any"
    ) -> int:
        """Make a shop known; its id. A shared one is known by its name, and its sessions share
        what it has left; another is that of the session that is opened in it."""
        stock = {i.item_id: i.quantity for i in world.items if i.quantity is not None}
        name = world.name if shared else None
        return self.store.put_shop(world.model_dump(mode="json"), stock, name, restock, change)

    def shop(self, shop_id: int) -> World:
        """A shop with what it has left."""
        return self._present(shop_id, *self.store.shop(shop_id))

    def definition(self, shop_id: int) -> tuple[World, int]:
        """A shop as it was defined, and its revision."""
        definition_id, revision = self.store.shop(shop_id)
        return self._setting("trade", definition_id), revision

    def visit(
        self, shop_id: int, method: Method, player_id: str | None = None
    ) -> tuple[str, Session]:
        """Open a session in a shop; its id, and the session."""
        definition_id, revision = self.store.shop(shop_id)
        setting = self._setting("trade", definition_id)
        world = self._present(shop_id, definition_id, revision)
        session = self.session(world, method)
        document = session_record.to_record(session, setting)
        number = self.store.open(
            "trade", definition_id, document, shop_id=shop_id, player_id=player_id
        )
        return number, session

    def session(self, world: World, method: Method) -> Session:
        """A session that is not stored."""
        return Session(world, method=method, linker=self._linker)

    def talk(self, task: Task, player_id: str | None = None) -> tuple[str, Talk]:
        """Open a talk by a task; its id, and the talk."""
        definition_id = self.store.put_definition("sop", task.model_dump(mode="json"))
        talk = Talk(task)
        document = talk_record.to_record(talk)
        return self.store.open("sop", definition_id, document, player_id=player_id), talk

    def load(self, number: str) -> Held | None:
        """An episode as it is stored, in its shop as it is now; None where there is none."""
        row = self.store.find(number)
        if row is None:
            return None
        setting = self._setting(row.kind, row.definition_id)
        episode: Any = KINDS[row.kind].from_record(row.document, setting, self._linker)
        if row.shop_id is not None:
            episode.world = self._present(row.shop_id, row.definition_id, row.revision)
        return Held(row, setting, episode, episode)

    def begin(self, number: str) -> Held | None:
        """An episode for a turn: what others bought meanwhile has left its order."""
        held = self.load(number)
        if held is not None:
            if isinstance(held.episode, Session):
                take_notice(held.episode)
            held.before = held.episode.branch()
        return held

    def settle(
        self, held: Held, turn: Turn, key: str | None = None, tell: Tell | None = None
    ) -> tuple[Any, Any, Any]:
        """Store the turn that was made in a held episode; the episode after it, the turn, and its
        answer.

        `tell` makes the answer of the other two; None without it. It is stored where the turn may
        be asked for again: by a key of the caller's, or by the review of its sale.

        Episode and turn are others than given where the turn made a sale that cannot be: then the
        merchant says so. Raises Conflict where another turn came first, or had this key.
        """
        order = _order(held.before, held.episode)
        reason = sale_problem(held.before, held.episode.sales[-1]) if order else ""
        if not reason:
            try:
                return held.episode, turn, self._commit(held, turn, order, key, tell)
            except NotSold as error:
                reason = error.reason
        again = self.begin(held.row.id)
        if again is None or again.row.version != held.row.version:
            raise Conflict("another turn of this session came first", where=held.row.id)
        record: Any = turn
        told = refused(again.episode, record, reason)
        return again.episode, told, self._commit(again, told, None, key, tell)

    def _commit(
        self, held: Held, turn: Turn, order: Order | None, key: str | None, tell: Tell | None
    ) -> Record | None:
        """Store a turn; its answer."""
        document = KINDS[held.row.kind].to_record(held.episode, held.setting)
        answer = tell(held.episode, turn) if tell else None
        kept = answer.model_dump(mode="json") if answer and (key or order) else None
        self.store.commit(held.row, document, turn.model_dump(mode="json"), order, key, kept)
        return answer

    def _read_setting(self, kind: str, definition_id: int) -> Any:
        if kind not in KINDS:
            raise HaggleError(
                f"holds a session of an unknown kind {kind!r}",
                where=self.store.place,
                hint="use the Haggle that stored it",
            )
        return parse(self.store.definition(definition_id), KINDS[kind].setting, kind)

    def _read_present(self, shop_id: int, definition_id: int, revision: int) -> World:
        """A shop with what it had left at a revision, or soon after. What a session's definition
        sells and the shop no longer has is sold out."""
        world: World = self._setting("trade", definition_id)
        left = self.store.stock(shop_id)
        sold = {i.item_id: left.get(i.item_id, 0) for i in world.items if i.quantity is not None}
        return with_stock(world, sold)


def _order(before: Any, after: Any) -> Order | None:
    """The sale that was made between two moments of a session."""
    if not isinstance(after, Session) or len(after.sales) == len(before.sales):
        return None
    sale, world = after.sales[-1], before.world
    lines = [line.model_dump(mode="json") for line in item_lines(world, sale.items)]
    return Order(sale.review, sale.items, sale.price, lines, world.currency)
