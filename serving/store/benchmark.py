"""Haggle's own work for a turn, without a model: with the session in memory, and in a database.

    python -m serving.store.benchmark [DATABASE]

DATABASE is as `haggle serve --database` takes it; by default a SQLite file in a temporary folder.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from haggle.trade.merchant import Merchant
from haggle.trade.methods import DEFAULT_METHOD, get_method
from haggle.trade.session import Session
from haggle.trade.world_io import named_world
from serving.engines import EngineConfig
from serving.engines.config import ScriptedOptions
from serving.engines.scripted import ScriptedEngine
from serving.store.episodes import Episodes
from serving.store.repository import Store

ROUNDS = 60  # of three turns each: an order, its review, the sale
LINES = ("one {item} please", "deal", "yes")
ANSWERS = (
    '{"last":"","state":"OFFER_SELL","cart":[["%s",1]],"say":"__CART__ for __PRICE__."}',
    '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"__CART__ for __PRICE__, yes?"}',
    '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Done."}',
)


def measure(database: str) -> tuple[list[float], list[float]]:
    """Milliseconds of each turn: without a database, and with this one."""
    world = named_world("frontier_shop")
    item = world.inventory[0]
    world = world.model_copy(
        update={"items": [i.model_copy(update={"quantity": 9999}) for i in world.inventory]}
    )
    answers = (ANSWERS[0] % item.item_name, *ANSWERS[1:])
    options = ScriptedOptions(answers=answers, again=True)
    engine = ScriptedEngine(EngineConfig(engine="scripted", scripted=options))
    merchant = Merchant(engine)
    session = Session(world)
    store = Store(database, migrate=True)
    episodes = Episodes(store)
    shop = episodes.put_shop(world, shared=False)
    number, _ = episodes.visit(shop, get_method(DEFAULT_METHOD))

    def stored(line: str) -> None:
        held = episodes.begin(number)
        assert held is not None
        episodes.settle(held, merchant.reply(held.episode, line))

    lines = [line.format(item=item.item_name) for line in LINES] * ROUNDS
    free = [_timed(lambda line: merchant.reply(session, line), line) for line in lines]
    kept = [_timed(stored, line) for line in lines]
    assert len(session.sales) == len(store.sales(shop)) == ROUNDS
    store.close()
    return free[3:], kept[3:]  # the first round reads word lists and prompts


def _timed(work: Callable[[str], object], line: str) -> float:
    started = time.perf_counter()
    work(line)
    return 1000 * (time.perf_counter() - started)


def main() -> None:
    """Print both medians."""
    with tempfile.TemporaryDirectory() as folder:
        database = sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "s.sqlite3")
        for name, times in zip(("in memory", "database"), measure(database), strict=True):
            ninth = statistics.quantiles(times, n=10)[-1]
            print(f"{name}: median {statistics.median(times):.2f} ms, 90% below {ninth:.2f} ms")


if __name__ == "__main__":
    main()
