"""Write a labelled data set as sharded Parquet: players, a merchant who answers, random worlds.

    haggle generate --config configs/data/demo.yaml --out runs/data
    haggle generate --n 100000 --workers 2 --out runs/data/large

Rows are whole dialogues. The same seed gives the same bytes, whoever makes them; an interrupted run
resumes.
"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from data_gen.config import DataConfig, check, load_data_config, override
from data_gen.dataset.journal import reports, total
from data_gen.dataset.runners import choose_workers, run_local
from data_gen.dataset.shards import Job, Shard, count, plan, sweep, unfinished
from data_gen.sources import make_dialogue, to_row
from haggle import __version__
from haggle.core.config import claim_directory
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, write_json

__all__ = ["DataConfig", "generate", "load_data_config", "make_dialogue", "override", "to_row"]

RUNNERS = ("local", "ray")


def generate(
    config: DataConfig,
    out: Path,
    *,
    workers: int | None = None,
    runner: str = "local",
    jsonl: bool = False,
    progress: bool = True,
    wait: bool = False,
) -> dict[str, Any]:
    """Write the shards of `train` and `test` under `out`; returns the summary written.

    `workers` processes make them (default: as many as pay), on this machine or, with the runner
    `ray`, on a cluster; `jsonl` writes JSON Lines beside the Parquet files. Finished shards are
    kept, so a killed run goes on where it stopped. With `wait` a run that is writing the same is
    waited for. Raises HaggleError when `out` holds data of another config or is being written by
    another run, and when nothing is asked for.
    """
    check(config)
    if runner not in RUNNERS:
        raise HaggleError(f"no runner is named {runner!r}", hint="known: " + ", ".join(RUNNERS))
    shards = plan(config)
    claim_directory(out, config, "data of another config")
    with _alone(out, wait):
        started = time.perf_counter()
        job = Job(config, out, jsonl)
        try:
            made = _run(job, shards, runner, workers, progress)
        finally:
            sweep(out)
        return _summarise(job, shards, made, time.perf_counter() - started)


def _run(job: Job, shards: list[Shard], runner: str, workers: int | None, progress: bool) -> int:
    """Make the shards that are not there yet."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    sweep(job.out)
    pending = [shard for shard in shards if job.pending(shard)]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, disable=not progress) as bar:
        task = bar.add_task(
            "dialogues",
            total=sum(shard.count for shard in shards),
            completed=sum(s.count for s in shards if s.path(job.out).exists()),
        )
        if not pending:
            return 0

        def advance(number: int) -> None:
            bar.advance(task, number)

        if runner == "ray":
            from data_gen.dataset.ray_runner import run_ray

            return run_ray(job, pending, workers, advance)
        return run_local(job, pending, choose_workers(job, pending, workers), advance)


def _summarise(job: Job, shards: list[Shard], made: int, seconds: float) -> dict[str, Any]:
    """Count what was written and write `summary.json`; nothing in it names this machine."""
    import pyarrow

    splits: dict[str, dict[str, int]] = {}
    for shard in shards:
        counts = splits.setdefault(shard.split, {"dialogues": 0, "turns": 0, "shards": 0})
        dialogues, turns = count(shard.path(job.out))
        counts["dialogues"] += dialogues
        counts["turns"] += turns
        counts["shards"] += 1
    path, journals = job.out / "summary.json", unfinished(job.out)
    report = read_json(path)["report"] if path.exists() else {}
    if made or not report:  # else the journals left are those it was summed from
        report = total(report, reports(journals))
    summary = {
        "version": __version__,
        "versions": {"python": platform.python_version(), "pyarrow": pyarrow.__version__},
        "config": job.config.model_dump(mode="json"),
        "splits": splits,
        "report": report,
        "made_now": made,
        "seconds": round(seconds, 3),
        "dialogues_per_second": round(made / seconds, 1) if made else None,
    }
    write_json(path, summary)
    shutil.rmtree(journals, ignore_errors=True)
    return summary


@contextmanager
def _alone(out: Path, wait: bool) -> Iterator[None]:
    """Keep a second run out of the same directory, or wait for the first; a killed run's lock is
    gone with it."""
    from filelock import FileLock, Timeout

    lock = FileLock(out / ".lock", timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout:
        raise HaggleError(
            "another `haggle generate` is writing here",
            where=str(out),
            hint="wait for it, or choose another --out",
        ) from None
    except NotImplementedError:
        pass  # a network file system without locks
    try:
        yield
    finally:
        lock.release()
