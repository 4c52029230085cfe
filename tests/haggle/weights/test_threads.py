"""How long threads wait: a few microseconds awake, unless the user says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from haggle.weights.threads import WAITING, brief_waits

LOAD = """
from haggle.weights.threads import brief_waits
with brief_waits():
    import xllamacpp
"""


@pytest.fixture
def unset(monkeypatch):
    for name in WAITING:
        monkeypatch.delenv(name, raising=False)


def test_the_setting_holds_while_libraries_are_loaded_and_no_longer(unset):
    with brief_waits():
        assert {name: os.environ[name] for name in WAITING} == WAITING
    assert not WAITING.keys() & os.environ.keys()


@pytest.mark.parametrize("name", WAITING)
def test_what_the_user_sets_stays(unset, monkeypatch, name):
    monkeypatch.setenv(name, "7")
    with brief_waits():
        assert {key: os.environ[key] for key in WAITING if key in os.environ} == {name: "7"}
    assert os.environ[name] == "7"


@pytest.mark.skipif(sys.platform != "linux", reason="GNU's OpenMP says what it goes by")
def test_llama_cpp_goes_by_it(unset):
    pytest.importorskip("xllamacpp")
    told = subprocess.run(
        [sys.executable, "-c", LOAD],
        env=os.environ | {"OMP_DISPLAY_ENV": "verbose"},
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    assert "GOMP_SPINCOUNT = '300'" in told
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in told
