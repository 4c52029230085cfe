"""Databases to store in, a PostgreSQL server, and processes that serve and can be killed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from sqlalchemy import create_engine, text

from haggle.core.config import ROOT
from haggle.trade.world import Item, MerchantInfo, World

NURSERY = Path(__file__).with_name("nursery.py")


@pytest.fixture
def stall() -> World:
    """A shop with one map and many ropes."""
    return World(
        name="stall",
        merchant=MerchantInfo(name="Ada", persona="A calm trader."),
        currency="gold",
        items=[
            Item(item_id="rope", item_name="Sturdy Rope", price=20, quantity=5000),
            Item(item_id="map", item_name="Local Map", price=60, quantity=1),
            Item(item_id="wand", item_name="Elemental Wand"),
        ],
    )


def _programs() -> Path | None:
    """The folder of PostgreSQL's programs; None where they are not installed."""
    places = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server that runs for these tests, without a database's name."""
    pytest.importorskip("psycopg")
    programs = _programs()
    if programs is None or os.name != "posix":
        pytest.skip("no PostgreSQL server is installed here (postgres, initdb)")
    folder = Path(tempfile.mkdtemp(prefix="haggle-postgres-"))
    somebody: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        names = {user.pw_name for user in pwd.getpwall()}
        user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        somebody = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(folder / "data")
    made = [str(programs / "initdb"), "-D", data, "-U", "haggle", "-A", "trust", "-E", "UTF8", "-N"]
    subprocess.run(made, check=True, capture_output=True, cwd=folder, **somebody)
    settings = [f"-p{port}", f"-k{folder}", "-h127.0.0.1", "-cfsync=off", "-cmax_connections=60"]
    server = subprocess.Popen(
        [str(programs / "postgres"), "-D", data, *settings], cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **somebody,
    )  # fmt: skip
    ready = [str(programs / "pg_isready"), "-q", "-h127.0.0.1", f"-p{port}", "-t1"]
    while subprocess.run(ready, check=False).returncode:
        assert server.poll() is None, "the PostgreSQL server did not start"
    yield f"postgresql://haggle@127.0.0.1:{port}"
    server.send_signal(signal.SIGINT)  # at once, whoever is still connected
    server.wait(60)
    shutil.rmtree(folder, ignore_errors=True)


_NUMBERS = count()


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """The URL of a new, empty PostgreSQL database."""
    name = f"test{next(_NUMBERS)}"
    url = postgres_server.replace("postgresql", "postgresql+psycopg")
    engine = create_engine(f"{url}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return f"{postgres_server}/{name}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "sessions.sqlite3")
    return str(request.getfixturevalue("postgres"))


class Served:
    """A process that serves; `kill` ends it as a crash would."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid = pid
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)

    def kill(self) -> None:
        try:
            os.kill(self.pid, 9)
        except ProcessLookupError:
            pass


@pytest.fixture(scope="module")
def nursery() -> Iterator[Callable[..., Served]]:
    """Starts server processes of a database quickly: each is forked from one that has imported all.
    `die_at` is a word of the statement at which the process kills itself, `seconds` how long the
    model takes for an answer."""
    if os.name != "posix":
        pytest.skip("processes cannot be forked here")
    with subprocess.Popen(
        [sys.executable, str(NURSERY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as parent:  # fmt: skip
        started: list[Served] = []

        def start(database: str, shop: Path, die_at: str = "-", seconds: float = 0.0) -> Served:
            print(database, shop, die_at, seconds, sep="\t", file=parent.stdin, flush=True)
            assert parent.stdout
            pid, port = parent.stdout.readline().split()
            started.append(Served(int(pid), int(port)))
            return started[-1]

        yield start
        for server in started:
            server.kill()
        parent.kill()
