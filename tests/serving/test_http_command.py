"""`haggle serve` as a user starts it, and the options it refuses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import httpx2 as httpx
import pytest
from typer.testing import CliRunner

from haggle.cli import app as command
from haggle.core.config import ROOT
from haggle.core.errors import HaggleError


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
    ],
)
def test_wrong_options_are_told(options, told):
    error = CliRunner().invoke(command, ["serve", *options]).exception
    assert isinstance(error, HaggleError) and told in str(error)


def test_a_port_that_is_taken_is_told():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        error = CliRunner().invoke(command, ["serve", "--port", port]).exception
    assert isinstance(error, HaggleError) and port in str(error)


@pytest.mark.slow
def test_the_shipped_model_serves_as_a_user_starts_it(free_port: Callable[[], int]):
    port = free_port()
    words = [sys.executable, "-m", "haggle", "serve", "--port", str(port)]
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
                        client.get("/health").raise_for_status()
                        break
                    except httpx.ConnectError:
                        time.sleep(0.1)
                session = client.post("/sessions", json={}).json()["session"]
                line = {"text": "two sturdy ropes please"}
                answer = client.post(f"/sessions/{session}/turns", json=line).json()
                assert answer["state"] == "OFFER_SELL"
                assert [line["quantity"] for line in answer["cart"]] == [2]
        finally:
            server.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
        assert server.wait(30) in (0, 130)


@pytest.fixture
def free_port() -> Callable[[], int]:
    def find() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])

    return find
