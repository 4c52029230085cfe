"""The same data made on Ray, with workers that die."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from data_gen.dataset.shards import unfinished
from data_gen.generate import generate
from data_gen.teachers.config import TeacherConfig
from haggle.core.config import install_hint
from haggle.core.errors import HaggleError

make = partial(generate, progress=False)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray of this machine with two cores, for all tests of this file."""
    found = pytest.importorskip("ray", reason='needs pip install -e ".[ray]"')
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found.init(
        address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
        object_store_memory=100 * 2**20,
    )  # fmt: skip
    yield found
    found.shutdown()


def test_ray_that_is_not_installed_is_told(wide, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(HaggleError, match="Ray is not installed") as refused:
        make(wide, tmp_path, runner="ray")
    assert refused.value.hint == install_hint("ray")


@pytest.mark.slow
def test_ray_makes_the_same_bytes(contents, wide, ray, alone, tmp_path):
    summary = make(wide, tmp_path, runner="ray")
    assert contents(tmp_path) == alone and summary["made_now"] == 57


def kill_once(
    meanwhile, psutil: Any, name: str, ready: Callable[[], bool]
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
def test_a_ray_worker_killed_at_work_loses_nothing(
    meanwhile, contents, litter, wide, ray, alone, tmp_path
):
    psutil = pytest.importorskip("psutil")

    killed, end = kill_once(meanwhile, psutil, "ray::_make", lambda: bool(litter(tmp_path)))
    make(wide, tmp_path, runner="ray")
    end()
    assert len(killed) == 1
    assert contents(tmp_path) == alone and not litter(tmp_path)


@pytest.mark.slow
def test_actors_hold_the_engines_and_a_killed_one_is_replaced(
    meanwhile, contents, ray, hopeless, tmp_path
):
    psutil = pytest.importorskip("psutil")
    out = tmp_path / "ray"
    make(hopeless, tmp_path / "here")
    killed, end = kill_once(meanwhile, psutil, "ray::Worker", lambda: True)
    summary = make(hopeless, out, runner="ray", workers=2)
    end()
    assert len(killed) == 1
    assert contents(out) == contents(tmp_path / "here") and not unfinished(out).exists()
    assert summary["splits"]["train"]["dialogues"] == 8


@pytest.mark.slow
def test_an_error_on_ray_is_told_as_it_was_there(wide, ray, tmp_path):
    serve = tmp_path / "serve.yaml"  # well-formed: that its model is missing is seen at the start
    serve.write_text("engine: llamacpp\ngguf: no.gguf\n", encoding="utf-8")
    missing = wide.model_copy(update={"teacher": TeacherConfig(engine=str(serve))})
    with pytest.raises(HaggleError) as refused:
        make(missing, tmp_path / "out", runner="ray")
    assert "no.gguf" in str(refused.value)
