"""Databases that cannot be used as they are: full, locked, damaged, of another version."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, text

import serving.store
from haggle.core.errors import HaggleError
from haggle.trade.methods import get_method
from serving.store.database import MEMORY, StoreError, database_url, place_of
from serving.store.episodes import Episodes
from serving.store.models import Base
from serving.store.repository import Store
from serving.store.schema import HEAD, VERSION_TABLE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A SQLite database that was used and closed."""
    path = tmp_path / "s.sqlite3"
    Store(str(path)).close()
    return path


def opened(store: Store, stall) -> tuple[Episodes, str]:
    episodes = Episodes(store)
    number, _ = episodes.visit(episodes.put_shop(stall, shared=True), get_method("astp-compact"))
    return episodes, number


def test_the_migrations_make_the_tables_of_the_models(database):
    store = Store(database, migrate=True)
    with store.engine.connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []
    folder = Path(serving.store.__file__).with_name("migrations")
    assert ScriptDirectory(str(folder)).get_current_head() == HEAD
    store.close()


def test_a_file_is_in_wal_mode_so_that_readers_and_a_writer_do_not_wait(path, stall):
    store = Store(str(path))
    _, number = opened(store, stall)
    with store.reading() as connection:
        assert connection.scalar(text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(text("PRAGMA synchronous")) == 2  # FULL: a commit is on the disk
        before = connection.scalar(text("SELECT version FROM sessions"))
        row = store.find(number)
        assert row
        store.commit(row, row.document, {})  # while another reads
        assert connection.scalar(text("SELECT version FROM sessions")) == before == 0
    assert len(store.turns(number)) == 1
    store.close()


def test_a_full_disk_is_told_and_the_session_is_whole(path, stall):
    store = Store(str(path))
    episodes, number = opened(store, stall)
    limit = [0]

    @event.listens_for(store.engine, "checkout")
    def small(connection, *_):
        connection.execute(f"PRAGMA max_page_count = {limit[0] or 1_000_000}")

    row = store.find(number)
    assert row
    with store.engine.connect() as connection:
        limit[0] = connection.scalar(text("PRAGMA page_count"))
    with pytest.raises(StoreError, match=r"disk is full.*as it was") as told:
        store.commit(row, row.document, {"long": "x" * 100_000})
    assert told.value.where == str(path) and "free space" in told.value.hint
    assert store.find(number) == row and store.turns(number) == []
    limit[0] = 0
    store.commit(row, row.document, {"long": "x" * 100_000})
    assert len(store.turns(number)) == 1 and episodes.load(number)
    store.close()


def test_a_database_that_another_program_holds_is_told(path, stall):
    store = Store(str(path), wait_s=0.05)
    _, number = opened(store, stall)
    row = store.find(number)
    assert row
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another program holds"):
        store.commit(row, row.document, {})
    assert store.find(number) == row  # reading goes on
    other.execute("ROLLBACK")
    store.commit(row, row.document, {})
    other.close()
    store.close()


def test_a_file_that_is_no_database_is_told(tmp_path):
    path = tmp_path / "s.sqlite3"
    path.write_bytes(b"not a database at all " * 100)
    with pytest.raises(HaggleError, match="is no database, or a damaged one") as told:
        Store(str(path))
    assert told.value.where == str(path) and path.read_bytes().startswith(b"not a database")


def test_a_damaged_database_is_told(path):
    data = bytearray(path.read_bytes())
    data[4096 * 2 : 4096 * 6] = b"\xa5" * (4096 * 4)
    path.write_bytes(data)
    with pytest.raises(HaggleError, match="damaged"):
        Store(str(path))


def test_a_database_that_cannot_be_written_is_told_at_once(path):
    with pytest.raises(HaggleError, match="cannot be written to"):
        Store(f"sqlite:///file:{path}?mode=ro&uri=true")


def test_a_folder_in_place_of_a_file_is_told(tmp_path):
    with pytest.raises(HaggleError, match="cannot be opened"):
        Store(str(tmp_path))


def test_tables_of_a_newer_haggle_are_told(path):
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(HaggleError, match=f"version 9999; this Haggle knows them up to {HEAD}"):
        Store(str(path))


def test_tables_of_another_program_are_left_alone(tmp_path):
    path = tmp_path / "s.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sessions (mine TEXT)")
    with pytest.raises(HaggleError, match="'sessions' of another program"):
        Store(str(path))
    assert sqlite3.connect(path).execute("SELECT name FROM sqlite_master").fetchall() == [
        ("sessions",)
    ]


@pytest.mark.parametrize(("name", "told"), [("mysql://x/y", "mysql"), ("://x", "no URL")])
def test_other_databases_are_told(name, told):
    with pytest.raises(HaggleError, match=told):
        database_url(name)


def test_a_database_is_named_without_its_password(monkeypatch, tmp_path):
    place = place_of(database_url("postgresql://ann:secret@db.example/shop"))
    assert "secret" not in place and "db.example/shop" in place
    monkeypatch.setenv("HAGGLE_HOME", str(tmp_path))
    assert place_of(database_url("")) == str(tmp_path / "sessions.sqlite3")
    assert place_of(database_url(MEMORY)) == MEMORY


def test_many_threads_share_one_memory(stall):
    import threading

    store = Store(MEMORY)
    episodes, _ = opened(store, stall)
    shop = episodes.put_shop(stall, shared=True)
    visits = [
        threading.Thread(target=episodes.visit, args=(shop, get_method("astp-compact")))
        for _ in range(12)
    ]
    for visit in visits:
        visit.start()
    for visit in visits:
        visit.join(30)
    assert store.count() == 13


@pytest.mark.postgres
def test_postgres_is_migrated_only_when_asked(postgres):
    with pytest.raises(HaggleError, match="no tables of Haggle") as told:
        Store(postgres)
    assert "--migrate" in told.value.hint
    Store(postgres, migrate=True).close()
    store = Store(postgres)
    with store.engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    store.close()
    with pytest.raises(HaggleError, match="version 9999"):
        Store(postgres, migrate=True)


@pytest.mark.postgres
def test_a_server_that_does_not_answer_is_told(postgres):
    with pytest.raises(HaggleError, match="cannot be reached"):
        Store("postgresql://nobody:secret@127.0.0.1:1/none")
    with pytest.raises(HaggleError, match="cannot be reached, or does not let"):
        Store(postgres + "-not")
