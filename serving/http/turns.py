"""Routes of a turn: a line said (whole, or as server-sent events), a sale confirmed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from serving.http.errors import Refused, answers, event_of
from serving.http.records import Answer, Confirmation, Decision, Line
from serving.http.running import (
    ClientLeft,
    TurnUnderWay,
    Waiting,
    Words,
    confirmed,
    known_answer,
    said,
)
from serving.http.server import Server

EVENTS = {Waiting: "waiting", Words: "text", Answer: "done", Decision: "state"}
Key = Annotated[
    Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[!-~]+$")] | None,
    Header(alias="Idempotency-Key"),
]
NOBODY_READS = 499  # the status of an answer to a caller who has left


def kind_of(event: BaseModel) -> str:
    """The name of an event."""
    return EVENTS[type(event)]


def turn_routes(server: Server) -> APIRouter:
    """Say a line, close the sale of a review."""
    routes = APIRouter(tags=["turns"], responses=answers(404, 409, 422, 429, 500, 503))

    @routes.post(
        "/sessions/{number}/turns",
        response_model=Answer,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    )
    async def say(number: str, line: Line, request: Request, key: Key = None) -> Any:
        """Say a line. With `stream` server-sent events come: `waiting` with the place in the queue
        where it has to wait, `state` as soon as it is decided what the line comes to, `text`
        pieces, then `done` with the whole answer, or `error`. After each 15 s of silence `waiting`
        comes again as a sign of life, with 0 while the turn runs. A line with the Idempotency-Key
        of one before it is not said again; it gets that one's answer."""
        # Before a stream begins: what is refused is told as a status.
        known = await run_in_threadpool(known_answer, server, number, line, key)
        if known is not None and not line.stream:
            return known
        turn = begin(server, number, line, key)
        if line.stream:
            return EventStream(turn, sse(turn))
        try:
            return await turn.last(left(request))
        except ClientLeft:
            return Response(status_code=NOBODY_READS)

    @routes.post("/sessions/{number}/confirm")
    async def confirm(number: str, confirmation: Confirmation) -> Answer:
        """Close the sale of the review on the table, whatever was said. The id of a review that was
        sold in this session gets that sale's answer again; 409 for another id."""
        ticket = server.queue.hold(number)
        try:
            return await run_in_threadpool(confirmed, server, number, confirmation.review)
        finally:
            ticket.leave()

    return routes


def begin(server: Server, number: str, line: Line, key: str | None = None) -> TurnUnderWay:
    """A turn with a place in the queue. Raises Refused."""
    try:
        ticket = server.queue.join(number)
    except Refused as error:
        server.metrics.failed(error.code)
        raise
    return TurnUnderWay(server, ticket, said(server, number, line, key))


async def left(request: Request) -> None:
    """Returns when the caller has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class EventStream(StreamingResponse):
    """Server-sent events of a turn, which is left however the response ends."""

    def __init__(self, turn: TurnUnderWay, source: AsyncIterator[str]) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(source, media_type="text/event-stream", headers=headers)
        self._turn = turn

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._turn.leave()


async def sse(turn: TurnUnderWay) -> AsyncIterator[str]:
    """The events of a turn as server-sent events."""
    try:
        async for event in turn.events():
            yield f"event: {kind_of(event)}\ndata: {event.model_dump_json()}\n\n"
    except Refused as error:
        yield f"event: error\ndata: {json.dumps(event_of(error))}\n\n"
