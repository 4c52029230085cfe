"""The server as a process: it stops when the turns that run are finished."""

from __future__ import annotations

import time
from types import FrameType

import uvicorn
from fastapi import FastAPI

from serving.http.queue import TurnQueue

CANCEL_S = 5  # how long turns that are cut off have to end


class DrainingServer(uvicorn.Server):
    """At the first signal it takes no turn any more and lets those that run end, for `drain_s`
    seconds at most; then it ends as any program does. At the second it stops at once, and ends by
    that signal."""

    def __init__(self, config: uvicorn.Config, queue: TurnQueue, drain_s: float) -> None:
        super().__init__(config)
        self._queue, self._drain_s = queue, drain_s
        self._until: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called for each signal."""
        if self._until is None:
            self._until = time.monotonic() + self._drain_s
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second; whether to stop."""
        if self._until is not None and not self.should_exit:
            if not self._queue.draining:
                self._queue.drain()
            self.should_exit = not self._queue.busy or time.monotonic() > self._until
        return await super().on_tick(counter)


def serve(app: FastAPI, host: str, port: int, *, drain_s: float, most: int) -> None:
    """Serve until a signal comes."""
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", ws_max_size=most,
        timeout_graceful_shutdown=CANCEL_S,
    )  # fmt: skip
    DrainingServer(config, app.state.server.queue, drain_s).run()
