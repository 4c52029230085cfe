"""Many workers, dead workers, full disks, kills at any moment: always the same bytes in the end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from data_gen.dataset import runners
from data_gen.dataset.runners import choose_workers
from data_gen.dataset.shards import Job, plan
from data_gen.generate import DataConfig, generate
from data_gen.teachers.config import TeacherConfig
from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json
from haggle.dataset import dataset_files

SLOW = DataConfig(train=9, test=0, seed=5, shard=6, teacher=TeacherConfig(engine="llamacpp"))
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")


make = partial(generate, progress=False)


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
def test_the_bytes_do_not_depend_on_the_number_of_workers(
    contents, litter, wide, alone, tmp_path, workers
):
    summary = make(wide, tmp_path, workers=workers, jsonl=True)
    made = contents(tmp_path)
    assert {name: made[name] for name in alone} == alone
    assert summary["made_now"] == 57 and len(made) == 12
    assert not litter(tmp_path) and not multiprocessing.active_children()


@posix
def test_a_killed_workers_shard_is_made_again(contents, litter, meanwhile, wide, alone, tmp_path):
    def kill_one() -> bool:
        busy = [p for p in multiprocessing.active_children() if p.pid and litter(tmp_path)]
        for process in busy[:1]:
            os.kill(process.pid or 0, signal.SIGKILL)
            killed.append(process.pid or 0)
        return bool(busy)

    killed: list[int] = []
    end = meanwhile(kill_one)
    summary = make(wide, tmp_path, workers=2)
    end()
    assert len(killed) == 1
    assert contents(tmp_path) == alone and not litter(tmp_path)
    assert summary["splits"]["train"]["dialogues"] == 50


@posix
def test_workers_that_always_die_are_told_and_finished_shards_stay(
    contents, meanwhile, wide, alone, tmp_path
):
    config = wide.model_copy(update={"train": 20, "test": 0})
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
from haggle.core.errors import HaggleError

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
    config = DataConfig(train=81, test=0, shard=80)
    try:
        generate(config, Path(sys.argv[1]), workers=2, progress=False)
    except HaggleError as error:
        print(error)
"""


@posix
def test_an_error_in_a_worker_is_told_as_it_was_there(litter, tmp_path):
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


def test_two_runs_do_not_write_to_one_directory(wide, tmp_path):
    from filelock import FileLock

    make(wide.model_copy(update={"train": 1, "test": 0}), tmp_path)
    with FileLock(tmp_path / ".lock"), pytest.raises(HaggleError, match="is writing here"):
        make(wide.model_copy(update={"train": 1, "test": 0}), tmp_path)


def test_an_unknown_runner_is_refused(wide, tmp_path):
    with pytest.raises(HaggleError, match="no runner is named 'slurm'") as refused:
        make(wide, tmp_path / "out", runner="slurm")
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
@pytest.mark.long
def test_a_run_killed_again_and_again_ends_with_the_same_bytes(
    contents, litter, wide, alone, tmp_path
):
    out = tmp_path / "out"
    line = command(wide, out, "--workers", "2")
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
def test_ctrl_c_ends_all_workers_and_leaves_nothing_half_written(
    contents, litter, wide, alone, tmp_path
):
    out = tmp_path / "out"
    running = start(command(wide, out, "--workers", "2"))
    wait_for(lambda: litter(out))
    workers = children(running.pid)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: the whole group gets it
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130 and "run the same command again to go on" in errors
    assert "Traceback" not in errors
    assert not litter(out)
    wait_for(lambda: not any(process.is_running() for process in workers))
    make(wide, out, workers=1)
    assert contents(out) == alone


# A full disk


def test_a_full_disk_is_told_and_costs_no_finished_shard(
    contents, full_after, litter, wide, alone, tmp_path, monkeypatch
):
    import pyarrow.parquet as pq

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", full_after(2, pq.ParquetWriter.write_table))
        with pytest.raises(HaggleError, match="No space left on device") as refused:
            make(wide, tmp_path, workers=1)
    assert refused.value.where.endswith("train-00002-of-00005.parquet")
    assert "free disk space" in refused.value.hint
    assert list(contents(tmp_path)) == sorted(alone)[1:3] and not litter(tmp_path)
    assert make(wide, tmp_path, workers=1)["made_now"] == 37
    assert contents(tmp_path) == alone
