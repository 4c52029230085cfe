"""Merchants over HTTP for a game that is not written in Python (`haggle serve`).

A session is one player in one shop; its ledger lives here, so a game sends lines and gets back what
the merchant says and what the player holds. Interactive documentation stands under `/docs`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, Depends, FastAPI, status
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import Field
from starlette.exceptions import HTTPException

from haggle import __version__
from haggle.core.config import Record, parse
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError, nearest
from haggle.core.json_text import to_json
from haggle.core.text import MAX_UTTERANCE
from haggle.language.reading import Linker
from haggle.trade.merchant import Guard, Merchant
from haggle.trade.methods import DEFAULT_METHOD, Method, get_method
from haggle.trade.records import TurnRecord
from haggle.trade.response import ItemLine, MerchantResponse
from haggle.trade.session import Session
from haggle.trade.world import World
from haggle.trade.world_io import with_confirmation
from serving.chat import spoken_turn
from serving.http_errors import problem_of, told, told_by_the_framework, told_unreadable
from serving.http_sessions import Refused, Sessions, Speaking
from serving.store.database import MEMORY
from serving.store.episodes import Episodes
from serving.store.repository import Store

_BEARER = HTTPBearer(auto_error=False)


class Opening(Record):
    """What opens a session: a shop that is served, by name, or a shop of the game's own."""

    world: str | dict[str, Any] | None = None


class Line(Record):
    """What the player says."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_UTTERANCE)]
    stream: bool = False


class Confirmation(Record):
    """The id of the review on the table, which closes its sale."""

    review: Annotated[str, Field(min_length=1, max_length=100)]


class Withheld(Record):
    """Why a sale stays open, and the words of the player that say so."""

    reason: str
    words: str


class Sold(Record):
    """A sale that was confirmed, and its total."""

    items: list[ItemLine]
    price: float


class Visit(Record):
    """Where a session stands: the true state, the cart with its total, sales, what is left.

    Prices of lines are those of one piece. `review` is the id of the review on the table.
    """

    session: str
    world: str
    merchant: str
    currency: str
    state: str
    cart: list[ItemLine]
    price: float | None
    sales: list[Sold]
    shelf: list[ItemLine]
    ended: bool
    review: str | None


class Answer(Record):
    """A turn: the line to show, what it did, and the merchant's whole response (ASTP, Listing 1).

    `sale` is the sale that this turn confirmed. `review` is the id of the review on the table, for
    `POST .../confirm`; `withheld` says why a sale stays open. `interventions` names what code
    changed to make the model's answer safe.
    """

    say: str
    last: str
    state: str
    cart: list[ItemLine]
    price: float | None
    sale: Sold | None
    ended: bool
    seconds: float
    review: str | None
    withheld: Withheld | None
    interventions: list[str]
    response: MerchantResponse


def make_app(
    engine: Engine,
    worlds: Mapping[str, World],
    guard: Guard,
    *,
    method: str = DEFAULT_METHOD,
    most: int = 1000,
    idle: float = 3600.0,
    confirmation: str | None = None,
    api_key: str | None = None,
    origins: tuple[str, ...] = (),
    linker: Linker | None = None,
    store: Store | None = None,
    restock: bool = False,
) -> FastAPI:
    """The application. `worlds` are the shops served by name, the first where none is asked for;
    `confirmation` what closes a sale in all of them, where it is not left to each; `origins` the
    web pages whose scripts may call it; `linker` reads what players type. Sessions are kept in
    `store`, in memory without one; with `restock` all shelves are filled first."""
    episodes = Episodes(store or Store(MEMORY), linker)
    sessions = Sessions(episodes, most, idle)
    shops = {
        name: episodes.put_shop(
            with_confirmation(world, confirmation), shared=True, restock=restock
        )
        for name, world in worlds.items()
    }
    guarded = [Depends(_key_check(api_key))]
    app = bare_app(origins)

    @app.get("/health")
    def health() -> dict[str, Any]:
        """Whether it answers, with which model and how many sessions."""
        return {
            "status": "ok", "engine": engine.name, "model": engine.model, "guard": guard,
            "sessions": len(sessions),
        }  # fmt: skip

    visits = _visits(engine, shops, episodes, sessions, get_method(method), confirmation)
    app.include_router(visits, dependencies=guarded)
    app.include_router(_talk(Merchant(engine, guard), sessions), dependencies=guarded)
    return app


def bare_app(origins: tuple[str, ...]) -> FastAPI:
    """The application without routes: who may call it from a page, and how errors are told."""
    app = FastAPI(title="Haggle", version=__version__, summary=__doc__.splitlines()[0])
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(origins), allow_methods=["*"], allow_headers=["*"]
        )
    app.add_exception_handler(HaggleError, told)
    app.add_exception_handler(RequestValidationError, told_unreadable)
    app.add_exception_handler(HTTPException, told_by_the_framework)
    return app


def _key_check(api_key: str | None) -> Callable[..., None]:
    """What lets a request in: the key, where there is one. Raises Refused (401)."""

    def allowed(given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> None:
        sent = given.credentials if given else ""
        if api_key and not secrets.compare_digest(sent.encode(), api_key.encode()):
            raise Refused(
                status.HTTP_401_UNAUTHORIZED,
                "the key is missing or wrong",
                where="Authorization",
                hint="send `Authorization: Bearer KEY`",
            )

    return allowed


def _visits(
    engine: Engine,
    shops: Mapping[str, int],
    episodes: Episodes,
    sessions: Sessions,
    method: Method,
    confirmation: str | None,
) -> APIRouter:
    """Routes that list the shops, open sessions in them, look at them and close them."""
    routes = APIRouter()

    @routes.get("/worlds")
    def worlds() -> dict[str, list[ItemLine]]:
        """The shops served by name, and their shelves."""
        return {name: _shelf(episodes.shop(shop)) for name, shop in shops.items()}

    @routes.post("/sessions", status_code=status.HTTP_201_CREATED)
    def open_session(opening: Opening) -> Visit:
        """Open a session in a shop."""
        number, session = sessions.open(_shop(opening, shops, confirmation), method)
        warm = getattr(engine, "warm", None)
        if warm is not None:
            warm(session.messages())
        return _visit(number, session)

    @routes.get("/sessions/{number}")
    def look(number: str) -> Visit:
        """Where a session stands."""
        return _visit(number, sessions.find(number))

    @routes.delete("/sessions/{number}", status_code=status.HTTP_204_NO_CONTENT)
    def leave(number: str) -> None:
        """Forget a session."""
        sessions.close(number)

    return routes


def _talk(merchant: Merchant, sessions: Sessions) -> APIRouter:
    """Routes of a turn: say a line, close the sale of a review."""
    routes = APIRouter()

    @routes.post("/sessions/{number}/turns", response_model=Answer)
    def say(number: str, line: Line) -> Any:
        """Say a line; with `stream` server-sent events: `say` pieces, then `turn` or `error`."""
        if line.stream:
            sessions.check(number)  # told as a status, before the stream begins
            return _Stream(_events(merchant, sessions, number, line.text))
        started = time.perf_counter()
        with sessions.talking(number) as speaking:
            return _settled(speaking, merchant.reply(speaking.session, line.text), started)

    @routes.post("/sessions/{number}/confirm", response_model=Answer)
    def confirm(number: str, confirmation: Confirmation) -> Any:
        """Close the sale of the review on the table, whatever was said; 409 for another id."""
        started = time.perf_counter()
        with sessions.talking(number) as speaking:
            try:
                turn = speaking.session.confirm(confirmation.review)
            except HaggleError as error:
                raise Refused(
                    status.HTTP_409_CONFLICT, error.message, error.where, error.hint
                ) from error
            return _settled(speaking, turn, started)

    return routes


class _Stream(StreamingResponse):
    """Server-sent events. Their source is closed however the response ends: a player who leaves
    amid a line must not leave the session, or the engine, waiting."""

    def __init__(self, source: Generator[str]) -> None:
        super().__init__(source, media_type="text/event-stream")
        self._source = source

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(self._source.close)


def _events(merchant: Merchant, sessions: Sessions, number: str, text: str) -> Generator[str]:
    """Server-sent events of a turn. What was streamed may be worded otherwise by the finished turn,
    whose line counts."""
    started = time.perf_counter()
    try:
        with (
            sessions.talking(number) as speaking,
            closing(spoken_turn(merchant, speaking.session, text)) as spoken,
        ):
            for piece in spoken:
                if isinstance(piece, TurnRecord):
                    told = _settled(speaking, piece, started).model_dump(mode="json")
                else:
                    yield _event("say", {"text": piece})
        yield _event("turn", told)
    except HaggleError as error:
        yield _event("error", problem_of(error))


def _event(kind: str, data: Mapping[str, Any]) -> str:
    return f"event: {kind}\ndata: {to_json(data)}\n\n"


def _shop(opening: Opening, shops: Mapping[str, int], confirmation: str | None) -> int | World:
    """The shop asked for: a known one's id, or the game's own. Raises Refused (404) for an unknown
    name, HaggleError for a bad shop."""
    if isinstance(opening.world, dict):
        return with_confirmation(parse(opening.world, World, "world"), confirmation)
    name = opening.world or next(iter(shops))
    if name not in shops:
        raise Refused(
            status.HTTP_404_NOT_FOUND,
            f"no shop is called {name!r}",
            where="world",
            hint=nearest(name, shops),
        )
    return shops[name]


def _shelf(world: World) -> list[ItemLine]:
    return [
        ItemLine(item_id=i.item_id, item_name=i.item_name, quantity=i.quantity or 0, price=i.price)
        for i in world.inventory
    ]


def _goods(session: Session, cart: Mapping[str, int]) -> list[ItemLine]:
    items = session.world.by_id
    return [
        ItemLine(
            item_id=key, item_name=items[key].item_name, quantity=number, price=items[key].price
        )
        for key, number in cart.items()
    ]


def _sold(session: Session, number: int) -> Sold:
    sale = session.sales[number]
    return Sold(items=_goods(session, sale.items), price=sale.price)


def _visit(number: str, session: Session) -> Visit:
    world = session.world
    return Visit(
        session=number,
        world=world.name,
        merchant=world.merchant.name,
        currency=world.currency,
        state=session.state,
        cart=_goods(session, session.cart),
        price=session.sale_price,
        sales=[_sold(session, at) for at in range(len(session.sales))],
        shelf=_shelf(world),
        ended=session.ended,
        review=session.review.id if session.review else None,
    )


def _settled(speaking: Speaking, turn: TurnRecord, started: float) -> Answer:
    """Store the turn, and tell it as it stands."""
    before = len(speaking.held.before.sales)
    session, told = speaking.settle(turn)
    return _answer(session, told, before, time.perf_counter() - started)


def _answer(session: Session, turn: TurnRecord, before: int, seconds: float) -> Answer:
    return Answer(
        say=turn.response.npc_dialogue,
        last=turn.last,
        state=turn.state,
        cart=_goods(session, session.cart),
        price=session.sale_price,
        sale=_sold(session, -1) if len(session.sales) > before else None,
        ended=session.ended,
        seconds=round(seconds, 3),
        review=session.review.id if session.review else None,
        withheld=Withheld(reason=turn.withheld, words=turn.withheld_words)
        if turn.withheld
        else None,
        interventions=turn.interventions,
        response=turn.response,
    )
