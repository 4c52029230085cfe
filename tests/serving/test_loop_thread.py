"""The event loop in a thread: whoever waits for its work when it ends is told so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import pytest

from serving.engines.loop_thread import LoopThread

SECONDS = 10  # longer than anything here takes


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread("test")
    yield thread
    thread.close(lambda: None)


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


async def exit_the_thread() -> None:
    raise SystemExit


def test_work_runs_side_by_side(loop: LoopThread) -> None:
    async def meet(mine: asyncio.Event, other: asyncio.Event) -> str:
        mine.set()
        await other.wait()
        return "met"

    one, two = asyncio.Event(), asyncio.Event()
    both = [loop.submit(meet(one, two)), loop.submit(meet(two, one))]
    assert [work.result(SECONDS) for work in both] == ["met", "met"]


def test_closing_cancels_what_is_under_way_and_then_calls_the_last(loop: LoopThread) -> None:
    order: list[str] = []

    async def work() -> None:
        try:
            await wait_for_ever()
        finally:
            order.append("cancelled")

    waiting = loop.submit(work())
    loop.submit(asyncio.sleep(0)).result(SECONDS)  # by now the work has begun
    loop.close(lambda: order.append("last"))
    assert order == ["cancelled", "last"]
    with pytest.raises(CancelledError):
        waiting.result(SECONDS)


def test_work_that_comes_while_the_last_runs_is_cancelled(loop: LoopThread) -> None:
    late: list[Future[None]] = []
    loop.close(lambda: late.append(loop.submit(wait_for_ever())))
    assert late[0].cancelled()


def test_the_last_is_called_once(loop: LoopThread) -> None:
    called: list[int] = []
    for number in range(2):
        loop.close(lambda number=number: called.append(number))  # type: ignore[misc]
    assert called == [0]


def test_no_one_waits_for_ever_who_submits_while_it_closes() -> None:
    for _ in range(20):
        loop, begin = LoopThread("test"), threading.Barrier(5)

        def submit(loop: LoopThread, begin: threading.Barrier) -> list[Future[None]]:
            begin.wait(SECONDS)
            return [loop.submit(wait_for_ever()) for _ in range(50)]

        with ThreadPoolExecutor(4) as pool:
            callers = [pool.submit(submit, loop, begin) for _ in range(4)]
            begin.wait(SECONDS)
            loop.close(lambda: None)
            for work in (work for caller in callers for work in caller.result(SECONDS)):
                with pytest.raises(CancelledError):
                    work.result(SECONDS)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_no_one_waits_for_ever_where_work_ends_the_thread(loop: LoopThread) -> None:
    waiting = loop.submit(wait_for_ever())
    loop.submit(exit_the_thread())
    with pytest.raises(CancelledError):
        waiting.result(SECONDS)
    with pytest.raises(CancelledError):
        loop.submit(wait_for_ever()).result(SECONDS)
