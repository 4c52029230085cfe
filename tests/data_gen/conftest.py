"""Data sets to compare by their bytes, and what disturbs a run that makes them."""

from __future__ import annotations

import errno
import json
import os
import re
import threading
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from data_gen.config import DataConfig
from data_gen.corpus_io import corpus_rows
from data_gen.generate import generate, make_dialogue, to_row
from data_gen.teachers.config import TeacherConfig
from haggle.core.config import ROOT
from haggle.core.storage import write_jsonl

SIX = 6


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[str, bytes]]:
    """The bytes of every data file of a data set."""
    return lambda out: {path.name: path.read_bytes() for path in sorted(out.glob("t*-of-*"))}


@pytest.fixture(scope="session")
def litter() -> Callable[[Path], list[str]]:
    """The names of files that are half written."""
    return lambda out: [path.name for path in out.glob(".*.part")]


@pytest.fixture(scope="session")
def wide() -> DataConfig:
    """A data set of several shards in both splits."""
    return DataConfig(train=50, test=7, seed=5, shard=10)


@pytest.fixture(scope="session")
def alone(wide, contents, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process makes of `wide` without disturbance."""
    out = tmp_path_factory.mktemp("alone")
    generate(wide, out, workers=1, progress=False)
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


@pytest.fixture(scope="session")
def meanwhile() -> Callable[[Callable[[], bool]], Callable[[], None]]:
    """Repeats an action in a thread until it says that it is done; gives back how to stop it."""

    def begin(action: Callable[[], bool]) -> Callable[[], None]:
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

    return begin


@pytest.fixture(scope="session")
def full_after() -> Callable[[int, Callable[..., Any]], Callable[..., Any]]:
    """Of a function that writes, one for which the disk is full after so many calls."""

    def limited(number: int, write: Callable[..., Any]) -> Callable[..., Any]:
        calls: list[int] = []

        def torn(*arguments: Any) -> Any:
            calls.append(1)
            if len(calls) > number:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(*arguments)

        return torn

    return limited


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small data set of the generator, with test dialogues and two copies of some corpus."""
    out = tmp_path_factory.mktemp("made") / "small"
    config = DataConfig(train=40, test=10)
    corpus = [r for r, _ in zip(corpus_rows("train"), range(6), strict=False)]
    train = [to_row(*make_dialogue(config, "train", index)) for index in range(40)]
    test = [to_row(*make_dialogue(config, "test", index)) for index in range(10)]
    write_jsonl(out / "train.jsonl", [*train, *corpus, *corpus])
    write_jsonl(out / "test.jsonl", test)
    return out


def words(text: str) -> list[str]:
    """The words of a text, lower case."""
    return re.findall(r"[\w']+", text.casefold().replace("’", "'"))


def grams(text: str) -> set[tuple[str, ...]]:
    """All runs of six words."""
    said = words(text)
    return {tuple(said[i : i + SIX]) for i in range(len(said) - SIX + 1)}


@pytest.fixture(scope="session")
def benchmark_grams() -> dict[tuple[str, ...], str]:
    """Six-word runs of every player line of all sets of turn cases, with the case."""
    found: dict[tuple[str, ...], str] = {}
    sets = sorted((ROOT / "eval" / "benchmarks").glob("*.jsonl"))
    names = [
        "dev",
        "held",
        "review-dev",
        "review-held",
        "review-held-2",
        "review-held-3",
        "review-held-4",
        "review-held-5",
        "talked",
    ]
    assert sorted(path.stem for path in sets) == names
    for line in chain.from_iterable(p.read_text(encoding="utf-8").splitlines() for p in sets):
        case = json.loads(line)
        if "session" in case:
            continue  # of held-out voices of the corpus, which are held against the others there
        history = () if "review" in case["tags"] else case["history"]  # the merchant's terms count
        for said in (case["player"], *(past["player"] for past in history)):
            found |= dict.fromkeys(grams(said), case["id"])
    assert len(found) > 300
    return found
