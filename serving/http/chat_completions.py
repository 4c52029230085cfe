"""An OpenAI-compatible endpoint: `model` is a character or a shop, the messages are all there is.

Nothing of it is stored: a client may send any history, also twice, so nothing that is bought here
leaves a shelf. What came of a history is remembered for a while; of one that is not known the
player's lines are answered again.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from hashlib import sha256
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from haggle.core.agent import Agent
from haggle.core.errors import nearest
from haggle.core.text import MAX_UTTERANCE
from haggle.core.turn import Turn
from haggle.sop.domain import Talk
from haggle.trade.session import Session
from serving.chat import spoken_turn
from serving.http.errors import Refused, answers, event_of
from serving.http.records import MERCHANT
from serving.http.running import ClientLeft, Left, TurnUnderWay
from serving.http.server import Server
from serving.http.sessions import shop_id
from serving.http.turns import NOBODY_READS, EventStream, left

KEPT = 1000  # conversations that are remembered
MOST_AGAIN = 20  # lines of an unknown history that are answered again


class _Part(BaseModel):
    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """A message. What a system message says is left out: the character has its own."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]

    @property
    def text(self) -> str:
        """Its text."""
        parts = self.content
        return parts if isinstance(parts, str) else "\n".join(part.text for part in parts)


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """A request as OpenAI's clients send it; what is not named here has no effect."""

    model_config = ConfigDict(extra="ignore")

    model: Annotated[str, Field(min_length=1, max_length=100)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)]
    stream: bool = False
    stream_options: StreamOptions | None = None


class _Finished(BaseModel):
    """The turn that answers the last line."""

    say: str
    prompt_tokens: int
    completion_tokens: int

    @property
    def usage(self) -> dict[str, int]:
        both = self.prompt_tokens + self.completion_tokens
        return {
            "prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens,
            "total_tokens": both,
        }  # fmt: skip


class Memory:
    """Where conversations stand, by what was said in them."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: str) -> Any | None:
        """The episode after these messages; None where it is not known."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def keep(self, key: str, episode: Any) -> None:
        """Remember an episode; the one used longest ago is forgotten."""
        with self._lock:
            self._known[key] = episode
            self._known.move_to_end(key)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)


def completion_routes(server: Server) -> APIRouter:
    """Routes of the OpenAI protocol."""
    routes = APIRouter(tags=["OpenAI-compatible"])
    memory = Memory()

    @routes.get("/models")
    def models() -> dict[str, Any]:
        """What may stand as `model`: characters and shops."""
        names = [MERCHANT, *server.tasks, *server.episodes.store.shops()]
        rows = [{"id": n, "object": "model", "created": 0, "owned_by": "haggle"} for n in names]
        return {"object": "list", "data": rows}

    @routes.post("/chat/completions", responses=answers(400, 404, 422, 429, 500, 503))
    async def complete(asked: ChatRequest, request: Request) -> Any:
        """Answer the last line of a conversation."""
        said = _said(asked)
        opened = await run_in_threadpool(_opened, server, asked.model)
        number = f"chatcmpl-{secrets.token_urlsafe(12)}"
        ticket = server.queue.join(number)
        turn = TurnUnderWay(
            server, ticket, lambda gone: _work(server, memory, asked.model, opened, said, gone)
        )
        if asked.stream:
            return EventStream(turn, _chunks(turn, number, asked))
        try:
            return _whole(await turn.last(left(request)), number, asked.model)
        except ClientLeft:
            return Response(status_code=NOBODY_READS)

    return routes


def _said(asked: ChatRequest) -> list[ChatMessage]:
    """The lines of both, the player's last. Raises Refused (400)."""
    said = [message for message in asked.messages if message.role in {"user", "assistant"}]
    if not said or said[-1].role != "user":
        raise Refused(
            HTTPStatus.BAD_REQUEST, "the last message is not the player's", where="messages",
            hint="end with a message of the role user",
        )  # fmt: skip
    for number, message in enumerate(said):
        if message.role == "user" and not 0 < len(message.text) <= MAX_UTTERANCE:
            raise Refused(
                HTTPStatus.BAD_REQUEST, f"a line has 1 to {MAX_UTTERANCE} characters",
                where=f"messages: line {number + 1}", hint="say less at a time",
            )  # fmt: skip
    return said


def _opened(server: Server, model: str) -> Session | Talk:
    """A new episode with the character of this name, or in the shop of this name."""
    if model in server.tasks:
        return Talk(server.tasks[model])
    shops = server.episodes.store.shops()
    if model != MERCHANT and model not in shops:
        raise Refused(
            HTTPStatus.NOT_FOUND, f"no character or shop is called {model!r}", where="model",
            hint=nearest(model, [MERCHANT, *server.tasks, *shops]),
        )  # fmt: skip
    number = shop_id(server, None if model == MERCHANT else model)
    return server.episodes.session(server.episodes.shop(number), server.method)


def _work(
    server: Server, memory: Memory, model: str, opened: Session | Talk, said: list[ChatMessage],
    gone: Left,
) -> Iterator[Any]:  # fmt: skip
    """Go on from where the history is known, to the answer of the last line."""
    agent = server.agent(opened)
    start, known = len(said) - 1, None
    while start > 0 and known is None:
        known = memory.find(_key(model, said[:start]))
        start -= known is None
    lines = [message.text for message in said[start:] if message.role == "user"]
    if len(lines) > MOST_AGAIN:
        raise Refused(
            HTTPStatus.BAD_REQUEST, "this conversation is not known here, and too long to repeat",
            where="messages", hint="begin a new one, or use POST /v1/sessions, which is stored",
        )  # fmt: skip
    episode = (known or opened).branch()
    turn: Turn | None = None
    for line in lines:
        turn = _reply(agent, episode, line, gone)
        if turn is None:
            break
    if turn is None:
        return
    answer = ChatMessage(role="assistant", content=turn.says)
    memory.keep(_key(model, [*said, answer]), episode)
    usage = turn.usage
    yield _Finished(
        say=turn.says, prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens
    )


def _reply(agent: Agent, episode: Any, line: str, gone: Left) -> Turn | None:
    """One turn; None where the caller has left. Raises Refused (409) after the end."""
    if episode.ended:
        raise Refused(
            HTTPStatus.CONFLICT, "the character has ended this conversation", where="messages",
            hint="begin a new one",
        )  # fmt: skip
    with closing(spoken_turn(agent, episode, line, gone)) as spoken:
        return next((piece for piece in spoken if isinstance(piece, Turn)), None)


def _key(model: str, said: list[ChatMessage]) -> str:
    text = json.dumps([model, *((message.role, message.text) for message in said)])
    return sha256(text.encode()).hexdigest()


def _whole(done: _Finished, number: str, model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": done.say}
    return {
        "id": number, "object": "chat.completion", "created": int(time.time()), "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": done.usage,
    }  # fmt: skip


async def _chunks(turn: TurnUnderWay, number: str, asked: ChatRequest) -> AsyncIterator[str]:
    """The answer as a stream. Its words come when the turn is finished: only then they count, and
    this protocol cannot take words back."""
    common = {
        "id": number, "object": "chat.completion.chunk", "created": int(time.time()),
        "model": asked.model,
    }  # fmt: skip

    def chunk(delta: dict[str, str], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps({**common, 'choices': [choice]})}\n\n"

    try:
        yield chunk({"role": "assistant", "content": ""})
        async for event in turn.events():
            if not isinstance(event, _Finished):
                yield ": waiting\n\n"
                continue
            for word in re.findall(r"\s*\S+|\s+", event.say):
                yield chunk({"content": word})
            yield chunk({}, "stop")
            if asked.stream_options and asked.stream_options.include_usage:
                yield f"data: {json.dumps({**common, 'choices': [], 'usage': event.usage})}\n\n"
        yield "data: [DONE]\n\n"
    except Refused as error:
        yield f"data: {json.dumps({'error': event_of(error)})}\n\n"
