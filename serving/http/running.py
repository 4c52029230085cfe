"""A turn under way: it waits for its place, runs in a thread, and tells what happens as events.

Nothing waits for a caller: events are kept until they are read, and a caller who leaves gives the
place up, or stops the model where it answers already.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from http import HTTPStatus
from typing import Any

from haggle.core.agent import Decided
from haggle.core.codec import to_gbnf
from haggle.core.config import Record
from haggle.core.errors import HaggleError
from haggle.core.storage import writable
from haggle.core.turn import Turn
from haggle.sop.domain import Talk
from serving.chat import spoken_turn
from serving.http.errors import Refused, turn_errors
from serving.http.queue import Ticket
from serving.http.records import (
    MERCHANT,
    Answer,
    Decision,
    Explanation,
    Line,
    answer_of,
    decision_of,
)
from serving.http.server import Server
from serving.store.episodes import Held

Left = Callable[[], bool]  # whether the caller has left
Work = Callable[[Left], Iterator[Any]]  # what a turn does, as events
BEAT_S = 15.0  # of silence, after which a caller is told that the server is there


class Waiting(Record):
    """A place in the queue; 0 when the turn runs. A caller is told it again after each 15 s of
    silence, as a sign of life."""

    position: int


class Words(Record):
    """A piece of the line."""

    text: str


class ClientLeft(Exception):
    """The caller is gone; the turn was not made."""


class TurnUnderWay:
    """A turn that has a place in the queue. `leave` must be called in the end."""

    def __init__(self, server: Server, ticket: Ticket, work: Work) -> None:
        self._server, self._ticket, self._work = server, ticket, work
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self._left = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run())
        server.under_way.add(self._task)
        self._task.add_done_callback(server.under_way.discard)

    async def _run(self) -> None:
        end: Any = None  # what is told last
        try:
            await self._ticket.turn()
            end = await self._loop.run_in_executor(self._server.threads, self._make)
        except Refused as error:
            end = error
        finally:
            self._ticket.leave()  # before the end is told: who has heard it may say the next line
            if end is not None:
                self._events.put_nowait(end)
            self._events.put_nowait(None)

    def _make(self) -> Any:
        """Make the turn, in a thread; the Answer, or what broke it off, is told by who waits."""
        metrics = self._server.metrics
        end: Any = None
        try:
            with turn_errors(), closing(self._work(self._left.is_set)) as made:  # type: ignore[type-var]
                for event in made:
                    if self._left.is_set():
                        break
                    if isinstance(event, Answer):
                        end = event
                    else:
                        self._tell(event)
        except Refused as error:
            metrics.failed(error.code)
            end = error
        if self._left.is_set():
            metrics.left()
        return end

    def _tell(self, event: Any) -> None:
        self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def events(self) -> AsyncIterator[Any]:
        """A Decision, Words, an Answer; a Waiting first where the turn must wait, and after each
        15 s of silence. Raises Refused where the turn breaks off."""
        if place := self._ticket.position:
            yield Waiting(position=place)
        while True:
            try:
                event = await asyncio.wait_for(self._events.get(), BEAT_S)
            except TimeoutError:
                yield Waiting(position=self._ticket.position)
                continue
            if event is None:
                return
            if isinstance(event, Exception):
                raise event
            yield event

    async def last(self, gone: Awaitable[Any]) -> Any:
        """The last event; `gone` returns when the caller leaves. Raises Refused where the turn
        breaks off, ClientLeft."""
        waiting = asyncio.ensure_future(self._last())
        leaving = asyncio.ensure_future(gone)
        try:
            await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise ClientLeft
            return waiting.result()
        finally:
            waiting.cancel()
            leaving.cancel()
            self.leave()

    async def _last(self) -> Any:
        found = None
        async for event in self.events():
            found = event
        return found

    def leave(self) -> None:
        """The caller has all, or is gone: give up a place that is waited for, stop the model."""
        self._left.set()
        if self._ticket.began is None:
            self._task.cancel()
            self._ticket.leave()  # a task that has not begun is cancelled without a word


def said(server: Server, number: str, line: Line, key: str | None) -> Work:
    """A line said in a session, and its answer. What is streamed may be worded otherwise by the
    Answer, which counts. A line whose key was used already is answered as it was then."""

    def work(left: Left) -> Iterator[Record]:
        if key and (again := answered(server, number, line, key)):
            yield from (decision(again), Words(text=again.say), again)
            return
        started = time.monotonic()
        held = server.sessions.begin(number)
        agent = server.agent(held.episode)
        asked = agent.request(held.episode, line.text) if line.explain else None
        decided = told = False
        turn: Turn | None = None
        with closing(spoken_turn(agent, held.episode, line.text, left)) as spoken:
            for piece in spoken:
                if isinstance(piece, Decided):
                    decided = True
                    yield decision_of(held.before, piece.outcome)
                elif isinstance(piece, Turn):
                    turn = piece
                else:
                    told = True
                    yield Words(text=piece)
        if left() or turn is None:
            return
        answer = settled(server, held, turn, started, key, asked)
        if not decided:
            yield decision(answer)
        if not told:
            yield Words(text=answer.say)
        yield answer

    return work


def settled(
    server: Server,
    held: Held,
    turn: Turn,
    started: float,
    key: str | None = None,
    asked: Any = None,
) -> Answer:
    """Store a turn and count it; its answer."""

    def tell(episode: Any, turn: Turn) -> Answer:
        return answer_of(held.before, episode, turn, time.monotonic() - started)

    episode, turn, answer = server.episodes.settle(held, turn, key, tell)
    count(server, episode, turn, answer)
    return answer.model_copy(update={"explain": explanation(asked, turn)}) if asked else answer


def answered(server: Server, number: str, line: Line, key: str) -> Answer | None:
    """What a line with this key was answered with before, without its explanation. Raises Refused
    (422) where that was another line."""
    found = server.episodes.store.answer(number, key=key)
    if found is None:
        return None
    text, answer = found
    if text != writable(line.text):
        raise Refused(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "another line was sent with this key",
            where="Idempotency-Key",
            hint="take a new key for each line, and the same one only to send a line again",
        )
    return Answer.model_validate(answer)


def known_answer(server: Server, number: str, line: Line, key: str | None) -> Answer | None:
    """What a line with this key was answered with before; None where it may be said now. Raises
    Refused where it may not."""
    known = answered(server, number, line, key) if key else None
    if known is None:
        server.sessions.begin(number)
    return known


def decision(answer: Answer) -> Decision:
    """What an answer decided."""
    return Decision(last=answer.last, state=answer.state, cart=answer.cart, price=answer.price)


def count(server: Server, episode: Any, turn: Turn, answer: Answer) -> None:
    """Count a turn that was stored."""
    if isinstance(episode, Talk):
        server.metrics.turn(episode.task.task, turn, answer.seconds, None)
        return
    shop = episode.world.name if answer.sale else None
    server.metrics.turn(MERCHANT, turn, answer.seconds, shop)


def explanation(asked: Any, turn: Turn) -> Explanation:
    """How a turn came about."""
    return Explanation(
        prompt=[{"role": message.role, "content": message.content} for message in asked.messages],
        grammar=to_gbnf(asked.constraint) if asked.constraint else "",
        raw=turn.raw.split("\n") if turn.raw else [],
        checks=turn.proposed_failed,
        interventions=turn.interventions,
    )


def confirmed(server: Server, number: str, review: str) -> Answer:
    """Close the sale of the review on the table; the sale of one that was closed before is told
    again. Raises Refused (409) where there is none such."""
    started = time.monotonic()
    with turn_errors():
        if before := server.episodes.store.answer(number, review=review):
            return Answer.model_validate(before[1])
        held = server.sessions.begin(number)
        if isinstance(held.episode, Talk):
            raise Refused(409, "this character sells nothing", where=number)
        try:
            made = held.episode.confirm(review)
        except HaggleError as error:
            raise Refused(409, error.message, error.where, error.hint) from error
        return settled(server, held, made, started)
