"""Slow sources: every finished dialogue is on disk, and none is there twice."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from data_gen.dataset import journal
from data_gen.dataset import shards as shards_module
from data_gen.dataset.journal import total
from data_gen.dataset.shards import unfinished
from data_gen.generate import DataConfig, generate
from data_gen.language.phrasebook import Split
from data_gen.sources import ScriptedSource
from data_gen.teachers.config import TeacherConfig
from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from haggle.dataset import iter_rows

SLOW = DataConfig(train=9, test=0, seed=5, shard=6, teacher=TeacherConfig(engine="llamacpp"))


make = partial(generate, progress=False)


class SlowSource(ScriptedSource):
    """Stands for a model: counts what it is asked, gives up dialogue 2, stops where told."""

    asked: list[int] = []
    stop_at: int | None = None
    stop_with: BaseException = KeyboardInterrupt()

    def __init__(self, config: DataConfig) -> None:
        super().__init__(config)
        self.tokens = self.dropped = 0

    def rows(self, split: Split, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
        for index in indices:
            if index == type(self).stop_at:
                raise type(self).stop_with
            type(self).asked.append(index)
            self.tokens += 10
            if index == 2:
                self.dropped += 1
                continue
            yield from super().rows(split, [index])

    def report(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "dialogues": {"dropped": self.dropped}, "model": "small"}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> type[SlowSource]:
    monkeypatch.setattr(shards_module, "open_source", SlowSource)
    monkeypatch.setattr(SlowSource, "asked", [])
    return SlowSource


@pytest.fixture
def undisturbed(contents, slow, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What comes of `SLOW` in one go."""
    out = tmp_path_factory.mktemp("undisturbed")
    summary = make(SLOW, out)
    assert slow.asked == list(range(9)) and summary["made_now"] == 8
    assert summary["report"] == {"tokens": 90, "dialogues": {"dropped": 1}, "model": "small"}
    assert not unfinished(out).exists()
    slow.asked.clear()
    return contents(out)


@pytest.mark.parametrize("stop_at", range(9))
def test_nothing_finished_is_lost_or_doubled_wherever_a_slow_run_stops(
    contents, slow, undisturbed, tmp_path, monkeypatch, stop_at
):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(slow, "stop_at", stop_at)
        make(SLOW, tmp_path)
    before = list(slow.asked)
    assert before == list(range(stop_at))
    summary = make(SLOW, tmp_path)
    assert summary["made_now"] == 8 - len(set(before) - {2})
    again = {2} if stop_at == 3 else set()  # given up, and no later one finished that says so
    assert sorted(slow.asked) == sorted([*range(9), *again])
    assert contents(tmp_path) == undisturbed and not unfinished(tmp_path).exists()
    assert [row["id"].split("-")[1] for row in iter_rows(tmp_path)] == list("01345678")
    assert summary["report"]["tokens"] == 90, "each answer that led to a row is counted once"


def test_an_engine_that_fails_stops_the_run_and_keeps_what_is_finished(
    contents, slow, undisturbed, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(slow, "stop_at", 7)
        patch.setattr(slow, "stop_with", HaggleError("status 500 after 5 tries", hint="wait"))
        with pytest.raises(HaggleError, match="status 500"):
            make(SLOW, tmp_path)
    lines = (unfinished(tmp_path) / "train-00001-of-00002.jsonl").read_text(encoding="utf-8")
    assert lines.count("\n") == 1 and len(contents(tmp_path)) == 1
    make(SLOW, tmp_path)
    assert contents(tmp_path) == undisturbed and sorted(slow.asked) == list(range(9))


def stopped_at_five(slow: type[SlowSource], out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that stopped before dialogue 5; returns its journal, of dialogues 0, 1, 3 and 4."""
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(slow, "stop_at", 5)
        make(SLOW, out)
    (path,) = unfinished(out).glob("*.jsonl")
    return path


@pytest.mark.parametrize("cut", [1, 2, 500])
def test_a_torn_last_line_of_a_journal_is_made_again(
    contents, slow, undisturbed, tmp_path, monkeypatch, cut
):
    path = stopped_at_five(slow, tmp_path, monkeypatch)
    path.write_bytes(path.read_bytes()[:-cut])
    make(SLOW, tmp_path)
    assert contents(tmp_path) == undisturbed
    assert slow.asked == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8]


def test_a_dialogue_journalled_twice_is_taken_once(
    contents, slow, undisturbed, tmp_path, monkeypatch
):
    path = stopped_at_five(slow, tmp_path, monkeypatch)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, *lines[1:]]))
    make(SLOW, tmp_path)
    assert contents(tmp_path) == undisturbed


@pytest.mark.parametrize(
    ("line", "told"), [(b"{not json}\n", "not JSON"), (b'{"row": 3}\n', "no entry of a journal")]
)
def test_a_spoilt_journal_is_named(slow, tmp_path, monkeypatch, line, told):
    path = stopped_at_five(slow, tmp_path, monkeypatch)
    path.write_bytes(line + path.read_bytes())
    with pytest.raises(HaggleError, match=told) as refused:
        make(SLOW, tmp_path)
    assert refused.value.where == f"{path}:1"


def test_a_journal_on_a_full_disk_is_told_and_goes_on_later(
    contents, full_after, slow, undisturbed, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(journal.os, "fsync", full_after(3, os.fsync))
        with pytest.raises(HaggleError, match="No space left on device") as refused:
            make(SLOW, tmp_path)
    assert "finished dialogues are kept" in refused.value.hint
    make(SLOW, tmp_path)
    assert contents(tmp_path) == undisturbed


def test_a_row_without_its_number_or_with_other_columns_is_a_mistake(slow, tmp_path, monkeypatch):
    def spoilt(change: Callable[[dict[str, Any]], Any]) -> None:
        def rows(self: Any, split: Split, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
            for row in ScriptedSource.rows(self, split, indices):
                change(row)
                yield row

        monkeypatch.setattr(slow, "rows", rows)

    spoilt(lambda row: row.update(id="seven"))
    with pytest.raises(HaggleError, match="'seven' is no id of a train dialogue"):
        make(SLOW, tmp_path / "id")
    spoilt(lambda row: row.pop("teacher"))
    with pytest.raises(ValueError, match="columns \\['teacher'\\]"):
        make(SLOW, tmp_path / "columns")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
def test_a_killed_run_with_a_model_goes_on_behind_its_last_dialogue(contents, hopeless, tmp_path):
    config = hopeless.model_copy(update={"train": 60, "shard": 60})
    make(config, tmp_path / "whole")
    code = (
        "import sys; from pathlib import Path; from data_gen.generate import generate, "
        "load_data_config; generate(load_data_config(sys.argv[1]), Path(sys.argv[2]))"
    )
    (tmp_path / "data.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")), "utf-8")
    out = tmp_path / "killed"
    running = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "data.yaml"), str(out)], cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    path, deadline = unfinished(out) / "train-00000-of-00001.jsonl", time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < 5:
        assert running.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    running.kill()
    running.wait()
    kept = path.read_bytes().count(b"\n")
    summary = make(config, out)
    assert contents(out) == contents(tmp_path / "whole")
    assert summary["made_now"] == 60 - kept


def test_reports_add_up_over_runs_and_shards():
    one = {"tokens": 3, "cost": 0.5, "rejected": {"state": 1}, "model": "a", "versions": "1"}
    two = {"tokens": 4, "cost": 0.25, "rejected": {"cart": 2}, "model": "a", "versions": "2"}
    assert total(one, two) == {
        "tokens": 7, "cost": 0.75, "rejected": {"state": 1, "cart": 2}, "model": "a",
        "versions": ["1", "2"],
    }  # fmt: skip
    assert total(total(one, two), two)["versions"] == ["1", "2"]


def test_workers_may_each_hold_an_engine(contents, hopeless, tmp_path):
    one = make(hopeless, tmp_path / "one")
    two = make(hopeless, tmp_path / "two", workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert one["report"] == two["report"], "the counts of all workers are added"
    assert one["report"]["dialogues"] == {"finished": 8}
    assert one["report"]["teacher"]["rejected"], "the model did speak"
