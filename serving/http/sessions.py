"""Sessions: opened, looked at, forgotten. They are stored; at most a number of them is kept."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, BackgroundTasks

from haggle.core.config import located, parse
from haggle.core.errors import nearest
from haggle.sop.task import with_profile
from haggle.trade.world import World
from haggle.trade.world_io import with_confirmation
from serving.http.errors import Refused, answers
from serving.http.records import (
    MERCHANT,
    Opening,
    PastTurn,
    Receipt,
    Visit,
    past_turn,
    receipt_of,
    visit_of,
)
from serving.http.server import Server
from serving.store.database import StoreError
from serving.store.episodes import Episodes, Held
from serving.store.repository import steady_time

_LOG = logging.getLogger(__name__)


class Sessions:
    """The sessions of a server: opened, found, forgotten.

    At most `most` are kept; those not used for `idle` seconds go first, then the one used longest
    ago. One of the `busy` ones stays.
    """

    def __init__(
        self, episodes: Episodes, busy: Callable[[], Collection[str]], most: int, idle: float
    ) -> None:
        self._episodes, self._busy, self._most, self._idle = episodes, busy, most, idle
        self._lock = threading.Lock()

    def open(self, begin: Callable[[], tuple[str, Any]]) -> tuple[str, Any]:
        """Open a session where there is room; its id, and the episode. Raises Refused (503) when
        all are answering."""
        with self._lock:
            store, busy = self._episodes.store, self._busy()
            store.forget(store.unused(steady_time() - self._idle, self._most - 1, busy))
            if store.count() >= self._most:
                raise Refused(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    f"all {self._most} sessions are answering",
                    hint="try again, or raise --max-sessions",
                    retry_after=1,
                )
            return begin()

    def close(self, number: str) -> None:
        """Forget a session. Raises Refused (404)."""
        if not self._episodes.store.forget([number]):
            raise _unknown(number)

    def find(self, number: str) -> Held:
        """A session that is kept, to look at. Raises Refused (404)."""
        held = self._episodes.load(number)
        if held is None:
            raise _unknown(number)
        try:
            self._episodes.store.touch(number)
        except StoreError as error:  # a look is worth more than a note of it
            _LOG.warning("%s", error)
        return held

    def begin(self, number: str) -> Held:
        """A session in which a line may be said now. Raises Refused (404, or 409 when the character
        has ended it)."""
        held = self._episodes.begin(number)
        if held is None:
            raise _unknown(number)
        if held.episode.ended:
            raise Refused(
                HTTPStatus.CONFLICT,
                "the character has ended this conversation",
                where=number,
                hint="open another session",
            )
        return held


def _unknown(number: str) -> Refused:
    return Refused(
        HTTPStatus.NOT_FOUND,
        "there is no such session; it was closed, or left alone for too long",
        where=number,
        hint="open one: POST /v1/sessions",
    )


def session_routes(server: Server) -> APIRouter:
    """Routes that open sessions, look at them and close them."""
    routes = APIRouter(tags=["sessions"], responses=answers(404, 422, 503))
    sessions, episodes = server.sessions, server.episodes

    @routes.post("/sessions", status_code=HTTPStatus.CREATED, responses=answers(400))
    def open_session(opening: Opening, tasks: BackgroundTasks) -> Visit:
        """Open a session with a character."""
        number, episode = sessions.open(_beginning(server, opening))
        agent = server.agent(episode)
        agent.warm(episode)
        tasks.add_task(agent.domain.read_ahead, episode)  # while the player reads
        return look(number)

    @routes.get("/sessions/{number}")
    def look(number: str) -> Visit:
        """Where a session stands."""
        held = sessions.find(number)
        player = held.row.player_id
        return visit_of(number, held, episodes.store.purse(player) if player else None)

    @routes.get("/sessions/{number}/turns")
    def turns(number: str) -> list[PastTurn]:
        """All turns so far, first one first."""
        sessions.find(number)
        return [past_turn(n, turn) for n, turn in enumerate(episodes.store.turns(number), start=1)]

    @routes.get("/sessions/{number}/receipts")
    def receipts(number: str) -> list[Receipt]:
        """The sales of a session, with lines and totals."""
        held = sessions.find(number)
        sales = episodes.store.sales(session_id=number)
        return [receipt_of(sale, held.setting) for sale in sales]

    @routes.delete("/sessions/{number}", status_code=HTTPStatus.NO_CONTENT)
    def leave(number: str) -> None:
        """Forget a session; its sales stay in the shop's ledger."""
        sessions.close(number)

    return routes


def _beginning(server: Server, opening: Opening) -> Callable[[], tuple[str, Any]]:
    """How the session asked for begins. Raises Refused (404) for an unknown character or shop,
    HaggleError for a bad shop."""
    episodes = server.episodes
    if opening.profile and opening.character == MERCHANT:
        raise Refused(
            HTTPStatus.BAD_REQUEST,
            "a merchant asks for no profile",
            where="profile",
            hint="leave `profile` out",
        )
    if opening.character != MERCHANT:
        task = server.task(opening.character)
        if opening.shop is not None:
            raise Refused(
                HTTPStatus.BAD_REQUEST,
                f"the character {opening.character!r} has no shop",
                where="shop",
                hint="leave `shop` out",
            )
        with located("profile"):
            task = with_profile(task, opening.profile)
        return lambda: episodes.talk(task, opening.player)
    if isinstance(opening.shop, dict):
        own = with_confirmation(parse(opening.shop, World, "shop"), server.confirmation)
        return lambda: episodes.visit(
            episodes.put_shop(own, shared=False), server.method, opening.player
        )
    shop = shop_id(server, opening.shop)
    return lambda: episodes.visit(shop, server.method, opening.player)


def shop_id(server: Server, name: str | None) -> int:
    """The id of a shop that is served, the default one without a name. Raises Refused (404)."""
    shops = server.episodes.store.shops()
    wanted = name or server.default_shop
    if wanted not in shops:
        raise Refused(
            HTTPStatus.NOT_FOUND,
            f"no shop is called {wanted!r}",
            where="shop",
            hint=nearest(wanted, shops),
        )
    return shops[wanted]
