"""A real server with a model that says what a test scripts, and a client of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn

from haggle.core.engine import Engine
from haggle.sop.task import load_task
from haggle.trade.world_io import named_world
from serving.engines.scripted import ScriptedEngine
from serving.http.app import Limits, make_app

SHOP = named_world("frontier_shop")


class Game(httpx.Client):
    """A client of the API; paths begin behind `/v1`."""

    def __init__(self, port: int) -> None:
        self.port = port
        super().__init__(base_url=f"http://127.0.0.1:{port}/v1", timeout=60)

    def root(self, path: str) -> httpx.Response:
        """GET a path outside `/v1`."""
        return self.get(f"http://127.0.0.1:{self.port}{path}")

    def open(self, **body: Any) -> str:
        """The id of a new session."""
        answer = self.post("/sessions", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["session"])

    def say(self, session: str, text: str = "well?", **body: Any) -> httpx.Response:
        """A line said."""
        return self.post(f"/sessions/{session}/turns", json={"text": text, **body})

    def confirm(self, session: str, review: Any) -> httpx.Response:
        """A review confirmed."""
        return self.post(f"/sessions/{session}/confirm", json={"review": review})

    def look(self, session: str) -> dict[str, Any]:
        """Where a session stands."""
        found: dict[str, Any] = self.get(f"/sessions/{session}").json()
        return found

    @staticmethod
    def events(text: str) -> list[tuple[str, Any]]:
        """Server-sent events: kind and data."""
        blocks = [b.split("\n") for b in text.strip().split("\n\n") if not b.startswith(":")]
        return [(kind.removeprefix("event: "), json.loads(data[6:])) for kind, data in blocks]


class Endless(ScriptedEngine):
    """An engine whose first line has no end until its listener leaves."""

    def __init__(self, answers: tuple[str, ...] = ()) -> None:
        super().__init__(answers)
        self.closed = threading.Event()

    def stream(self, request: Any) -> Any:
        if self.closed.is_set():
            yield from super().stream(request)
            return
        try:
            yield '{"last":"","state":"CASUAL","say":"'
            while True:
                time.sleep(0.01)
                yield "and "
        finally:
            self.closed.set()


@contextmanager
def served(engine: Engine | tuple[str, ...], **options: Any) -> Iterator[Game]:
    """A client of a server that runs while the block does; `limits` are fields of Limits."""
    if isinstance(engine, tuple):
        engine = ScriptedEngine(engine)
    options["limits"] = Limits(**options.get("limits", {}))
    worlds = {world.name: world for world in options.pop("worlds", [SHOP])}
    tasks = {name: load_task(name) for name in ("gatekeeper",)}
    application = make_app(engine, worlds, options.pop("guard", "state"), tasks=tasks, **options)
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    with Game(server.servers[0].sockets[0].getsockname()[1]) as game:
        game.server = application.state.server  # type: ignore[attr-defined]
        yield game
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def serve() -> Callable[..., AbstractContextManager[Game]]:
    """Starts a server: answers of the model or an engine, then options of make_app."""
    return served


@pytest.fixture
def endless() -> type[Endless]:
    """An engine whose first line has no end until its listener leaves."""
    return Endless
