"""The same shards made on a cluster through Ray: tasks for scripted data, actors for models.

    haggle generate --runner ray --n 1000000 --out /shared/data/large

Without RAY_ADDRESS a Ray of its own is started on this machine. On a cluster every node must have
haggle installed and see `--out` under the same path. A killed worker loses nothing: its shard is
made again, from the journal where there is one.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from data_gen.dataset.runners import TRIES, Advance
from data_gen.dataset.shards import Job, Shard, Worker
from haggle.core.config import install_hint
from haggle.core.errors import HaggleError

OBJECT_STORE = 100 * 2**20  # bytes; only counts travel between workers


def run_ray(job: Job, shards: Sequence[Shard], workers: int | None, advance: Advance) -> int:
    """Make the shards on Ray, at most `workers` at a time; returns how many dialogues were made.

    By default as many tasks run as the cluster has cores, or one actor with a model. Raises
    HaggleError when Ray is missing or a shard's worker died again and again.
    """
    job = replace(job, out=job.out.resolve())
    with _connected(workers) as ray:
        if job.config.scripted:
            limit = workers or int(ray.cluster_resources().get("CPU", 1))
            task = ray.remote(max_retries=TRIES - 1)(_make)
            hands: list[Callable[[Shard], Any]] = [lambda shard: task.remote(job, shard)] * limit
            return _share_out(ray, hands, shards, advance)
        actor = ray.remote(max_restarts=TRIES - 1, max_task_retries=TRIES - 1)(Worker)
        actors = [actor.remote(job) for _ in range(min(workers or 1, len(shards)))]
        try:
            hands = [_hand(holder) for holder in actors]
            made = _share_out(ray, hands, shards, advance)
            ray.get([holder.close.remote() for holder in actors])
            return made
        finally:
            for holder in actors:
                ray.kill(holder)


def _make(job: Job, shard: Shard) -> int:
    """A task: one shard of scripted data."""
    worker = Worker(job)
    try:
        return worker.make(shard)
    finally:
        worker.close()


def _hand(holder: Any) -> Callable[[Shard], Any]:
    return lambda shard: holder.make.remote(shard)


def _share_out(
    ray: Any, hands: list[Callable[[Shard], Any]], shards: Sequence[Shard], advance: Advance
) -> int:
    """Give every free hand a shard until all are made."""
    todo, free, made = deque(shards), list(hands), 0
    busy: dict[Any, tuple[Callable[[Shard], Any], Shard]] = {}
    try:
        while todo or busy:
            while todo and free:
                hand, shard = free.pop(), todo.popleft()
                busy[hand(shard)] = hand, shard
            (ready, *_), _ = ray.wait(list(busy), num_returns=1)
            hand, shard = busy[ready]
            number = _result(ray, ready, shard)
            del busy[ready]
            free.append(hand)
            made += number
            advance(shard.count)
    finally:
        for reference in busy:
            _cancel(ray, reference)
    return made


def _result(ray: Any, reference: Any, shard: Shard) -> int:
    """What a worker made. Its own error is raised as it was there."""
    try:
        return int(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        raise (error.cause or error) from None
    except ray.exceptions.RayError as error:
        raise HaggleError(
            f"workers on Ray died {TRIES} times on {shard.split} shard {shard.number}: "
            f"{str(error).splitlines()[0]}",
            hint="too little memory? run the same command again with fewer --workers; "
            "finished shards are kept",
        ) from error


def _cancel(ray: Any, reference: Any) -> None:
    try:
        ray.cancel(reference, force=True)
    except (ValueError, TypeError, ray.exceptions.RayError):
        pass  # an actor's work ends with the actor


@contextmanager
def _connected(workers: int | None) -> Iterator[Any]:
    """Ray, connected to a running cluster or started for this run."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise HaggleError(
            "Ray is not installed", where="--runner ray", hint=install_hint("ray")
        ) from None
    ours = not ray.is_initialized()
    if ours:
        quiet = {"log_to_driver": False, "logging_level": "WARNING"}
        if os.environ.get("RAY_ADDRESS"):
            ray.init(**quiet)
        else:
            ray.init(
                address="local",
                num_cpus=workers or os.cpu_count(),
                include_dashboard=False,
                object_store_memory=OBJECT_STORE,
                **quiet,
            )
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()
