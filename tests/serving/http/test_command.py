"""`haggle serve` as a user starts it, and the options it refuses."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest
from typer.testing import CliRunner
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.sync.client import connect

from haggle.cli import app as command
from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from haggle.core.storage import write_json
from haggle.trade.world_io import named_world
from serving.store.repository import Store


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--world", "frontier_shpo"], "frontier_shop"),
        (["--guard", "stat"], "state"),
        (["--api-key-env", "HAGGLE_NO_SUCH_KEY"], "HAGGLE_NO_SUCH_KEY"),
        (["--api-key-env", ""], "--api-key-env"),
        (["--host", "no.such.host.invalid"], "--host"),
        (["--world", "frontier_shop", "--world", "frontier_shop"], "same name"),
        (["--engine", "llamacp"], "llamacpp"),
        (["--database", "mysql://localhost/shop"], "PostgreSQL"),
    ],
)
def test_wrong_options_are_told(options, told, monkeypatch, tmp_path):
    monkeypatch.setenv("HAGGLE_HOME", str(tmp_path))
    error = CliRunner().invoke(command, ["serve", *options]).exception
    assert isinstance(error, HaggleError) and told in str(error)


def test_a_port_that_is_taken_is_told():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        error = CliRunner().invoke(command, ["serve", "--port", port]).exception
    assert isinstance(error, HaggleError) and port in str(error)


@contextmanager
def command_serves(port: int, *options: str) -> Iterator[tuple[subprocess.Popen, httpx.Client]]:
    """`haggle serve` as a process, and a client that it answers."""
    words = [sys.executable, "-m", "haggle", "serve", "--port", str(port), *options]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert any(f":{port}" in line for line in server.stdout), "it ended before it served"
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
                while True:
                    try:
                        client.get("/healthz").raise_for_status()
                        break
                    except httpx.ConnectError:
                        time.sleep(0.1)
                yield server, client
        finally:
            server.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
        assert server.wait(30) in (0, 130, -9)


@pytest.mark.slow
def test_the_shipped_model_serves_as_a_user_starts_it(free_port: Callable[[], int], tmp_path: Path):
    with command_serves(free_port(), "--database", str(tmp_path / "s.sqlite3")) as (_, client):
        session = client.post("/v1/sessions", json={}).json()["session"]
        line = {"text": "two sturdy ropes please"}
        answer = client.post(f"/v1/sessions/{session}/turns", json=line).json()
        assert answer["state"] == "OFFER_SELL"
        assert [line["quantity"] for line in answer["cart"]] == [2]


ANSWERS = (
    '{"last":"","state":"OFFER_SELL","cart":[["Sturdy Rope (20m)",2]],"say":"__CART__."}',
    '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"__CART__ for __PRICE__, yes?"}',
    '{"last":"FINAL_CHECK","state":"COMMIT_SALE","say":"Done."}',
)


TALK = '{"last":"","state":"CASUAL","say":"Fine weather."}'


def scripted(path: Path, answers: Sequence[str], seconds: float = 0.0) -> str:
    """The path of a serve config whose model gives these answers, each in so many seconds."""
    options = {"answers": list(answers), "seconds": seconds}
    write_json(path, {"engine": "scripted", "scripted": options})
    return str(path)


def test_after_a_kill_a_session_goes_on_where_it_was(free_port: Callable[[], int], tmp_path: Path):
    options = ["--database", str(tmp_path / "s.sqlite3"), "--engine"]
    first = scripted(tmp_path / "first.json", ANSWERS[:2])
    second = scripted(tmp_path / "second.json", ANSWERS[2:])
    with command_serves(free_port(), *options, first) as (server, client):
        session = client.post("/v1/sessions", json={}).json()["session"]
        for text in ("two ropes", "deal"):
            client.post(f"/v1/sessions/{session}/turns", json={"text": text}).raise_for_status()
        before = client.get(f"/v1/sessions/{session}").json()
        server.kill()
    with command_serves(free_port(), *options, second) as (_, client):
        assert client.get(f"/v1/sessions/{session}").json() == before and before["review"]
        sold = client.post(f"/v1/sessions/{session}/turns", json={"text": "yes"}).json()
        assert sold["sale"]["items"][0]["quantity"] == 2
        shelf = client.get("/v1/shops/frontier_shop").json()["shelf"]
        assert shelf == client.get(f"/v1/sessions/{session}").json()["shelf"] != before["shelf"]


def test_with_explicit_confirmation_words_close_nothing_in_any_shop_and_the_call_does(
    free_port: Callable[[], int], tmp_path: Path
):
    engine = scripted(tmp_path / "serve.json", ANSWERS * 2)
    options = ["--engine", engine, "--database", "memory", "--confirmation", "explicit"]
    brought = named_world("frontier_shop").model_dump(mode="json") | {"name": "brought"}
    with command_serves(free_port(), *options) as (_, client):
        for opening in ({}, {"shop": brought}):
            session = client.post("/v1/sessions", json=opening).json()["session"]
            for text in ("two ropes", "deal", "yes, deal"):
                said = client.post(f"/v1/sessions/{session}/turns", json={"text": text}).json()
            assert (said["state"], said["sale"]) == ("FINAL_CHECK", None)
            assert said["withheld"]["reason"] == "confirmation"
            call = f"/v1/sessions/{session}/confirm"
            sold = client.post(call, json={"review": said["review"]}).json()
            assert sold["state"] == "COMMIT_SALE" and sold["sale"]["items"][0]["quantity"] == 2


def talking(folder: Path, seconds: float = 0.0) -> list[str]:
    """Options of a server that makes small talk, each answer in so many seconds."""
    engine = scripted(folder / "talk.json", [TALK], seconds)
    return ["--database", str(folder / "s.sqlite3"), "--engine", engine]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGTERM")
def test_a_server_that_is_terminated_answers_its_turn_first(
    free_port: Callable[[], int], tmp_path: Path
):
    with command_serves(free_port(), *talking(tmp_path, 2.0)) as (server, client):
        session = client.post("/v1/sessions", json={}).json()["session"]
        with ThreadPoolExecutor() as pool:
            turn = pool.submit(client.post, f"/v1/sessions/{session}/turns", json={"text": "well?"})
            while "haggle_turns_running 1.0" not in client.get("/metrics").text:
                time.sleep(0.02)
            server.send_signal(signal.SIGTERM)
            while client.get("/readyz").status_code == 200:
                assert not turn.done()
                time.sleep(0.02)
            late = client.post(f"/v1/sessions/{session}/turns", json={"text": "x"})
            assert late.status_code == 503
            assert turn.result(30).json()["say"] == "Fine weather."
        assert server.wait(30) == 0
    with closing(Store(str(tmp_path / "s.sqlite3"))) as store:
        assert len(store.turns(session)) == 1


def test_a_message_beyond_the_limit_closes_its_websocket(
    free_port: Callable[[], int], tmp_path: Path
):
    port = free_port()
    options = [*talking(tmp_path), "--max-request-kib", "4"]
    with command_serves(port, *options) as (_, client):
        session = client.post("/v1/sessions", json={}).json()["session"]
        address = f"ws://127.0.0.1:{port}/v1/sessions/{session}/live"
        with connect(address) as socket:
            socket.send(json.dumps({"text": "x" * 3000}))  # no line, but let in
            assert json.loads(socket.recv(30))["data"]["status"] == 422
            socket.send(json.dumps({"text": "x" * 5000}))
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(30)
            assert closed.value.rcvd and closed.value.rcvd.code == CloseCode.MESSAGE_TOO_BIG
        with connect(address) as socket:  # the session is as it was
            socket.send('{"text": "well?"}')
            assert json.loads(socket.recv(30))["event"] == "state"


@pytest.fixture
def free_port() -> Callable[[], int]:
    def find() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])

    return find
