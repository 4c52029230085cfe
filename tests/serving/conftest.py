"""A constraint to vary, a prompt, a service to talk to, and the real small model."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from haggle.core.engine import GenerationRequest, Message
from haggle.core.errors import HaggleError
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import StateShape, WireConstraint
from haggle.weights.models import BaseModel, resolve_base
from serving.engines import EngineConfig, load_engine

NAMES = ("Copper Kettle", "Waxed Rope (10 m)", "Sœur's Salve [x]", "Tin Whistle", "?odd name")


@pytest.fixture(scope="session")
def constrain() -> Callable[..., WireConstraint]:
    """Builds a constraint over the trading procedure; the states by name, the rest as given."""
    procedure = load_procedure()

    def build(*states: str, wire: str = "compact", **fields: Any) -> WireConstraint:
        chosen = states or tuple(procedure.states)
        carried = ((name, procedure.state(name)) for name in chosen)
        shapes = tuple(
            StateShape(name, state.payload, state.may_clear, state.payload == "cart")
            for name, state in carried
        )
        base = WireConstraint(
            wire=wire,  # type: ignore[arg-type]
            last=("OFFER_SELL",),
            states=shapes,
            item_names=NAMES,
            contexts=tuple((s, procedure.state(s).context) for s in chosen),
        )
        return replace(base, **fields)

    return build


@pytest.fixture(scope="session")
def ask() -> Callable[..., GenerationRequest]:
    """Builds a request with a short shop prompt."""
    shop = "You keep a shop. For sale:\n" + "\n".join(f"{name} 20" for name in NAMES[:4])

    def build(line: str, constraint: WireConstraint | None = None, **fields: Any):
        messages = (Message("system", shop), Message("user", f"cart []\nplayer: {line}"))
        return GenerationRequest(messages, constraint, **({"max_tokens": 40} | fields))

    return build


@pytest.fixture(scope="session")
def base() -> BaseModel:
    """The real base model; tests that need it are skipped where it cannot be had."""
    try:
        return resolve_base()
    except (HaggleError, ImportError) as error:
        pytest.skip(f"no base model here: {error}")


@dataclass
class Heard:
    """A request as a stand-in received it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float


class StandIn:
    """An HTTP service on the loopback that answers as planned, for the engines that need one.

    `plan` gets each request's number (from 0) and the request, and returns what `reply` makes.
    """

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.plan: Callable[[int, Heard], dict[str, Any]] = lambda number, heard: self.reply({})
        self.running = self.most_at_once = 0
        self._lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                service.answer(self)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @staticmethod
    def reply(
        body: Any,
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        wait_s: float = 0.0,
        events: list[Any] | None = None,
        cut: bool = False,
    ) -> dict[str, Any]:
        """A planned answer: JSON, a text as it is, or server-sent events; `cut` breaks it off."""
        return {
            "body": body, "status": status, "headers": headers or {}, "wait_s": wait_s,
            "events": events, "cut": cut,
        }  # fmt: skip

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        heard = Heard(handler.path, headers, json.loads(raw), time.monotonic())
        with self._lock:
            number = len(self.heard)
            self.heard.append(heard)
            self.running += 1
            self.most_at_once = max(self.most_at_once, self.running)
        try:
            self._send(handler, self.plan(number, heard))
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with self._lock:
                self.running -= 1

    def _send(self, handler: BaseHTTPRequestHandler, planned: dict[str, Any]) -> None:
        time.sleep(planned["wait_s"])
        handler.send_response(planned["status"])
        for name, value in planned["headers"].items():
            handler.send_header(name, value)
        if planned["events"] is not None:
            handler.send_header("content-type", "text/event-stream")
            handler.send_header("connection", "close")
            handler.end_headers()
            for event in planned["events"]:
                data = event if isinstance(event, str) else json.dumps(event)
                handler.wfile.write(f"data: {data}\n\n".encode())
                handler.wfile.flush()
            handler.close_connection = True
            return
        body = planned["body"]
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        kind = "text/html" if isinstance(body, str) else "application/json"
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(text) + (9 if planned["cut"] else 0)))
        handler.end_headers()
        handler.wfile.write(text)
        if planned["cut"]:
            handler.close_connection = True

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def service() -> Iterator[StandIn]:
    """A service on the loopback whose answers the test plans."""
    stand_in = StandIn()
    yield stand_in
    stand_in.close()


@pytest.fixture
def completion() -> Callable[..., dict[str, Any]]:
    """Builds an answer as OpenAI-compatible endpoints give it."""

    def build(text: str = "hello", **fields: Any) -> dict[str, Any]:
        finish = fields.pop("finish_reason", "stop")
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        message = {"role": "assistant", "content": text}
        return {
            "id": "x", "object": "chat.completion", "created": 0, "model": "m-1",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": usage,
        } | fields  # fmt: skip

    return build


@pytest.fixture
def chunks() -> Callable[..., list[Any]]:
    """Builds the server-sent events of such an answer that comes in these pieces."""

    def build(*pieces: str, finish: str | None = "stop", usage: Any = None) -> list[Any]:
        base = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m-1"}
        events: list[Any] = [base | {"choices": [{"index": 0, "delta": {"role": "assistant"}}]}]
        events += [base | {"choices": [{"index": 0, "delta": {"content": p}}]} for p in pieces]
        if finish:
            events.append(base | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        if usage:
            events.append(base | {"choices": [], "usage": usage})
        return [*events, "[DONE]"]

    return build


@pytest.fixture
def remote(service: StandIn) -> Iterator[Callable[..., Any]]:
    """Starts an `openai` engine on the stand-in that waits only briefly between attempts."""
    started = []

    def start(*, parallel: int = 4, model: str = "m", **options: Any) -> Any:
        pytest.importorskip("openai")
        pytest.importorskip("tenacity")
        quick = {"base_url": service.url + "/v1", "first_wait_s": 0.01, "timeout_s": 30.0}
        config = {"engine": "openai", "model": model, "parallel": parallel}
        engine = load_engine(EngineConfig(**config, openai=quick | options))  # type: ignore[arg-type]
        started.append(engine)
        return engine

    yield start
    for engine in started:
        engine.close()
