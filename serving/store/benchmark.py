"""Haggle's own work for a turn, without a model: with the session in memory, and in a database.

Each sale begins a new session. Times are by the clock, and of the processor, which tell the truth
on a busy machine.

    python -m serving.store.benchmark [DATABASE]

DATABASE is as `haggle serve --database` takes it; by default a SQLite file in a temporary folder.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from haggle.trade.merchant import Merchant
from haggle.trade.methods import DEFAULT_METHOD, get_method
from haggle.trade.session import Session, with_stock
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


Times = list[tuple[float, float]]  # by the clock and of the processor, in milliseconds


def measure(database: str) -> tuple[Times, Times]:
    """The times of each turn: without a database, and with this one."""
    world = named_world("frontier_shop")
    item = world.inventory[0]
    world = with_stock(world, {good.item_id: 9999 for good in world.inventory})
    answers = (ANSWERS[0] % item.item_name, *ANSWERS[1:])
    options = ScriptedOptions(answers=answers, again=True)
    merchant = Merchant(ScriptedEngine(EngineConfig(engine="scripted", scripted=options)))
    store = Store(database, migrate=True)
    episodes = Episodes(store)
    shop = episodes.put_shop(world, shared=False)
    free: Times = []
    kept: Times = []
    for _ in range(ROUNDS):
        session = Session(world)
        number, _ = episodes.visit(shop, get_method(DEFAULT_METHOD))

        said = [line.format(item=item.item_name) for line in LINES]
        free += [_timed(partial(merchant.reply, session), line) for line in said]
        kept += [_timed(partial(_stored, episodes, merchant, number), line) for line in said]
    assert len(store.sales(shop)) == ROUNDS
    store.close()
    return free[3:], kept[3:]  # the first round reads word lists and prompts


def _stored(episodes: Episodes, merchant: Merchant, number: str, line: str) -> None:
    held = episodes.begin(number)
    assert held is not None
    episodes.settle(held, merchant.reply(held.episode, line))


def _timed(work: Callable[[str], object], line: str) -> tuple[float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    work(line)
    return 1000 * (time.perf_counter() - clock), 1000 * (time.process_time() - processor)


def main() -> None:
    """Print the medians."""
    with tempfile.TemporaryDirectory() as folder:
        database = sys.argv[1] if len(sys.argv) > 1 else str(Path(folder) / "s.sqlite3")
        for name, times in zip(("in memory", "database"), measure(database), strict=True):
            clock, processor = (statistics.median(column) for column in zip(*times, strict=True))
            print(f"{name}: median {clock:.2f} ms by the clock, {processor:.2f} ms of processor")


if __name__ == "__main__":
    main()
