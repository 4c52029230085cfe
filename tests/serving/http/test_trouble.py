"""A database that fails below a running server, an old one, and a clock that jumps."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

import serving.store
from haggle.trade.methods import get_method
from haggle.trade.world_io import named_world
from serving.store.database import database_url, open_database
from serving.store.episodes import Episodes
from serving.store.keys import Keys
from serving.store.repository import Store
from serving.store.schema import HEAD, VERSION_TABLE

TALK = '{"last":"","state":"CASUAL","say":"Fine weather."}'


def test_a_database_that_is_locked_costs_the_turn_and_nothing_else(serve, tmp_path):
    path = tmp_path / "s.sqlite3"
    with serve((TALK,) * 3, store=Store(str(path), wait_s=0.05)) as client:
        session = client.open()
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        refused = client.say(session)
        assert (
            refused.status_code == 503 and "another program" in refused.json()["error"]["message"]
        )
        unopened = client.post("/sessions", json={})
        assert unopened.status_code == 503
        assert refused.headers["retry-after"] == unopened.headers["retry-after"] == "1"
        *_, (kind, told) = client.events(client.say(session, stream=True).text)
        assert (kind, told["status"], told["retry_after"]) == ("error", 503, 1)
        assert client.look(session)["state"] == ""  # looking goes on
        other.execute("ROLLBACK")
        assert client.say(session).status_code == 200


def test_a_database_that_is_gone_is_told_by_readyz(serve, tmp_path):
    path = tmp_path / "s.sqlite3"
    with serve((), store=Store(str(path))) as client:
        assert client.root("/readyz").json()["status"] == "ready"
        with sqlite3.connect(path) as connection:
            connection.execute("ALTER TABLE sessions RENAME TO other")
        unready = client.root("/readyz")
        assert unready.status_code == 503 and unready.json()["reason"]
        assert client.root("/healthz").status_code == 200


def test_a_database_of_the_version_before_keeps_its_rows(tmp_path: Path):
    path = tmp_path / "s.sqlite3"
    engine = open_database(database_url(str(path)))
    config = Config()
    config.set_main_option(
        "script_location", str(Path(serving.store.__file__).with_name("migrations"))
    )
    with engine.execution_options(writes=True).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for statement in (
            "INSERT INTO definitions VALUES (1, 'd', 'trade', '{}')",
            "INSERT INTO shops VALUES (1, 'stall', 1, 3)",
            "INSERT INTO stock VALUES (1, 'rope', 7)",
            "INSERT INTO sessions VALUES ('s', 'trade', 1, 1, NULL, 1, '{}', 1.0, 1.0)",
            "INSERT INTO turns VALUES ('s', 1, '{\"player\": \"yes\"}', 4.0)",
            "INSERT INTO sales VALUES (1, 's', 'r', 1, 1, NULL, '{\"rope\": 2}', 40.0, 5.0)",
        ):
            connection.exec_driver_sql(statement)
    engine.dispose()
    store = Store(str(path))
    with store.reading() as connection:
        found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()
    (sale,) = store.sales(1)
    assert found == HEAD and store.stock(1) == {"rope": 7} and store.shops() == {"stall": 1}
    assert (sale.items, sale.lines, sale.currency) == ({"rope": 2}, None, None)
    assert store.turns("s") == [{"player": "yes"}] and store.answer("s", review="r") is None
    assert not Keys(store).exist()
    store.close()


@pytest.mark.parametrize("now", [4e9, 1e6])  # years later, years before
def test_a_clock_that_jumps_forgets_no_session(serve, monkeypatch, now):
    with serve((TALK,), limits={"sessions": 3}) as client:
        left, session = client.open(), client.open()
        monkeypatch.setattr(time, "time", lambda: now)
        client.open()
        answer = client.say(session).json()
        assert answer["state"] == "CASUAL" and 0 <= answer["seconds"] < 60
        client.open()
        found = [client.get(f"/sessions/{number}").status_code for number in (left, session)]
        assert found == [404, 200]  # the one unused longest made room, whatever the clock says


def test_a_player_is_made_known_and_keeps_the_purse():
    store = Store("memory")
    episodes = Episodes(store)
    shop = episodes.put_shop(named_world("frontier_shop"), shared=True)
    store.put_player("ann", 30.5)
    for player in ("ann", "bob", "bob"):
        episodes.visit(shop, get_method("astp-compact"), player)
    assert store.purse("ann") == 30.5 and store.purse("bob") is None and store.count() == 3
