"""How often one caller may ask, and how much a request may hold."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.http.errors import Refused

CALLERS = 10_000  # remembered at once; beyond them the one who asked longest ago is forgotten


class RateLimit:
    """A bucket of tokens for each caller: a request takes one, and they come back over time.

    `per_minute` is the size of a bucket, and what comes back in a minute; 0 sets no limit.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._per_second, self._clock = per_minute, per_minute / 60, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, caller: str) -> None:
        """Take a token. Raises Refused (429)."""
        if not self._most:
            return
        with self._lock:
            now = self._clock()
            left, at = self._buckets.pop(caller, (float(self._most), now))
            left = min(self._most, left + (now - at) * self._per_second)
            enough = left >= 1
            self._buckets[caller] = (left - 1 if enough else left, now)
            if len(self._buckets) > CALLERS:
                self._buckets.popitem(last=False)
        if not enough:
            raise Refused(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"more than {self._most} requests in a minute",
                hint="ask less often, or start the server with a higher --rate-limit",
                retry_after=(1 - left) / self._per_second,
            )


class SizeLimit:
    """Refuses (413) a request whose body is longer than `most` bytes, as soon as that shows."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise self._too_long()
            return message

        await self._app(scope, counted, send)

    def _too_long(self) -> Exception:
        told = f"the request is longer than {self._most} bytes"
        return HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)
