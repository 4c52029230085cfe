"""Characters over HTTP for a game that is not written in Python (`haggle serve`).

A session is one player with one character; its state lives here, so a game sends lines and gets
back what the character says and does. Interactive documentation stands under `/docs`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer

from haggle import __version__
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from haggle.language.reading import Linker
from haggle.sop.task import Task
from haggle.trade.merchant import Guard
from haggle.trade.methods import DEFAULT_METHOD, get_method
from haggle.trade.world import World
from haggle.trade.world_io import with_confirmation
from serving.http.characters import character_routes
from serving.http.chat_completions import completion_routes
from serving.http.errors import answers, tell_errors
from serving.http.keys import Gate
from serving.http.limits import RateLimit, SizeLimit
from serving.http.live import live_routes
from serving.http.metrics import CONTENT_TYPE, Metrics
from serving.http.players import player_routes
from serving.http.queue import TurnQueue
from serving.http.server import Server
from serving.http.sessions import Sessions, session_routes
from serving.http.shops import check_name, shop_routes
from serving.http.turns import turn_routes
from serving.store.database import MEMORY
from serving.store.episodes import Episodes
from serving.store.keys import Keys
from serving.store.repository import Store

VERSION = "/v1"


@dataclass(frozen=True)
class Limits:
    """What a server takes on. Sessions beyond `sessions`, or unused for `idle_s`, are forgotten.
    `at_once` turns run, `queue` wait. A request has at most `body` bytes; one caller may make
    `per_minute` requests (0: any number)."""

    sessions: int = 1000
    idle_s: float = 3600.0
    at_once: int = 16
    queue: int = 64
    body: int = 1 << 20
    per_minute: int = 0


def make_app(
    engine: Engine,
    worlds: Mapping[str, World],
    guard: Guard,
    *,
    tasks: Mapping[str, Task] | None = None,
    characters: Engine | None = None,
    method: str = DEFAULT_METHOD,
    ask_below: float = 0.0,
    limits: Limits | None = None,
    confirmation: str | None = None,
    api_key: str | None = None,
    origins: tuple[str, ...] = (),
    linker: Linker | None = None,
    store: Store | None = None,
    restock: bool = False,
) -> FastAPI:
    """The application. `worlds` are shops by name, the first where a session names none; `tasks`
    the other characters, which `characters` plays if it is another engine. `confirmation` is what
    closes a sale in all shops, where it is not left to each; `origins` the web pages whose scripts
    may call it; `linker` reads what players type. Sessions are kept in `store`, in memory without
    one; with `restock` all shelves are filled first."""
    limits = limits or Limits()
    episodes = Episodes(store or Store(MEMORY), linker)
    for world in worlds.values():
        shop = with_confirmation(check_name(world), confirmation)
        episodes.put_shop(shop, shared=True, restock=restock, change="file")
    queue = TurnQueue(limits.at_once, limits.queue)
    server = Server(
        engine=engine,
        guard=guard,
        characters=characters or engine,
        ask_below=ask_below,
        method=get_method(method),
        tasks=tasks or {},
        default_shop=next(iter(worlds)),
        confirmation=confirmation,
        episodes=episodes,
        sessions=Sessions(episodes, lambda: queue.busy, limits.sessions, limits.idle_s),
        queue=queue,
        metrics=Metrics(),
        threads=ThreadPoolExecutor(limits.at_once, thread_name_prefix="turn"),
    )
    gate = Gate(Keys(episodes.store), api_key, origins, RateLimit(limits.per_minute))
    app = bare_app(origins, server)
    app.add_middleware(SizeLimit, most=limits.body)
    app.include_router(_state_routes(server))
    guarded: dict[str, Any] = {
        "dependencies": [Depends(HTTPBearer(auto_error=False)), Depends(gate.check)],
        "responses": answers(401, 403, 413, 429),
    }
    app.include_router(_metrics_route(server), **guarded)
    parts = (
        character_routes, shop_routes, player_routes, session_routes, turn_routes,
        completion_routes,
    )  # fmt: skip
    for routes in parts:
        app.include_router(routes(server), prefix=VERSION, **guarded)
    app.include_router(live_routes(server, gate), prefix=VERSION)
    app.state.server = server
    return app


def bare_app(origins: tuple[str, ...], server: Server | None = None) -> FastAPI:
    """The application without routes: who may call it from a page, and how errors are told."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        if server is not None:
            server.threads.shutdown(wait=False, cancel_futures=True)

    summary = __doc__.splitlines()[0]
    app = FastAPI(title="Haggle", version=__version__, summary=summary, lifespan=life)
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(origins), allow_methods=["*"], allow_headers=["*"]
        )
    tell_errors(app)
    return app


def _state_routes(server: Server) -> APIRouter:
    """Whether the server lives, and whether it takes turns. Both are open to all."""
    routes = APIRouter(tags=["state"])

    @routes.get("/healthz")
    def healthz() -> dict[str, str]:
        """That it answers."""
        return {"status": "ok"}

    @routes.get("/readyz", responses={503: {"description": "not now; `reason` says why"}})
    def readyz() -> JSONResponse:
        """Whether turns are taken: the database answers, and the server is not stopping."""
        reason = "the server is stopping" if server.queue.draining else ""
        try:
            sessions = server.episodes.store.count()
        except HaggleError as error:
            sessions, reason = 0, reason or error.message
        if reason:
            return JSONResponse({"status": "not ready", "reason": reason}, 503)
        told = {
            "status": "ready", "engine": server.engine.name, "model": server.engine.model,
            "guard": server.guard, "method": server.method.name, "sessions": sessions,
        }  # fmt: skip
        return JSONResponse(told)

    return routes


def _metrics_route(server: Server) -> APIRouter:
    routes = APIRouter(tags=["state"])
    watched = server.metrics.watch
    watched("haggle_queue_length", "Turns that wait.", lambda: server.queue.waiting)
    watched("haggle_turns_running", "Turns that run.", lambda: server.queue.running)
    watched("haggle_sessions", "Sessions that are kept.", server.episodes.store.count)

    @routes.get("/metrics", response_class=Response)
    def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(server.metrics.text(), media_type=CONTENT_TYPE)

    return routes
