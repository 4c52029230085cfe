"""The queue of turns: one a session, in the order of arrival, a few at once, and a bound.

All methods run on the event loop, so nothing is locked.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Collection
from http import HTTPStatus

from serving.http.errors import Refused

GUESS_S = 2.0  # how long a turn takes, before any has been timed
SOON_S = 5.0  # when to try again after a server that is stopping


class Ticket:
    """A place in the queue. It is given up with `leave`, whether its turn has come or not."""

    def __init__(self, queue: TurnQueue, session: str) -> None:
        self.session = session
        self.called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.began: float | None = None
        self._queue = queue

    @property
    def position(self) -> int:
        """How many turns come first, this one counted; 0 when it runs."""
        return self._queue.position(self)

    async def turn(self) -> None:
        """Wait for the turn. Raises Refused (503) where the server stops first."""
        await self.called

    def leave(self) -> None:
        """Make room for the next; a second call does nothing."""
        self._queue.leave(self)


class TurnQueue:
    """At most `at_once` turns run, at most `longest` wait."""

    def __init__(self, at_once: int, longest: int) -> None:
        self._at_once, self._longest = at_once, longest
        self._tickets: dict[str, Ticket] = {}
        self._waiting: dict[str, Ticket] = {}
        self._running = 0
        self._spans: deque[float] = deque(maxlen=32)
        self.draining = False

    def join(self, session: str) -> Ticket:
        """A place for a turn of a session. Raises Refused: 409 where that session has one, 429
        where the queue is full, 503 where the server is stopping."""
        ticket = self._register(session)
        if self._running < self._at_once:
            self._call(ticket)
        elif len(self._waiting) < self._longest:
            self._waiting[session] = ticket
        else:
            del self._tickets[session]
            raise self._full()
        return ticket

    def hold(self, session: str) -> Ticket:
        """A session for something that needs no model and does not wait."""
        return self._register(session)

    def _register(self, session: str) -> Ticket:
        if self.draining:
            raise _stopping()
        if session in self._tickets:
            raise Refused(
                HTTPStatus.CONFLICT,
                "the character is still answering",
                where=session,
                hint="send the next line when the turn before it is finished",
            )
        ticket = self._tickets[session] = Ticket(self, session)
        return ticket

    def _full(self) -> Refused:
        position = len(self._waiting) + 1
        return Refused(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"{len(self._waiting)} turns wait already",
            hint="send the line again later",
            retry_after=self.wait_s(position),
            position=position,
        )

    def position(self, ticket: Ticket) -> int:
        """The place of a ticket among those that wait; 0 where it does not."""
        places = (n for n, other in enumerate(self._waiting.values(), 1) if other is ticket)
        return next(places, 0)

    def wait_s(self, position: int) -> float:
        """About how long a turn waits at a position."""
        spans = sorted(self._spans)
        usual = spans[len(spans) // 2] if spans else GUESS_S
        return usual * position / self._at_once

    def _call(self, ticket: Ticket) -> None:
        self._running += 1
        ticket.began = time.monotonic()
        ticket.called.set_result(None)

    def leave(self, ticket: Ticket) -> None:
        """Give a place up, and call the next."""
        if self._tickets.get(ticket.session) is not ticket:
            return
        del self._tickets[ticket.session]
        self._waiting.pop(ticket.session, None)
        if ticket.began is not None:
            self._spans.append(time.monotonic() - ticket.began)
            self._running -= 1
        while self._waiting and self._running < self._at_once:
            following = self._waiting.pop(next(iter(self._waiting)))
            if not following.called.done():
                self._call(following)

    def drain(self) -> None:
        """Take nobody any more, and send those who wait away; running turns go on."""
        self.draining = True
        for ticket in self._waiting.values():
            if not ticket.called.done():
                ticket.called.set_exception(_stopping())
        self._waiting.clear()

    @property
    def busy(self) -> Collection[str]:
        """The sessions in which a line is being said, or is about to be."""
        return list(self._tickets)

    @property
    def waiting(self) -> int:
        """How many turns wait."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many turns run."""
        return self._running


def _stopping() -> Refused:
    return Refused(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "the server is stopping",
        hint="send the line again when it is back; the session is as it was",
        retry_after=SOON_S,
    )
