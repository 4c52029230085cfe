"""Players and their purses."""

from __future__ import annotations

from fastapi import APIRouter

from serving.http.errors import answers
from serving.http.records import Player, PlayerName, Purse
from serving.http.server import Server


def player_routes(server: Server) -> APIRouter:
    """Routes of players."""
    routes = APIRouter(prefix="/players", tags=["players"], responses=answers(422, 503))
    store = server.episodes.store

    @routes.put("/{name:path}")
    def fill(name: PlayerName, purse: Purse) -> Player:
        """Say what a player has to spend from now on. A sale takes its price from that. With null
        the game keeps the money, and every sale can be paid."""
        store.put_player(name, purse.purse)
        return Player(name=name, purse=store.purse(name))

    return routes
