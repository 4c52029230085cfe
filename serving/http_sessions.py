"""The sessions of a server: who may say a line now, and which are forgotten. They are stored."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus

from haggle.core.errors import HaggleError
from haggle.trade.methods import Method
from haggle.trade.records import TurnRecord
from haggle.trade.session import Session
from haggle.trade.world import World
from serving.store.database import StoreError
from serving.store.episodes import Episodes, Held
from serving.store.repository import Conflict

MAX_AT_ONCE = 16  # turns under way; well below the threads that answer requests
_LOG = logging.getLogger(__name__)


class Refused(HaggleError):
    """A request that cannot be carried out; `code` is the HTTP status."""

    def __init__(self, code: int, message: str, where: str = "", hint: str = "") -> None:
        super().__init__(message, where=where, hint=hint)
        self.code = code


@dataclass
class Speaking:
    """A session in which a line is being said."""

    held: Held
    episodes: Episodes

    @property
    def session(self) -> Session:
        """The session; its turn is stored by `settle` alone."""
        session: Session = self.held.episode
        return session

    def settle(self, turn: TurnRecord) -> tuple[Session, TurnRecord]:
        """Store the turn; the session and the turn as they stand, which may be others."""
        return self.episodes.settle(self.held, turn)


class Sessions:
    """The sessions of a server: opened, found, forgotten.

    At most `most` are kept; those not used for `idle` seconds go first, then the one used longest
    ago. One that is answering stays.
    """

    def __init__(self, episodes: Episodes, most: int, idle: float) -> None:
        self._episodes, self._most, self._idle = episodes, most, idle
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(MAX_AT_ONCE)

    def open(self, shop: int | World, method: Method) -> tuple[str, Session]:
        """Open a session in a shop that is known, or in one of its own; its id, and the session.
        Raises Refused (503) when all are answering."""
        with self._lock:
            self._make_room()
            if isinstance(shop, World):
                shop = self._episodes.put_shop(shop, shared=False)
            return self._episodes.visit(shop, method)

    def _make_room(self) -> None:
        store = self._episodes.store
        store.forget(store.unused(time.time() - self._idle, self._most - 1, self._busy))
        if store.count() >= self._most:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"all {self._most} sessions are answering",
                hint="try again, or raise --max-sessions",
            )

    def close(self, number: str) -> None:
        """Forget a session. Raises Refused (404)."""
        if not self._episodes.store.forget([number]):
            raise _unknown(number)

    def find(self, number: str) -> Session:
        """A session that is kept, to look at. Raises Refused (404)."""
        held = self._episodes.load(number)
        if held is None or not isinstance(held.episode, Session):
            raise _unknown(number)
        try:
            self._episodes.store.touch(number)
        except StoreError as error:  # a look is worth more than a note of it
            _LOG.warning("%s", error)
        return held.episode

    def check(self, number: str) -> Held:
        """A session in which a line may be said now. Raises Refused (404, or 409 while another turn
        is under way or when the merchant has ended it)."""
        if number in self._busy:
            raise _busy(number)
        return self._begin(number)

    def _begin(self, number: str) -> Held:
        held = self._episodes.begin(number)
        if held is None or not isinstance(held.episode, Session):
            raise _unknown(number)
        if held.episode.ended:
            raise Refused(
                HTTPStatus.CONFLICT,
                "the merchant has ended this conversation",
                where=number,
                hint="open another session",
            )
        return held

    @contextmanager
    def talking(self, number: str) -> Iterator[Speaking]:
        """A session, for one turn. Raises Refused as `check` does, and 503 where too many other
        turns are under way; what engine or database cannot do becomes a Refused (503) as well."""
        with self._taken(number):
            try:
                yield Speaking(self._begin(number), self._episodes)
            except Refused:
                raise
            except HaggleError as error:
                conflict = isinstance(error, Conflict)
                code = HTTPStatus.CONFLICT if conflict else HTTPStatus.SERVICE_UNAVAILABLE
                raise Refused(code, error.message, error.where, error.hint) from error
            except Exception as error:
                _LOG.exception("a turn broke off")
                raise Refused(
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "the server failed",
                    hint="its log says why; the session is as it was",
                ) from error

    @contextmanager
    def _taken(self, number: str) -> Iterator[None]:
        """Nobody else says a line in this session while the block runs."""
        if not self._turns.acquire(blocking=False):
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{MAX_AT_ONCE} turns are being answered",
                hint="try again in a moment",
            )
        try:
            with self._lock:
                if number in self._busy:
                    raise _busy(number)
                self._busy.add(number)
            try:
                yield
            finally:
                self._busy.discard(number)
        finally:
            self._turns.release()

    def __len__(self) -> int:
        return self._episodes.store.count()


def _busy(number: str) -> Refused:
    return Refused(
        HTTPStatus.CONFLICT,
        "the merchant is still answering",
        where=number,
        hint="send the next line when the turn before it is finished",
    )


def _unknown(number: str) -> Refused:
    return Refused(
        HTTPStatus.NOT_FOUND,
        "there is no such session; it was closed, or left alone for too long",
        where=number,
        hint="open one: POST /sessions",
    )
