"""What every engine that asks a service over HTTP shares; the services' own ways are in children.

Requests of a batch go out side by side, at most `parallel` at once. What may succeed later (429,
5xx, timeouts, lost connections) is asked again after a wait; what will not (other 4xx, answers that
are no JSON) is a HaggleError at once. Answers are kept in the request cache as they come, so that
a run that stops has paid for nothing in vain.
"""

from __future__ import annotations

import importlib
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import tenacity

from haggle.core.codec import fits
from haggle.core.engine import Generation, GenerationRequest
from haggle.core.errors import HaggleError
from serving.engines.accounting import Account, ApiUsage, Reply
from serving.engines.common import read_key
from serving.engines.config import EngineConfig, RemoteOptions
from serving.engines.request_cache import RequestCache, request_key

log = logging.getLogger(__name__)
T = TypeVar("T")
Pieces = Generator[str | Reply, None, None]

LATER = {408, 409, 425, 429}
SHOWN = 300
JOIN_S = 1.0
HINTS = {
    401: "the key was not accepted: check the environment variable that `api_key_env` names",
    403: "the key may not use this model: check it, or choose another `model`",
    404: "nothing is there under that name: check `model` and `base_url`",
    429: "too many requests: lower `parallel`, or raise `attempts` and `longest_wait_s`",
}


class Transient(Exception):
    """A failure that may pass. `retry_after` is how long the service asks to wait, in seconds."""

    def __init__(self, message: str, *, hint: str, retry_after: float | None = None) -> None:
        self.hint = hint
        self.retry_after = retry_after
        super().__init__(message)


def ended_early() -> Transient:
    """What a stream without its last event means."""
    return Transient(
        "the stream ended before the answer did", hint="check `base_url`, or run it again later"
    )


class RemoteEngine(ABC):
    """An engine whose model runs elsewhere. `usage` tells tokens, cost and model versions."""

    name: str

    def __init__(self, config: EngineConfig, options: RemoteOptions) -> None:
        self.config = config
        self.options = options
        self.model = config.model
        self._key = read_key(options.api_key_env)
        self._account = Account(options.prices, options.on_version_change)
        self._cache = None if options.cache is None else RequestCache(options.cache)
        self._gate = threading.BoundedSemaphore(config.parallel)
        self._not_before = 0.0
        self._warned = False
        self._closed = False

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """Answer a batch, `parallel` requests at a time, in its order.

        Raises HaggleError when a request is refused, or gets no answer in all attempts. The others
        under way are then still waited for, so that the cache has them.
        """
        self._running()
        return _Batch(requests, self._answer).run(self.config.parallel)

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        """Yield the answer as it comes, then the Generation. Closing the iterator stops it.

        Attempts are repeated only as long as nothing was yielded. Raises HaggleError.
        """
        self._running()
        body = self._body(request)
        key = self._request_key(body)
        if (kept := self._kept(key)) is not None:
            yield kept.text
            yield self._finish(request, kept)
            return
        with self._gate:
            stop = threading.Event()
            start, item, rest = self._attempts(lambda: self._open(body, stop), stop)
            with closing(rest):
                while not isinstance(item, Reply):
                    yield item
                    try:
                        item = next(rest)
                    except Transient as error:
                        self._account.count("failures")
                        raise self._broken(f"the answer broke off: {error}", error.hint) from None
        reply = replace(item, latency_s=time.perf_counter() - start)
        yield self._finish(request, reply, key)

    def usage(self) -> ApiUsage:
        """The totals since the start: tokens, cost, retries, model versions, finish reasons."""
        return self._account.total()

    def close(self) -> None:
        """Close the connections and the cache."""
        self._closed = True
        self._close_client()
        if self._cache is not None:
            self._cache.close()

    @abstractmethod
    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        """The request as the service takes it: plain values, everything that decides the answer."""

    @abstractmethod
    def _ask(self, body: dict[str, Any]) -> Reply:
        """One attempt. Raises Transient, or HaggleError for what will not pass."""

    @abstractmethod
    def _pieces(self, body: dict[str, Any]) -> Pieces:
        """One attempt, piece by piece; the last item is the Reply. Raises as `_ask` does."""

    @abstractmethod
    def _close_client(self) -> None:
        """Close the connections."""

    def _running(self) -> None:
        if self._closed:
            raise HaggleError("the engine was closed", where=self.name)

    def _answer(self, request: GenerationRequest, stop: threading.Event) -> Generation:
        body = self._body(request)
        key = self._request_key(body)
        if (kept := self._kept(key)) is not None:
            return self._finish(request, kept)
        reply = self._attempts(lambda: self._once(body, stop), stop)
        return self._finish(request, reply, key)

    def _once(self, body: dict[str, Any], stop: threading.Event) -> Reply:
        self._hold(stop)
        with self._gate:
            start = time.perf_counter()
            reply = self._ask(body)
            return replace(reply, latency_s=time.perf_counter() - start)

    def _open(
        self, body: dict[str, Any], stop: threading.Event
    ) -> tuple[float, str | Reply, Pieces]:
        self._hold(stop)
        start = time.perf_counter()
        pieces = self._pieces(body)
        return start, next(pieces), pieces

    def _hold(self, stop: threading.Event) -> None:
        """Wait as long as the service last asked for, whichever request it told so."""
        while (seconds := self._not_before - time.monotonic()) > 0:
            if stop.wait(seconds):
                raise HaggleError("not sent: another request of the batch failed", where=self.name)

    def _attempts(self, attempt: Callable[[], T], stop: threading.Event) -> T:
        options = self.options
        growing = tenacity.wait_exponential_jitter(
            options.first_wait_s, options.longest_wait_s, jitter=options.first_wait_s
        )

        def seconds(state: tenacity.RetryCallState) -> float:
            asked = _failure(state).retry_after
            return growing(state) if asked is None else asked

        def before_wait(state: tenacity.RetryCallState) -> None:
            error = _failure(state)
            self._account.count("retries")
            if error.retry_after is not None:
                until = time.monotonic() + error.retry_after
                self._not_before = max(self._not_before, until)
            log.info("%s: attempt %d: %s", self.name, state.attempt_number, error)

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(self._worth_waiting),
            stop=tenacity.stop_after_attempt(options.attempts) | tenacity.stop_when_event_set(stop),
            wait=seconds,
            sleep=tenacity.sleep_using_event(stop),
            before_sleep=before_wait,
            reraise=True,
        )
        try:
            return retrying(attempt)
        except Transient as error:
            self._account.count("failures")
            times = int(retrying.statistics["attempt_number"])
            given_up = f"no answer in {times} attempt{'s' if times > 1 else ''}: {error}"
            if self._too_long(error):
                given_up = f"the service asks to wait {error.retry_after:.0f} s: {error}"
            raise self._broken(given_up, error.hint) from None
        except HaggleError:
            self._account.count("failures")
            raise

    def _worth_waiting(self, error: BaseException) -> bool:
        return isinstance(error, Transient) and not self._too_long(error)

    def _too_long(self, error: Transient) -> bool:
        return error.retry_after is not None and error.retry_after > self.options.longest_wait_s

    def _request_key(self, body: dict[str, Any]) -> str:
        if self._cache is None:
            return ""
        return request_key(self.name, self.options.base_url, body)

    def _kept(self, key: str) -> Reply | None:
        kept = None if self._cache is None else self._cache.get(key)
        return None if kept is None else Reply(**kept)

    def _finish(
        self, request: GenerationRequest, reply: Reply, key: str | None = None
    ) -> Generation:
        """Count a reply and keep it under `key`; without a key it came from the cache."""
        outside = request.constraint is not None and not fits(request.constraint, reply.text)
        self._account.add(reply, from_cache=key is None, outside=outside)
        if outside and not reply.truncated and not self._warned:
            self._warned = True
            log.warning("%s: an answer does not keep its schema (told once)", self.name)
        if self._cache is not None and key is not None and reply.text:
            self._cache.put(key, asdict(reply))
        return Generation(
            text=reply.text,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            thought_tokens=reply.thought_tokens,
            latency_s=reply.latency_s,
            finish_reason="length" if reply.truncated else "stop",
        )

    def _broken(self, message: str, hint: str) -> HaggleError:
        place = self.options.base_url or "the default endpoint"
        return HaggleError(
            self._hidden(message), where=f"{self.name}: {self.model} at {place}", hint=hint
        )

    def _hidden(self, text: str) -> str:
        """A service's words, short and without the key."""
        shown = text.replace(self._key, "***") if self._key else text
        return shown if len(shown) <= SHOWN else shown[: SHOWN - 3] + "..."

    def _refused(
        self, status: int, message: str, retry_after: float | None = None
    ) -> Transient | HaggleError:
        """What an HTTP status above 399 means here."""
        text = self._hidden(f"HTTP {status}: {message}")
        if status in LATER or status >= 500:
            hint = HINTS.get(status, "the service is in trouble: run it again later")
            return Transient(text, hint=hint, retry_after=retry_after)
        hint = HINTS.get(status, "")
        if not hint and ("context" in message or "token" in message):
            hint = "is the prompt too long? Raise the server's context, or shorten the history"
        return self._broken(
            text, hint or "does the service know `structured` and the other options?"
        )

    def _lost(self, error: Exception) -> Transient:
        """What a timeout or a lost connection means here."""
        if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
            seconds = self.options.timeout_s
            return Transient(
                f"timed out after {seconds:g} s", hint="raise `timeout_s` or lower `parallel`"
            )
        cause = error.__cause__ or error
        return Transient(
            self._hidden(f"no connection: {cause}"), hint="is the server running at `base_url`?"
        )

    def _no_json(self, text: str) -> HaggleError:
        shown = " ".join(text.split())[:80]
        return self._broken(
            f"the service answered with something other than JSON: {shown!r}",
            "check `base_url`: a web page or a proxy seems to be there",
        )

    def _incomplete(self, what: str) -> HaggleError:
        return self._broken(
            f"the service's answer has no {what}", "check `base_url`: is it this kind of service?"
        )


class _Batch:
    """Requests in work. The first error stops it; Ctrl-C does not wait for a slow service."""

    def __init__(
        self,
        requests: Sequence[GenerationRequest],
        answer: Callable[[GenerationRequest, threading.Event], Generation],
    ) -> None:
        self._size = len(requests)
        self._answer = answer
        self._todo = iter(enumerate(requests))
        self._made: dict[int, Generation] = {}
        self._errors: list[BaseException] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def run(self, parallel: int) -> list[Generation]:
        """The answers in the order of the requests. Raises what the first failed one raised."""
        threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(min(parallel, self._size))
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():  # a join without an end cannot be interrupted on Windows
                    thread.join(JOIN_S)
        except BaseException:
            self._stop.set()
            raise
        if self._errors:
            raise self._errors[0]
        return [self._made[number] for number in range(self._size)]

    def _work(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                number, request = next(self._todo, (-1, None))
            if request is None:
                return
            try:
                self._made[number] = self._answer(request, self._stop)
            except BaseException as error:  # raised again in `run`
                self._errors.append(error)
                self._stop.set()


def _failure(state: tenacity.RetryCallState) -> Transient:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, Transient)
    return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a Retry-After header (seconds, or a date) asks to wait; None without one."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


def transport_errors() -> tuple[type[Exception], ...]:
    """What the HTTP libraries under the services' packages raise for timeouts and connections."""
    found: list[type[Exception]] = [ConnectionError, TimeoutError]
    for name in ("httpx", "httpx2"):
        try:
            found.append(importlib.import_module(name).TransportError)
        except ImportError:
            continue
    return tuple(found)
