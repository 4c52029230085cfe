"""What a server counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

from haggle.core.turn import Turn

SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
FALLBACKS = {"degraded", "safe_line"}  # code said a line of its own

__all__ = ["CONTENT_TYPE", "Metrics"]


class Metrics:
    """The counters of one application."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)  # memory, processor time, open files (Linux)
        self._turns = Counter(
            "haggle_turns", "Turns that were answered.", ["character"], registry=registry
        )
        self._failed = Counter(
            "haggle_turns_failed", "Turns that were not, by HTTP status.", ["status"],
            registry=registry,
        )  # fmt: skip
        self._left = Counter(
            "haggle_turns_left", "Turns whose caller left before the answer.", registry=registry
        )
        self._seconds = Histogram(
            "haggle_turn_seconds", "From the call of a turn to its answer.", ["character"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._tokens = Counter("haggle_tokens", "Tokens of turns.", ["kind"], registry=registry)
        self._interventions = Counter(
            "haggle_interventions", "What code changed to make answers safe.", ["name"],
            registry=registry,
        )  # fmt: skip
        self._fallbacks = Counter(
            "haggle_fallbacks", "Turns whose line code said itself.", registry=registry
        )
        self._sales = Counter("haggle_sales", "Sales.", ["shop"], registry=registry)

    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        """A figure that is looked up when it is asked for."""
        Gauge(name, about, registry=self._registry).set_function(value)

    def turn(self, character: str, turn: Turn, seconds: float, shop: str | None) -> None:
        """Count a turn; `shop` is where it made a sale."""
        self._turns.labels(character).inc()
        self._seconds.labels(character).observe(seconds)
        self._tokens.labels("prompt").inc(turn.usage.prompt_tokens)
        self._tokens.labels("completion").inc(turn.usage.completion_tokens)
        self._tokens.labels("thought").inc(turn.usage.thought_tokens)
        for name in turn.interventions:
            self._interventions.labels(name).inc()
        if FALLBACKS & set(turn.interventions):
            self._fallbacks.inc()
        if shop is not None:
            self._sales.labels(shop).inc()

    def failed(self, status: int) -> None:
        """Count a turn that broke off."""
        self._failed.labels(str(status)).inc()

    def left(self) -> None:
        """Count a turn whose caller left."""
        self._left.inc()

    def text(self) -> bytes:
        """All figures, as Prometheus reads them."""
        return generate_latest(self._registry)
