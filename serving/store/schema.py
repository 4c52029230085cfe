"""The version of a database's tables: looked at whenever one is opened, moved on by Alembic."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from haggle.core.errors import HaggleError
from serving.store.models import Base

HEAD = "0003"  # the newest file in migrations/versions
VERSION_TABLE = "haggle_version"


def prepare(engine: Engine, place: str, migrate: bool) -> None:
    """Bring the tables to this version, where that is wanted: always in SQLite, with `migrate` in
    PostgreSQL. Raises HaggleError for tables of another version, or of another program."""
    sqlite = engine.dialect.name == "sqlite"
    with engine.connect() as connection:
        if sqlite:
            _check_whole(connection, place)
        found = _version(connection, place)
    if found != HEAD:
        _check_known(found, place)
        if not sqlite and not migrate:
            raise _unprepared(found, place)
    with engine.execution_options(writes=True).begin() as connection:
        if _version(connection, place) != HEAD:
            _upgrade(connection)
        # Shows now, not at the first sale, that nothing can be written.
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = version_num"))


def _version(connection: Connection, place: str) -> str:
    """The version of the tables, "" where there are none."""
    names = set(inspect(connection).get_table_names())
    if VERSION_TABLE in names:
        return str(connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) or "")
    if taken := sorted(names & set(Base.metadata.tables)):
        raise HaggleError(
            f"has a table {taken[0]!r} of another program",
            where=place,
            hint="give Haggle a database of its own with --database",
        )
    return ""


def _check_whole(connection: Connection, place: str) -> None:
    said = str(connection.scalar(text("PRAGMA quick_check(1)")))
    if said != "ok":
        raise HaggleError(
            f"is a damaged database: {said}",
            where=place,
            hint="put a copy from before in its place, or choose another --database",
        )


def _check_known(found: str, place: str) -> None:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(Path(__file__).with_name("migrations")))
    if found and found not in {script.revision for script in scripts.walk_revisions()}:
        raise HaggleError(
            f"has the tables of version {found}; this Haggle knows them up to {HEAD}",
            where=place,
            hint="use the Haggle that made it, or choose another --database",
        )


def _unprepared(found: str, place: str) -> HaggleError:
    message = f"has tables of version {found}, not {HEAD}" if found else "has no tables of Haggle"
    return HaggleError(
        message,
        where=place,
        hint="run `haggle serve --migrate` with the same --database once",
    )


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).with_name("migrations"))
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)
