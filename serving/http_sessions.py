"""The sessions of a server: opened, found, one turn at a time, forgotten."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from haggle.core.errors import HaggleError
from haggle.trade.session import Session

MAX_AT_ONCE = 16  # turns under way; well below the threads that answer requests
_LOG = logging.getLogger(__name__)


@dataclass
class _Held:
    """A session that is kept, and who is talking in it."""

    session: Session
    busy: threading.Lock = field(default_factory=threading.Lock)
    used: float = field(default_factory=time.monotonic)


class Refused(HaggleError):
    """A request that cannot be carried out; `code` is the HTTP status."""

    def __init__(self, code: int, message: str, where: str = "", hint: str = "") -> None:
        super().__init__(message, where=where, hint=hint)
        self.code = code


class Sessions:
    """The sessions of a server: opened, found, forgotten.

    At most `most` are kept; those not used for `idle` seconds go first, then the one used longest
    ago. One that is answering stays.
    """

    def __init__(self, most: int, idle: float) -> None:
        self._most, self._idle = most, idle
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(MAX_AT_ONCE)

    def open(self, session: Session) -> str:
        """Keep a session; returns its id. Raises Refused (503) when all are answering."""
        with self._lock:
            self._make_room()
            number = secrets.token_urlsafe(16)
            self._held[number] = _Held(session)
            return number

    def _make_room(self) -> None:
        free = [n for n, held in self._held.items() if not held.busy.locked()]
        now = time.monotonic()
        for number in free:
            if now - self._held[number].used > self._idle:
                del self._held[number]
        if len(self._held) >= self._most:
            left = next((n for n in free if n in self._held), None)
            if left is None:
                raise Refused(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    f"all {self._most} sessions are answering",
                    hint="try again, or raise --max-sessions",
                )
            del self._held[left]

    def close(self, number: str) -> None:
        """Forget a session. Raises Refused (404)."""
        with self._lock:
            if self._held.pop(number, None) is None:
                raise _unknown(number)

    def find(self, number: str) -> _Held:
        """A session that is kept. Raises Refused (404)."""
        with self._lock:
            held = self._held.get(number)
            if held is None:
                raise _unknown(number)
            self._held.move_to_end(number)
            held.used = time.monotonic()
            return held

    def check(self, number: str) -> _Held:
        """A session in which a line may be said now. Raises Refused (404, or 409 while another turn
        is under way or when the merchant has ended it)."""
        held = self.find(number)
        if held.busy.locked():
            raise _busy(number)
        if held.session.ended:
            raise Refused(
                HTTPStatus.CONFLICT,
                "the merchant has ended this conversation",
                where=number,
                hint="open another session",
            )
        return held

    @contextmanager
    def talking(self, number: str) -> Iterator[Session]:
        """A session, for one turn. Raises Refused as `check` does, and 503 where too many other
        turns are under way; what the engine cannot do becomes a Refused (503) as well."""
        held = self.check(number)
        if not self._turns.acquire(blocking=False):
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{MAX_AT_ONCE} turns are being answered",
                hint="try again in a moment",
            )
        try:
            if not held.busy.acquire(blocking=False):
                raise _busy(number)
            try:
                yield held.session
            except Refused:
                raise
            except HaggleError as error:
                raise Refused(
                    HTTPStatus.SERVICE_UNAVAILABLE, error.message, error.where, error.hint
                ) from error
            except Exception as error:
                _LOG.exception("a turn broke off")
                raise Refused(
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "the server failed",
                    hint="its log says why; the session is as it was",
                ) from error
            finally:
                held.busy.release()
        finally:
            self._turns.release()

    def __len__(self) -> int:
        return len(self._held)


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
