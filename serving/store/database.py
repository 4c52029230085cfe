"""A database by its name: a file, a URL, or one in memory; and its errors in plain words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from haggle.core.config import install_hint
from haggle.core.errors import HaggleError
from haggle.weights.models import haggle_home

MEMORY = "memory"
WAIT_S = 5.0  # how long a transaction waits for another program's


class StoreError(HaggleError):
    """The database cannot do what was asked; nothing of it was done."""


class StoreBusy(StoreError):
    """Others use the database just now; a moment later it may do what was asked."""


# What a database says, what is raised then, what that means, and what to do.
PROBLEMS = (
    (
        ("disk is full", "No space left", "could not extend file"),
        StoreError,
        "the disk is full: nothing was stored, and the session is as it was",
        "free space, then say the line again",
    ),
    (
        ("is locked", "lock timeout"),
        StoreBusy,
        "another program holds the database",
        "close what else has it open for writing, then try again",
    ),
    (
        ("readonly database", "read-only transaction"),
        StoreError,
        "the database cannot be written to",
        "make its file and folder writable, or choose another --database",
    ),
    (
        ("not a database", "malformed"),
        StoreError,
        "is no database, or a damaged one",
        "put a copy from before in its place, or choose another --database",
    ),
    (
        ("unable to open", "disk I/O error"),
        StoreError,
        "the database's file cannot be opened or read",
        "check path, rights and disk, or choose another --database",
    ),
    (
        ("connection", "authentication", "does not exist"),
        StoreError,
        "the database server cannot be reached, or does not let Haggle in",
        "check that it runs, and address, user and password of --database",
    ),
)


def database_url(database: str) -> URL:
    """The URL of a database: `memory`, a PostgreSQL or SQLite URL, or the path of a SQLite file.

    An empty name is the default: a file in the haggle home. Raises HaggleError for other kinds.
    """
    if database == MEMORY:
        return make_url("sqlite://")
    if "://" not in database:
        path = Path(database).expanduser() if database else haggle_home() / "sessions.sqlite3"
        return URL.create("sqlite", database=str(path))
    try:
        url = make_url(database)
        kind = url.get_backend_name()
    except (ArgumentError, ValueError):
        kind = "no URL"
    if kind == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise HaggleError(
            f"is neither SQLite nor PostgreSQL: {kind}",
            where="--database",
            hint="give the path of a file, postgresql://USER:PASSWORD@HOST/NAME, or memory",
        )
    return url


def place_of(url: URL) -> str:
    """A database as errors name it, without its password."""
    if url.get_backend_name() == "sqlite":
        return url.database or MEMORY
    return url.render_as_string(hide_password=True)


def open_database(url: URL, wait_s: float = WAIT_S) -> Engine:
    """An engine for this database; nothing is read yet. Raises HaggleError where a driver is not
    installed or a folder cannot be made."""
    settings: dict[str, Any] = {
        "json_serializer": partial(json.dumps, separators=(",", ":")),
        "pool_timeout": 30,
    }
    try:
        if url.get_backend_name() == "sqlite":
            return _open_sqlite(url, wait_s, settings)
        lock = f"-c lock_timeout={int(wait_s * 1000)}"
        return create_engine(
            url, pool_pre_ping=True, connect_args={"options": lock, "connect_timeout": 10},
            **settings,
        )  # fmt: skip
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise HaggleError(
            f"a driver is not installed: {error}", where=place_of(url),
            hint=install_hint("postgres"),
        ) from None  # fmt: skip
    except OSError as error:
        raise HaggleError(
            f"its folder cannot be made: {error.strerror}", where=place_of(url),
            hint="choose another --database",
        ) from None  # fmt: skip


def _open_sqlite(url: URL, wait_s: float, settings: dict[str, Any]) -> Engine:
    """SQLite in WAL mode. Each commit is on the disk when it returns (`synchronous` is FULL, which
    is SQLite's default)."""
    in_memory = not url.database
    connect = {"timeout": wait_s, "check_same_thread": False}
    if in_memory:  # it lives as long as its one connection, which threads take in turn
        settings |= {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
    elif not url.query:
        Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args=connect, **settings)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin below, not where the driver guesses
        connection.execute("PRAGMA foreign_keys = ON")
        if not in_memory and "mode" not in url.query:
            connection.execute("PRAGMA journal_mode = WAL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def told(place: str) -> Iterator[None]:
    """Tell a database's errors as a StoreError."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreBusy(
            "all connections to the database are in use", where=place, hint="try again in a moment"
        ) from error
    except DBAPIError as error:
        said = str(error.orig)
        for words, kind, message, hint in PROBLEMS:
            if any(word in said for word in words):
                raise kind(message, where=place, hint=hint) from error
        first = (said.splitlines() or [type(error).__name__])[0]
        raise StoreError(f"the database failed: {first}", where=place) from error
    except SQLAlchemyError as error:
        first = str(error).splitlines()[0]
        raise StoreError(f"the database failed: {first}", where=place) from error
