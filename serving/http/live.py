"""A session over a WebSocket: lines come in, events of the turns go out."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from fastapi.concurrency import run_in_threadpool

from haggle.core.config import parse
from haggle.core.errors import HaggleError
from haggle.grammar.json_text import DecodeError, read_object
from serving.http.errors import Refused, event_of
from serving.http.keys import Gate
from serving.http.records import Line
from serving.http.running import TurnUnderWay
from serving.http.server import Server
from serving.http.turns import begin, kind_of

CLOSED = 4000  # with the HTTP status added: why a WebSocket was closed


def live_routes(server: Server, gate: Gate) -> APIRouter:
    """The WebSocket of a session."""
    routes = APIRouter()

    @routes.websocket("/sessions/{number}/live")
    async def live(number: str, socket: WebSocket) -> None:
        """Takes {"text", "explain"}, sends {"event", "data"}. Lines here have no key: after a break
        look at the turns before you say a line again."""
        await socket.accept(subprotocol=gate.subprotocol(socket))
        try:
            await run_in_threadpool(gate.check, socket)
            await run_in_threadpool(server.sessions.find, number)
        except HaggleError as error:
            problem = event_of(error)
            await _send(socket, "error", problem)
            await socket.close(CLOSED + problem["status"])
            return
        await _Conversation(server, gate, socket, number).run()

    return routes


class _Conversation:
    """One WebSocket. A second line while one is answered is refused; the first goes on."""

    def __init__(self, server: Server, gate: Gate, socket: WebSocket, number: str) -> None:
        self._server, self._gate, self._socket, self._number = server, gate, socket, number
        self._answering: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Take lines until the player leaves."""
        try:
            while True:
                message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                try:
                    await self._take(message.get("text"))
                except HaggleError as error:
                    await _send(self._socket, "error", event_of(error))
        except (WebSocketDisconnect, RuntimeError):  # it was closed while something was sent
            return
        finally:
            if self._answering is not None:
                self._answering.cancel()

    async def _take(self, text: str | None) -> None:
        await run_in_threadpool(self._gate.check, self._socket)
        line = _line(text)
        await run_in_threadpool(self._server.sessions.begin, self._number)
        turn = begin(self._server, self._number, line)
        self._answering = asyncio.create_task(self._answer(turn))

    async def _answer(self, turn: TurnUnderWay) -> None:
        try:
            async for event in turn.events():
                await _send(self._socket, kind_of(event), event.model_dump(mode="json"))
        except Refused as error:
            await _send(self._socket, "error", event_of(error))
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            turn.leave()


def _line(text: str | None) -> Line:
    """The line in a message. Raises Refused (422) for any other message."""
    try:
        data: Any = read_object(text or "")
    except DecodeError:
        raise Refused(
            422, "is no JSON object", where="message", hint='send {"text": "..."}'
        ) from None
    try:
        return parse({**data, "stream": True}, Line, "message")
    except HaggleError as error:
        raise Refused(422, error.message, error.where, error.hint) from None


async def _send(socket: WebSocket, kind: str, data: Any) -> None:
    await socket.send_json({"event": kind, "data": data})
