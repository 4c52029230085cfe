"""The server on Ray Serve: two replicas answer one session."""

from __future__ import annotations

import importlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2 as httpx
import pytest

from haggle.core.config import ROOT
from haggle.core.storage import write_json

KEY = "sesame"
METHOD = "astp-stepwise"
TALK = '{"last":"","state":"CASUAL","say":"Fine weather."}'


@pytest.fixture
def replicas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A client of `deploy/ray_serve.py`, which runs on a Ray of its own."""
    reason = 'needs pip install "ray[serve]"'
    serve = pytest.importorskip("ray.serve", reason=reason, exc_type=ImportError)
    import ray

    write_json(
        tmp_path / "talk.json",
        {"engine": "scripted", "scripted": {"answers": [TALK], "again": True}},
    )
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    settings = {
        "HAGGLE_ENGINE": str(tmp_path / "talk.json"), "HAGGLE_DATABASE": str(tmp_path / "s.sqlite3"),
        "HAGGLE_KEY": KEY, "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0",
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)  # the workers inherit it
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ray.init(
        address="local", num_cpus=4, include_dashboard=False, log_to_driver=False,
        object_store_memory=100 * 2**20,
    )  # fmt: skip
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        monkeypatch.syspath_prepend(str(ROOT))
        from deploy.ray_serve import app

        serve.run(app)
        headers = {"Authorization": f"Bearer {KEY}"}
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60
        ) as client:
            yield client
        serve.shutdown()
    finally:
        ray.shutdown()


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module `deploy/ray_serve.py` itself, with a stand-in for Ray."""
    name = "deploy.ray_serve"
    serve = SimpleNamespace(
        ingress=lambda build: lambda shop: shop,
        deployment=lambda **options: lambda shop: SimpleNamespace(bind=lambda: None),
    )
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(serve=serve))
    monkeypatch.syspath_prepend(str(ROOT))
    sys.modules.pop(name, None)
    yield importlib.import_module(name)
    del sys.modules[name]  # another test may want it with Ray


def test_a_replica_runs_as_many_turns_at_once_as_its_serve_config_says(
    deployed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "talk.json"
    write_json(config, {"engine": "scripted", "parallel": 3, "method": METHOD, "ask_below": 0.5})
    for name, value in {"ENGINE": str(config), "DATABASE": "", "KEY": KEY}.items():
        monkeypatch.setenv(f"HAGGLE_{name}", value)
    told: dict[str, Any] = {}
    monkeypatch.setattr(deployed, "make_app", lambda *parts, **options: told.update(options))
    deployed.build()
    told["store"].close()
    assert (told["limits"].at_once, told["method"], told["ask_below"]) == (3, METHOD, 0.5)


def answered_by_one(client: httpx.Client) -> float:
    """How many turns the replica has answered that tells its figures."""
    lines = client.get("/metrics").text.splitlines()
    counts = [line for line in lines if line.startswith("haggle_turns_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in counts)


@pytest.mark.long
def test_two_replicas_answer_one_session(replicas: httpx.Client) -> None:
    assert replicas.get("/v1/shops", headers={"Authorization": ""}).status_code == 401
    session = replicas.post("/v1/sessions", json={}).json()["session"]
    turns = f"/v1/sessions/{session}/turns"
    streamed = replicas.post(turns, json={"text": "hello", "stream": True}).text
    assert "event: done" in streamed and '"say":"Fine weather."' in streamed
    for number in range(2, 50):
        assert replicas.post(turns, json={"text": "hello"}).json()["say"] == "Fine weather."
        assert len(replicas.get(turns).json()) == number
        if 0 < answered_by_one(replicas) < number:
            return
    pytest.fail("one replica answered all turns")
