"""What remote answers cost, and which version of a model gave them."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

from haggle.core.config import Record
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from serving.engines.config import Prices

log = logging.getLogger(__name__)

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as a service gave it. `finish` is the service's own word for why it ended.

    `thought_tokens` are not among `completion_tokens`; `cached_tokens` are those of the prompt that
    the service had in its own cache. `version` is the model that answered, "" where it is not
    told; `counted` is whether the service told its token counts. `latency_s` is that of the attempt
    that succeeded, without the waits before it.
    """

    text: str
    finish: str = "stop"
    truncated: bool = False
    version: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    thought_tokens: int = 0
    counted: bool = True
    latency_s: float = 0.0


class ApiUsage(Record):
    """The totals of an engine since it was started.

    `answers` were given, `from_cache` of them by the request cache; tokens and cost are of the
    others. `retries` are attempts that failed and were repeated, `failures` requests given up.
    `cost` is in `currency` at the prices of `prices_as_of`, None without prices. `uncounted`
    answers came without token counts, so the totals lack them. `outside_schema` answers were asked
    for with a constraint and did not keep it; `truncated` ones are not among them.
    """

    answers: int = 0
    from_cache: int = 0
    retries: int = 0
    failures: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    thought_tokens: int = 0
    uncounted: int = 0
    truncated: int = 0
    outside_schema: int = 0
    cost: float | None = None
    currency: str = ""
    prices_as_of: str = ""
    model_versions: dict[str, int] = {}
    finish_reasons: dict[str, int] = {}


class Account:
    """Adds up replies. Every method may be called from several threads."""

    def __init__(self, prices: Prices | None, on_version_change: Literal["stop", "record"]) -> None:
        self.prices = prices
        self.on_version_change = on_version_change
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()
        self._finishes: Counter[str] = Counter()
        self._cost = 0.0

    def count(self, what: Literal["retries", "failures"]) -> None:
        """Count a failed attempt."""
        with self._lock:
            self._counts[what] += 1

    def add(self, reply: Reply, *, from_cache: bool, outside: bool) -> None:
        """Add a reply. Raises HaggleError when another version answered and that is to stop."""
        with self._lock:
            self._counts["answers"] += 1
            self._counts["truncated"] += reply.truncated
            self._counts["outside_schema"] += outside and not reply.truncated
            self._finishes[reply.finish] += 1
            if from_cache:
                self._counts["from_cache"] += 1
            else:
                self._pay(reply)
            if reply.version:
                self._see(reply.version)

    def total(self) -> ApiUsage:
        """The totals so far."""
        with self._lock:
            prices = self.prices
            return ApiUsage(
                **self._counts,
                cost=None if prices is None else round(self._cost, 6),
                currency="" if prices is None else prices.currency,
                prices_as_of="" if prices is None else prices.as_of,
                model_versions=dict(self._versions),
                finish_reasons=dict(self._finishes),
            )

    def _pay(self, reply: Reply) -> None:
        self._counts["prompt_tokens"] += reply.prompt_tokens
        self._counts["cached_tokens"] += reply.cached_tokens
        self._counts["completion_tokens"] += reply.completion_tokens
        self._counts["thought_tokens"] += reply.thought_tokens
        self._counts["uncounted"] += not reply.counted
        if self.prices is not None:
            self._cost += cost(reply, self.prices)

    def _see(self, version: str) -> None:
        new = version not in self._versions
        self._versions[version] += 1
        first = next(iter(self._versions))
        if version == first:
            return
        message = f"the model changed while it was used: {version!r} answers, {first!r} did before"
        if self.on_version_change == "stop":
            raise HaggleError(
                message,
                where="on_version_change: stop",
                hint="name a fixed version as `model`; or start again with a new `cache` file; or "
                "set on_version_change: record and report both versions",
            )
        if new:
            log.warning("%s", message)


def cost(reply: Reply, prices: Prices) -> float:
    """The price of one reply in the prices' currency; thoughts are paid like the answer."""
    cached = prices.input if prices.cached_input is None else prices.cached_input
    made = reply.completion_tokens + reply.thought_tokens
    fresh = reply.prompt_tokens - reply.cached_tokens
    return (fresh * prices.input + reply.cached_tokens * cached + made * prices.output) / MILLION


def public_model(engine: Engine) -> str:
    """The name of an engine's model, without the directories of the machine it runs on."""
    model = engine.model
    path = PurePath(model)
    local = path.is_absolute() or "\\" in model or model.startswith((".", "~"))
    return path.name if local else model


def usage_of(engine: Engine) -> dict[str, Any]:
    """An engine's `usage()` since its start, as plain values; empty where it counts none.

    None values and empty ones are left out, so that what remains can be added up.
    """
    usage = getattr(engine, "usage", None)
    if usage is None:
        return {}
    used = usage()
    data = used.model_dump(mode="json") if hasattr(used, "model_dump") else dict(used)
    return {key: value for key, value in data.items() if value not in (None, "", {})}
