"""Merchants over HTTP for a game that is not written in Python (`haggle serve`).

A session is one player in one shop; its ledger lives here, so a game sends lines and gets back what
the merchant says and what the player holds. Interactive documentation stands under `/docs`.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, status
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import Field

from haggle import __version__
from haggle.config import Record, parse
from haggle.engine import Engine
from haggle.errors import HaggleError, nearest
from haggle.merchant import Guard, Merchant
from haggle.methods import DEFAULT_METHOD, get_method
from haggle.records import TurnRecord
from haggle.response import ItemLine, MerchantResponse
from haggle.session import Session
from haggle.storage import dumps
from haggle.world import World
from serving.chat import spoken_pieces

_BEARER = HTTPBearer(auto_error=False)
MAX_LINE = 2000  # characters of a player's line


class Opening(Record):
    """What opens a session: a shop that is served, by name, or a shop of the game's own."""

    world: str | dict[str, Any] | None = None


class Line(Record):
    """What the player says."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_LINE)]
    stream: bool = False


class Sold(Record):
    """A sale that was confirmed, and its total."""

    items: list[ItemLine]
    price: float


class Visit(Record):
    """Where a session stands: the true state, the cart with its total, sales, what is left.

    Prices of lines are those of one piece.
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


class Answer(Record):
    """A turn: the line to show, what it did, and the merchant's whole response (ASTP, Listing 1).

    `sale` is the sale that this turn confirmed. `interventions` names what code changed to make
    the model's answer safe.
    """

    say: str
    last: str
    state: str
    cart: list[ItemLine]
    price: float | None
    sale: Sold | None
    ended: bool
    seconds: float
    interventions: list[str]
    response: MerchantResponse


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


class Counter:
    """The sessions of a server: opened, found, forgotten.

    At most `most` are kept; those not used for `idle` seconds go first, then the one used longest
    ago. One that is answering stays.
    """

    def __init__(self, most: int, idle: float) -> None:
        self._most, self._idle = most, idle
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._lock = threading.Lock()

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
                    status.HTTP_503_SERVICE_UNAVAILABLE,
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
        if held.session.state == "END":
            raise Refused(
                status.HTTP_409_CONFLICT,
                "the merchant has ended this conversation",
                where=number,
                hint="open another session",
            )
        return held

    @contextmanager
    def talking(self, number: str) -> Iterator[Session]:
        """A session, for one turn. Raises Refused as `check` does."""
        held = self.check(number)
        if not held.busy.acquire(blocking=False):
            raise _busy(number)
        try:
            yield held.session
        finally:
            held.busy.release()

    def __len__(self) -> int:
        return len(self._held)


def make_app(
    engine: Engine,
    worlds: Mapping[str, World],
    guard: Guard,
    *,
    method: str = DEFAULT_METHOD,
    most: int = 1000,
    idle: float = 3600.0,
    api_key: str | None = None,
    origins: tuple[str, ...] = (),
) -> FastAPI:
    """The application. `worlds` are the shops served by name, the first where none is asked for;
    `origins` the web pages whose scripts may call it."""
    counter = Counter(most, idle)
    merchant = Merchant(engine, guard)

    def allowed(given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> None:
        if api_key and not (given and secrets.compare_digest(given.credentials, api_key)):
            raise Refused(
                status.HTTP_401_UNAUTHORIZED,
                "the key is missing or wrong",
                where="Authorization",
                hint="send `Authorization: Bearer KEY`",
            )

    app = FastAPI(title="Haggle", version=__version__, summary=__doc__.splitlines()[0])
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(origins), allow_methods=["*"], allow_headers=["*"]
        )
    app.add_exception_handler(HaggleError, _told)
    app.add_exception_handler(RequestValidationError, _told_unreadable)
    guarded = [Depends(allowed)]

    @app.get("/health")
    def health() -> dict[str, Any]:
        """Whether it answers, with which model and how many sessions."""
        return {
            "status": "ok", "engine": engine.name, "model": engine.model, "guard": guard,
            "sessions": len(counter),
        }  # fmt: skip

    @app.get("/worlds", dependencies=guarded)
    def shops() -> dict[str, list[ItemLine]]:
        """The shops served by name, and their shelves."""
        return {name: _shelf(world) for name, world in worlds.items()}

    @app.post("/sessions", status_code=status.HTTP_201_CREATED, dependencies=guarded)
    def open_session(opening: Opening) -> Visit:
        """Open a session in a shop."""
        session = Session(_world(opening, worlds), method=get_method(method))
        warm = getattr(engine, "warm", None)
        if warm is not None:
            warm(session.messages())
        number = counter.open(session)
        return _visit(number, session)

    @app.get("/sessions/{number}", dependencies=guarded)
    def look(number: str) -> Visit:
        """Where a session stands."""
        return _visit(number, counter.find(number).session)

    @app.delete("/sessions/{number}", status_code=status.HTTP_204_NO_CONTENT, dependencies=guarded)
    def leave(number: str) -> None:
        """Forget a session."""
        counter.close(number)

    @app.post("/sessions/{number}/turns", response_model=Answer, dependencies=guarded)
    def say(number: str, line: Line) -> Any:
        """Say a line; with `stream` server-sent events: `say` pieces, then `turn` or `error`."""
        if line.stream:
            counter.check(number)  # told as a status, before the stream begins
            events = _events(merchant, counter, number, line.text)
            return StreamingResponse(events, media_type="text/event-stream")
        with counter.talking(number) as session:
            started, before = time.perf_counter(), len(session.sales)
            turn = merchant.reply(session, line.text)
            return _answer(session, turn, before, time.perf_counter() - started)

    return app


def _events(merchant: Merchant, counter: Counter, number: str, text: str) -> Iterator[str]:
    """Server-sent events of a turn. What was streamed may be worded otherwise by the finished turn,
    whose line counts."""
    finished: list[TurnRecord] = []

    def pieces(session: Session) -> Iterator[str]:
        for piece in merchant.stream(session, text):
            if isinstance(piece, TurnRecord):
                finished.append(piece)
            else:
                yield piece

    started = time.perf_counter()
    try:
        with counter.talking(number) as session:
            before = len(session.sales)
            for words in spoken_pieces(pieces(session)):
                yield _event("say", {"text": words})
            answer = _answer(session, finished[0], before, time.perf_counter() - started)
        yield _event("turn", answer.model_dump(mode="json"))
    except HaggleError as error:
        yield _event("error", _problem(error))


def _event(kind: str, data: Mapping[str, Any]) -> str:
    return f"event: {kind}\ndata: {dumps(data)}\n\n"


def _world(opening: Opening, worlds: Mapping[str, World]) -> World:
    """The shop asked for. Raises Refused (404) for an unknown name, HaggleError for a bad shop."""
    if isinstance(opening.world, dict):
        return parse(opening.world, World, "world")
    name = opening.world or next(iter(worlds))
    if name not in worlds:
        raise Refused(
            status.HTTP_404_NOT_FOUND,
            f"no shop is called {name!r}",
            where="world",
            hint=nearest(name, worlds),
        )
    return worlds[name]


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
        ended=session.state == "END",
    )


def _answer(session: Session, turn: TurnRecord, before: int, seconds: float) -> Answer:
    return Answer(
        say=turn.response.npc_dialogue,
        last=turn.last,
        state=turn.state,
        cart=_goods(session, session.cart),
        price=session.sale_price,
        sale=_sold(session, -1) if len(session.sales) > before else None,
        ended=session.state == "END",
        seconds=round(seconds, 3),
        interventions=turn.interventions,
        response=turn.response,
    )


def _busy(number: str) -> Refused:
    return Refused(
        status.HTTP_409_CONFLICT,
        "the merchant is still answering",
        where=number,
        hint="send the next line when the turn before it is finished",
    )


def _unknown(number: str) -> Refused:
    return Refused(
        status.HTTP_404_NOT_FOUND,
        "there is no such session; it was closed, or left alone for too long",
        where=number,
        hint="open one: POST /sessions",
    )


def _problem(error: HaggleError) -> dict[str, str]:
    told = {"message": error.message, "where": error.where, "hint": error.hint}
    return {key: value for key, value in told.items() if value}


def _told(request: Request, error: Exception) -> JSONResponse:
    """A HaggleError as JSON: what was wrong, where, what to do."""
    assert isinstance(error, HaggleError)
    code = error.code if isinstance(error, Refused) else status.HTTP_400_BAD_REQUEST
    return JSONResponse({"error": _problem(error)}, status_code=code)


def _told_unreadable(request: Request, error: Exception) -> JSONResponse:
    """A body that is not what it should be, in the same form."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "body"
    problem = {"message": first["msg"], "where": where, "hint": "see /docs"}
    return JSONResponse({"error": problem}, status_code=status.HTTP_422_UNPROCESSABLE_CONTENT)
