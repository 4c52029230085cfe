"""Who makes the shards on one machine: this process, or a crew of worker processes.

Workers are spawned, not forked, so they behave alike on Linux, macOS and Windows. The bytes written
do not depend on who makes which shard.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, cast

from data_gen.dataset.shards import Job, Shard, Worker
from haggle.core.errors import HaggleError

Advance = Callable[[int], None]
TRIES = 3  # a shard whose worker died this often is given up
GRACE_S = 10.0  # for a worker told to stop to put its things away
WORTH_A_WORKER = 400  # dialogues; below that, starting a process takes longer than making them


def choose_workers(job: Job, shards: Sequence[Shard], asked: int | None) -> int:
    """How many processes to use: as asked, else a core each as far as there is work for them.

    A source with a model works on many dialogues at once by itself, so it gets one.
    """
    if asked is not None:
        return max(1, min(asked, len(shards)))
    if not job.config.scripted:
        return 1
    enough = sum(shard.count for shard in shards) // WORTH_A_WORKER
    return max(1, min(os.cpu_count() or 1, len(shards), enough))


def run_local(job: Job, shards: Sequence[Shard], workers: int, advance: Advance) -> int:
    """Make the shards with so many processes; returns how many dialogues were made.

    Raises HaggleError when a shard cannot be written, or when its worker died again and again.
    """
    if workers == 1:
        worker = Worker(job)
        try:
            return sum(worker.make(shard, advance) for shard in shards)
        finally:
            worker.close()
    return _Crew(job, shards, advance).run(workers)


@dataclass
class _Hand:
    """One worker process, the shard it is at and how far it said it is."""

    process: BaseProcess
    shard: Shard | None = None
    ticked: int = 0


class _Crew:
    """Worker processes that are handed shards over pipes, one at a time."""

    def __init__(self, job: Job, shards: Sequence[Shard], advance: Advance) -> None:
        self.job = job
        self.advance = advance
        self.todo = deque(shards)
        self.deaths: Counter[Shard] = Counter()
        self.hands: dict[Connection, _Hand] = {}
        self.made = 0
        self.context = multiprocessing.get_context("spawn")

    def run(self, workers: int) -> int:
        """Work until every shard is made."""
        try:
            for _ in range(workers):
                self._hire()
            while self.hands:
                for pipe in wait(list(self.hands)):
                    self._hear(cast(Connection, pipe))
        finally:
            self._dismiss()
        return self.made

    def _hire(self) -> None:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=_work, args=(self.job, theirs), daemon=True)
        with _deaf_to_ctrl_c():
            process.start()
        theirs.close()  # else a dead worker's end would never be seen to close
        self.hands[ours] = _Hand(process)
        self._hand_out(ours)

    def _hand_out(self, pipe: Connection) -> None:
        """Give a worker its next shard, or send it home."""
        hand = self.hands[pipe]
        hand.shard, hand.ticked = (self.todo.popleft() if self.todo else None), 0
        try:
            pipe.send(hand.shard)
        except OSError:
            pass  # it has died; its end of the pipe says so next
        if hand.shard is None:
            hand.process.join(GRACE_S)
            del self.hands[pipe]
            pipe.close()

    def _hear(self, pipe: Connection) -> None:
        hand = self.hands[pipe]
        try:
            said, value = pipe.recv()
        except (EOFError, OSError):
            self._replace(pipe)
            return
        if said == "ticked":
            hand.ticked += value
            self.advance(value)
        elif said == "made":
            self.made += value
            self._hand_out(pipe)
        else:
            raise value

    def _replace(self, pipe: Connection) -> None:
        """A worker died: its shard goes to a new one."""
        hand = self.hands.pop(pipe)
        pipe.close()
        hand.process.join(GRACE_S)
        shard = hand.shard
        assert shard is not None
        self.advance(-hand.ticked)
        self.deaths[shard] += 1
        if self.deaths[shard] == TRIES:
            name, code = shard.path(self.job.out).name, hand.process.exitcode
            killed = code is not None and code < 0
            raise HaggleError(
                f"{TRIES} workers died on {name}, the last with exit code {code}",
                where=str(self.job.out),
                hint="too little memory? run the same command again with fewer --workers; "
                "finished shards are kept"
                if killed
                else "its own message stands above; a script that generates with several workers "
                "needs `if __name__ == '__main__':`",
            )
        self.todo.appendleft(shard)
        self._hire()

    def _dismiss(self) -> None:
        for hand in self.hands.values():
            hand.process.terminate()
        for pipe, hand in self.hands.items():
            hand.process.join(GRACE_S)
            if hand.process.is_alive():
                hand.process.kill()
                hand.process.join()
            pipe.close()
        self.hands.clear()


class WorkerError(RuntimeError):
    """A mistake of the program in a worker, with the worker's own traceback."""


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Ctrl-C waits here, and never comes to a process that is started meanwhile: it is the parent's
    to answer, from a worker's first import on."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # else its own start would end the wait
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


def _work(job: Job, pipe: Connection) -> None:
    """A worker process: make the shards that come over the pipe until None comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it could not be kept from hearing
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that temporary files are removed
    worker = Worker(job)
    try:
        while (shard := pipe.recv()) is not None:
            pipe.send(("made", worker.make(shard, lambda n: pipe.send(("ticked", n)))))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the parent is gone
    except HaggleError as error:
        _tell(pipe, error)
    except Exception:
        _tell(pipe, WorkerError(f"in a worker process:\n{traceback.format_exc()}"))
    finally:
        worker.close()


def _tell(pipe: Connection, error: Any) -> None:
    try:
        pipe.send(("failed", error))
    except OSError:
        pass
