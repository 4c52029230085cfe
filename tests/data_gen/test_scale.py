"""Many workers, dead workers, full disks, kills at any moment: always the same bytes in the end."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from data_gen.dataset import journal, runners
from data_gen.dataset import shards as shards_module
from data_gen.dataset.journal import total
from data_gen.dataset.runners import choose_workers
from data_gen.dataset.shards import Job, plan, unfinished
from data_gen.generate import DataConfig, generate
from data_gen.language.phrasebook import Split
from data_gen.sources import ScriptedSource
from data_gen.teachers.config import TeacherConfig
from haggle.config import ROOT
from haggle.dataset import dataset_files, iter_rows
from haggle.errors import HaggleError
from haggle.storage import read_json

WIDE = DataConfig(train=50, test=7, seed=5, shard=10)
SLOW = DataConfig(train=9, test=0, seed=5, shard=6, teacher=TeacherConfig(engine="llamacpp"))
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")


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


# A plan and the workers for it


def test_every_dialogue_stands_in_exactly_one_shard():
    shards = plan(DataConfig(train=23, test=10, shard=10))
    assert [(s.split, s.number, s.of, s.first, s.count) for s in shards] == [
        ("train", 0, 3, 0, 10), ("train", 1, 3, 10, 10), ("train", 2, 3, 20, 3),
        ("test", 0, 1, 0, 10),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "asked", "chosen"),
    [(100, None, 1), (100, 3, 3), (100, 99, 10), (10_000, None, 2), (0, 2, 1)],
)
def test_as_many_workers_are_taken_as_pay(tmp_path, monkeypatch, number, asked, chosen):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    config = DataConfig(train=number, test=0, shard=max(1, number // 10))
    assert choose_workers(Job(config, tmp_path), plan(config), asked) == chosen


def test_a_model_gets_one_worker_unless_more_are_asked_for(tmp_path):
    config = SLOW.model_copy(update={"train": 50_000})
    job = Job(config, tmp_path)
    assert choose_workers(job, plan(config), None) == 1
    assert choose_workers(job, plan(config), 2) == 2


# Worker processes


@pytest.mark.parametrize("workers", [2, 3])
def test_the_bytes_do_not_depend_on_the_number_of_workers(alone, tmp_path, workers):
    summary = make(WIDE, tmp_path, workers=workers, jsonl=True)
    made = contents(tmp_path)
    assert {name: made[name] for name in alone} == alone
    assert summary["made_now"] == 57 and len(made) == 12
    assert not litter(tmp_path) and not multiprocessing.active_children()


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


@posix
def test_a_killed_workers_shard_is_made_again(alone, tmp_path):
    def kill_one() -> bool:
        busy = [p for p in multiprocessing.active_children() if p.pid and litter(tmp_path)]
        for process in busy[:1]:
            os.kill(process.pid or 0, signal.SIGKILL)
            killed.append(process.pid or 0)
        return bool(busy)

    killed: list[int] = []
    end = meanwhile(kill_one)
    summary = make(WIDE, tmp_path, workers=2)
    end()
    assert len(killed) == 1
    assert contents(tmp_path) == alone and not litter(tmp_path)
    assert summary["splits"]["train"]["dialogues"] == 50


@posix
def test_workers_that_always_die_are_told_and_finished_shards_stay(alone, tmp_path):
    config = WIDE.model_copy(update={"train": 20, "test": 0})
    make(config, tmp_path, workers=1)
    kept = sorted(contents(tmp_path))[0]
    for path in dataset_files(tmp_path)[1:]:
        path.unlink()

    def kill_all() -> bool:
        for process in multiprocessing.active_children():
            os.kill(process.pid or 0, signal.SIGKILL)
        return False

    end = meanwhile(kill_all)
    try:
        # One shard is left, which alone would be made in this process.
        job, shards = Job(config, tmp_path), plan(config)[1:]
        with pytest.raises(HaggleError, match="3 workers died on train-00001-of-00002") as refused:
            runners._Crew(job, shards, lambda _: None).run(2)
    finally:
        end()
    assert "fewer --workers" in refused.value.hint
    assert list(contents(tmp_path)) == [kept]
    assert make(config, tmp_path, workers=1)["made_now"] == 10


LIMITED = """
import resource, sys
from pathlib import Path
from data_gen.generate import DataConfig, generate
from haggle.errors import HaggleError

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
    config = DataConfig(train=81, test=0, shard=80)
    try:
        generate(config, Path(sys.argv[1]), workers=2, progress=False)
    except HaggleError as error:
        print(error)
"""


@posix
def test_an_error_in_a_worker_is_told_as_it_was_there(tmp_path):
    """Files above 30,000 bytes cannot be written: as on a full disk, in every worker."""
    script, out = tmp_path / "limited.py", tmp_path / "out"
    script.write_text(LIMITED, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(out)], capture_output=True, text=True, cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=300, check=True,
    )  # fmt: skip
    assert "train-00000-of-00002.parquet: could not be written" in done.stdout, done.stderr
    assert "hint: free disk space" in done.stdout
    assert not litter(out)


def test_two_runs_do_not_write_to_one_directory(tmp_path):
    from filelock import FileLock

    make(WIDE.model_copy(update={"train": 1, "test": 0}), tmp_path)
    with FileLock(tmp_path / ".lock"), pytest.raises(HaggleError, match="is writing here"):
        make(WIDE.model_copy(update={"train": 1, "test": 0}), tmp_path)


def test_an_unknown_runner_is_refused(tmp_path):
    with pytest.raises(HaggleError, match="no runner is named 'slurm'") as refused:
        make(WIDE, tmp_path / "out", runner="slurm")
    assert "local, ray" in refused.value.hint and not (tmp_path / "out").exists()


# The whole command, killed


def command(config: DataConfig, out: Path, *options: str) -> list[str]:
    path = out.with_name("config.yaml")
    path.write_text(yaml.safe_dump(config.model_dump(mode="json")), encoding="utf-8")
    return [sys.executable, "-m", "haggle", "generate", "--config", str(path), "--out", str(out),
            "--quiet", *options]  # fmt: skip


def start(line: list[str]) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
        start_new_session=True,
    )  # fmt: skip


def wait_for(what: Callable[[], Any], seconds: float = 120) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return found


def children(pid: int) -> list[Any]:
    psutil = pytest.importorskip("psutil")
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


@posix
def test_a_run_killed_again_and_again_ends_with_the_same_bytes(alone, tmp_path):
    out = tmp_path / "out"
    line = command(WIDE, out, "--workers", "2")
    for finished in (0, 2):
        running = start(line)
        wait_for(lambda number=finished: litter(out) and len(contents(out)) >= number)  # type: ignore[misc]
        orphans = children(running.pid)
        running.kill()
        running.communicate()
        # Workers whose parent is gone end by themselves; the next run waits for nobody.
        wait_for(lambda those=orphans: not any(p.is_running() for p in those))  # type: ignore[misc]
    kept = contents(out)
    assert len(kept) >= 2 and all(alone[name] == data for name, data in kept.items())
    running = start(line)
    assert running.wait(timeout=120) == 0, running.communicate()[1]
    assert contents(out) == alone and not litter(out)
    assert read_json(out / "summary.json")["made_now"] < 57


@posix
def test_ctrl_c_ends_all_workers_and_leaves_nothing_half_written(alone, tmp_path):
    out = tmp_path / "out"
    running = start(command(WIDE, out, "--workers", "2"))
    wait_for(lambda: litter(out))
    workers = children(running.pid)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: the whole group gets it
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130 and "run the same command again to go on" in errors
    assert "Traceback" not in errors
    assert not litter(out)
    wait_for(lambda: not any(process.is_running() for process in workers))
    make(WIDE, out, workers=1)
    assert contents(out) == alone


# A full disk


def full_after(number: int, write: Callable[..., Any]) -> Callable[..., Any]:
    """`write`, but the disk is full after `number` calls."""
    calls: list[int] = []

    def torn(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) > number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(*arguments)

    return torn


def test_a_full_disk_is_told_and_costs_no_finished_shard(alone, tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", full_after(2, pq.ParquetWriter.write_table))
        with pytest.raises(HaggleError, match="No space left on device") as refused:
            make(WIDE, tmp_path, workers=1)
    assert refused.value.where.endswith("train-00002-of-00005.parquet")
    assert "free disk space" in refused.value.hint
    assert list(contents(tmp_path)) == sorted(alone)[1:3] and not litter(tmp_path)
    assert make(WIDE, tmp_path, workers=1)["made_now"] == 37
    assert contents(tmp_path) == alone


# Slow sources: every finished dialogue is kept


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
def undisturbed(slow, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
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
    slow, undisturbed, tmp_path, monkeypatch, stop_at
):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(slow, "stop_at", stop_at)
        make(SLOW, tmp_path)
    before = list(slow.asked)
    assert before == list(range(stop_at))
    summary = make(SLOW, tmp_path)
    again = {2} if stop_at == 3 else set()  # given up, and no later one finished that says so
    assert sorted(slow.asked) == sorted([*range(9), *again])
    assert contents(tmp_path) == undisturbed and not unfinished(tmp_path).exists()
    assert [row["id"].split("-")[1] for row in iter_rows(tmp_path)] == list("01345678")
    assert summary["report"]["tokens"] == 90, "each answer that led to a row is counted once"


def test_an_engine_that_fails_stops_the_run_and_keeps_what_is_finished(
    slow, undisturbed, tmp_path, monkeypatch
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
def test_a_torn_last_line_of_a_journal_is_made_again(slow, undisturbed, tmp_path, monkeypatch, cut):
    path = stopped_at_five(slow, tmp_path, monkeypatch)
    path.write_bytes(path.read_bytes()[:-cut])
    make(SLOW, tmp_path)
    assert contents(tmp_path) == undisturbed
    assert slow.asked == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8]


def test_a_dialogue_journalled_twice_is_taken_once(slow, undisturbed, tmp_path, monkeypatch):
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
    slow, undisturbed, tmp_path, monkeypatch
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


def test_reports_add_up_over_runs_and_shards():
    one = {"tokens": 3, "cost": 0.5, "rejected": {"state": 1}, "model": "a", "versions": "1"}
    two = {"tokens": 4, "cost": 0.25, "rejected": {"cart": 2}, "model": "a", "versions": "2"}
    assert total(one, two) == {
        "tokens": 7, "cost": 0.75, "rejected": {"state": 1, "cart": 2}, "model": "a",
        "versions": ["1", "2"],
    }  # fmt: skip
    assert total(total(one, two), two)["versions"] == ["1", "2"]


@pytest.fixture
def hopeless(tmp_path: Path) -> DataConfig:
    """A model as teacher whose answers are never usable, so that the oracle's stand in."""
    script = {"engine": "scripted", "scripted": {"answers": ["well"] * 500}}
    (tmp_path / "serve.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")
    teacher = TeacherConfig(
        engine=str(tmp_path / "serve.yaml"), max_attempts=1, on_failure="oracle", concurrency=3
    )
    return DataConfig(train=8, test=0, seed=5, shard=3, teacher=teacher)


def test_workers_may_each_hold_an_engine(hopeless, tmp_path):
    one = make(hopeless, tmp_path / "one")
    two = make(hopeless, tmp_path / "two", workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert one["report"] == two["report"], "the counts of all workers are added"
    assert one["report"]["dialogues"] == {"finished": 8}
    assert one["report"]["teacher"]["rejected"], "the model did speak"


# Ray


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
    missing = SLOW.model_copy(update={"teacher": TeacherConfig(engine=str(tmp_path / "no.yaml"))})
    with pytest.raises(HaggleError) as refused:
        make(missing, tmp_path / "out", runner="ray")
    assert "no.yaml" in str(refused.value)
