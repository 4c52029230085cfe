"""Forks a server of merchants for each line it reads: database, shop, where to die, how many seconds an
answer takes (tabs between).

The scripted engine offers a rope and reviews it twice, in turns; a plain yes to a review is read by code.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

import uvicorn
from sqlalchemy import event

from haggle.trade.merchant import Merchant
from haggle.trade.session import Session
from haggle.trade.world_io import load_world, named_world
from serving.engines import EngineConfig
from serving.engines.config import ScriptedOptions
from serving.engines.scripted import ScriptedEngine
from serving.http.app import make_app
from serving.store.database import MEMORY
from serving.store.repository import Store

OFFER = '{"last":"","state":"OFFER_SELL","cart":[["%s",1]],"say":"__CART__ for __PRICE__."}'
REVIEW = '{"last":"","state":"FINAL_CHECK","say":"So __CART__ for __PRICE__ __CURRENCY__, yes?"}'


def serve(database: str, shop: str, die_at: str, seconds: float, listening: socket.socket) -> None:
    """Serve until killed."""
    store = Store(database)
    world = load_world(shop)
    # An odd number: of two players in step neither hears the same answer for ever.
    answers = (OFFER % world.items[0].item_name, REVIEW, REVIEW)
    options = ScriptedOptions(answers=answers, again=True, seconds=seconds)
    engine = ScriptedEngine(EngineConfig(engine="scripted", scripted=options))
    app = make_app(engine, {"stall": world}, "state", store=store)

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if die_at == "COMMIT":
        # Runs in place of the commit's end: the transaction is on the disk, the answer is not sent.
        event.listen(store.engine, "checkin", lambda *_: die() if sold else None)
    sold: list[bool] = []

    @event.listens_for(store.engine, "before_cursor_execute")
    def look(_c: object, _cursor: object, statement: str, *_: object) -> None:
        sold.extend([True] if statement.startswith("INSERT INTO sales") else [])
        if statement.startswith(die_at):
            die()

    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    server.run(sockets=[listening])


def warm_up() -> None:
    """Read what a first turn reads (words, prompts, procedure), for all children."""
    world = named_world("frontier_shop")
    engine = ScriptedEngine((OFFER % world.items[0].item_name, REVIEW, REVIEW))
    session, merchant = Session(world), Merchant(engine)
    for line in (world.items[0].item_name, "deal", "yes"):
        merchant.reply(session, line)
    Store(MEMORY).close()


def main() -> None:
    """Fork for each line; the child's id and port are printed at once: it listens already."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    warm_up()
    for line in sys.stdin:
        database, shop, die_at, seconds = line.rstrip("\n").split("\t")
        listening = socket.create_server(("127.0.0.1", 0))
        pid = os.fork()
        if pid == 0:
            serve(database, shop, die_at, float(seconds), listening)
            os._exit(0)
        print(pid, listening.getsockname()[1], flush=True)
        listening.close()


if __name__ == "__main__":
    main()
