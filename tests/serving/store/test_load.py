"""Customers at two server processes that share one database; the check of the books bites."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eval.load import differences
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_write_text
from haggle.trade.world import World
from serving.store.repository import Store


def sale(number: int, session: str) -> dict[str, Any]:
    return {"id": number, "session": session}


def test_a_lost_and_a_doubled_sale_are_found() -> None:
    told = Counter({"a": 2, "b": 1})
    right = [sale(2, "a"), sale(3, "a"), sale(4, "b")]
    found = differences(told, [sale(1, "old"), *right], [sale(1, "old")])
    assert found == {"sales": 3, "lost": 0, "doubled": 0}
    assert differences(told, right[1:])["lost"] == 1
    assert differences(told, [*right, sale(5, "b")])["doubled"] == 1


@pytest.fixture
def shop_file(stall: World, tmp_path: Path) -> Path:
    path = tmp_path / "stall.json"
    atomic_write_text(path, stall.model_dump_json())
    return path


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["bench", "load", "--shop", "stall", "--quiet", *words])


def test_two_servers_on_one_database_keep_the_books(
    nursery: Any, shop_file: Path, database: str, tmp_path: Path
) -> None:
    Store(database, migrate=True)
    servers = [nursery(database, shop_file) for _ in range(2)]
    urls = [str(server.client.base_url) for server in servers]
    out = tmp_path / "load.json"
    result = run(*urls, "--sessions", "12", "--turns", "200", "--out", str(out))
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["load"]["turns"] >= 200 and found["errors"] == {}
    assert found["refused"] == {"HTTP 429": 0, "HTTP 503": 0}
    assert "refused" in result.output and "HTTP 429" in result.output  # told where there are none
    assert found["books"]["sales"] > 10
    assert found["books"]["lost"] == found["books"]["doubled"] == 0
    assert all(weight > 0 for weighed in found["memory_mib"] for weight in weighed)
    for server in servers:
        server.kill()


def test_what_is_wrong_is_told(nursery: Any, shop_file: Path, tmp_path: Path) -> None:
    databases = [str(tmp_path / f"{name}.sqlite3") for name in "ab"]
    for database in databases:
        Store(database, migrate=True)
    servers = [nursery(database, shop_file) for database in databases]
    urls = [str(server.client.base_url) for server in servers]
    run(urls[0], "--sessions", "1", "--turns", "12")
    error = run(*urls).exception
    assert isinstance(error, HaggleError) and "do not share a database" in str(error)
    other = CliRunner().invoke(app, ["bench", "load", urls[0], "--shop", "inn"]).exception
    assert isinstance(other, HaggleError) and "HTTP 404" in str(other)
    for server in servers:
        server.kill()
    nobody = run(urls[0]).exception
    assert isinstance(nobody, HaggleError) and "nobody answers" in str(nobody)
