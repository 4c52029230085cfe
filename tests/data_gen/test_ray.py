"""The same data made on Ray, with workers that die."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from data_gen.dataset.shards import unfinished
from data_gen.generate import DataConfig, generate
from data_gen.teachers.config import TeacherConfig
from haggle.errors import HaggleError

WIDE = DataConfig(train=50, test=7, seed=5, shard=10)


def make(config: DataConfig, out: Path, **options: Any) -> dict[str, Any]:
    return generate(config, out, progress=False, **options)


def contents(out: Path) -> dict[str, bytes]:
    """The bytes of every data file."""
    return {path.name: path.read_bytes() for path in sorted(out.glob("t*-of-*"))}


def litter(out: Path) -> list[str]:
    return [path.name for path in out.glob(".*.part")]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process makes of `WIDE` without disturbance."""
    out = tmp_path_factory.mktemp("alone")
    make(WIDE, out, workers=1)
    return contents(out)


@pytest.fixture
def hopeless(tmp_path: Path) -> DataConfig:
    """A model as teacher whose answers are never usable, so that the oracle's stand in."""
    script = {"engine": "scripted", "scripted": {"answers": ["well"] * 500}}
    (tmp_path / "serve.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
    teacher = TeacherConfig(
        engine=str(tmp_path / "serve.yaml"), max_attempts=1, on_failure="oracle", concurrency=3
    )
    return DataConfig(train=8, test=0, seed=5, shard=3, teacher=teacher)


def meanwhile(action: Callable[[], bool]) -> Callable[[], None]:
    """Repeat `action` in a thread until it says that it is done; returns how to stop it."""
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set() and not action():
            time.sleep(0.01)

    thread = threading.Thread(target=loop)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join()

    return end


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray of this machine with two cores, for all tests of this file."""
    found = pytest.importorskip("ray", reason="Ray is not installed: pip install 'haggle[ray]'")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
        object_store_memory=100 * 2**20,
    )  # fmt: skip
    yield found
    found.shutdown()


def test_ray_that_is_not_installed_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(HaggleError, match="Ray is not installed") as refused:
        make(WIDE, tmp_path, runner="ray")
    assert refused.value.hint == "pip install 'haggle[ray]'"


@pytest.mark.slow
def test_ray_makes_the_same_bytes(ray, alone, tmp_path):
    summary = make(WIDE, tmp_path, runner="ray")
    assert contents(tmp_path) == alone and summary["made_now"] == 57


def kill_once(
    psutil: Any, name: str, ready: Callable[[], bool]
) -> tuple[list[int], Callable[[], None]]:
    """Kill the first process of that name when `ready`; returns whom it hit, and how to stop."""

    def kill_one() -> bool:
        for process in psutil.Process().children(recursive=True):
            try:
                if ready() and any(part.startswith(name) for part in process.cmdline()):
                    process.kill()
                    killed.append(process.pid)
                    return True
            except psutil.Error:
                continue
        return False

    killed: list[int] = []
    return killed, meanwhile(kill_one)


@pytest.mark.slow
def test_a_ray_worker_killed_at_work_loses_nothing(ray, alone, tmp_path):
    psutil = pytest.importorskip("psutil")

    killed, end = kill_once(psutil, "ray::_make", lambda: bool(litter(tmp_path)))
    make(WIDE, tmp_path, runner="ray")
    end()
    assert len(killed) == 1
    assert contents(tmp_path) == alone and not litter(tmp_path)


@pytest.mark.slow
def test_actors_hold_the_engines_and_a_killed_one_is_replaced(ray, hopeless, tmp_path):
    psutil = pytest.importorskip("psutil")
    out = tmp_path / "ray"
    make(hopeless, tmp_path / "here")
    killed, end = kill_once(psutil, "ray::Worker", lambda: True)
    summary = make(hopeless, out, runner="ray", workers=2)
    end()
    assert len(killed) == 1
    assert contents(out) == contents(tmp_path / "here") and not unfinished(out).exists()
    assert summary["splits"]["train"]["dialogues"] == 8


@pytest.mark.slow
def test_an_error_on_ray_is_told_as_it_was_there(ray, tmp_path):
    missing = WIDE.model_copy(update={"teacher": TeacherConfig(engine=str(tmp_path / "no.yaml"))})
    with pytest.raises(HaggleError) as refused:
        make(missing, tmp_path / "out", runner="ray")
    assert "no.yaml" in str(refused.value)
