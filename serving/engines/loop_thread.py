"""An event loop in a thread of its own, which any other thread gives work to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import closing
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs the coroutines that are submitted to it, side by side, until it is closed.

    Closing cancels them all: no one waits for ever.
    """

    def __init__(self, name: str) -> None:
        self._lock = threading.Lock()  # nothing is submitted once `_open` is false
        self._open = True
        self._last: Callable[[], None] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start `work`. Its future is cancelled by `close`; after that, from the start."""
        with self._lock:
            if self._open:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        refused: Future[T] = Future()
        refused.cancel()
        return refused

    def close(self, last: Callable[[], None]) -> None:
        """Cancel all work, call `last` in the loop, then end the thread.

        A second call waits for the first one and does nothing else.
        """
        with self._lock:
            if self._open:
                self._open, self._last = False, last
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        with closing(self._loop):
            try:
                self._loop.run_forever()
            finally:  # also where the work itself ends the thread, with SystemExit
                with self._lock:
                    self._open = False
                self._loop.run_until_complete(self._end())

    async def _end(self) -> None:
        under_way = asyncio.all_tasks() - {asyncio.current_task()}
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        if self._last is not None:
            self._last()
