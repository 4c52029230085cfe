"""The training time of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Clock:
    """Training time in seconds, over all resumptions, against an optional budget.

    It stands still while the run is `paused` for what is no training.
    """

    budget_s: float | None = None
    before_s: float = 0.0
    tokens: int = 0
    started: float | None = None
    steps_here: int = 0
    away_s: float = 0.0
    paused_at: float | None = None

    def start(self) -> None:
        self.started = time.monotonic()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.paused_at = time.monotonic()
        try:
            yield
        finally:
            if self.started is not None:
                self.away_s += time.monotonic() - self.paused_at
            self.paused_at = None

    @property
    def here_s(self) -> float:
        if self.started is None:
            return 0.0
        now = time.monotonic() if self.paused_at is None else self.paused_at
        return now - self.started - self.away_s

    @property
    def elapsed_s(self) -> float:
        return self.before_s + self.here_s

    def share(self) -> float:
        """Part of the budget that is used up, 0 without a budget."""
        return min(1.0, self.elapsed_s / self.budget_s) if self.budget_s else 0.0

    def exhausted(self) -> bool:
        """Whether another step of average length would overrun the budget."""
        if not self.budget_s:
            return False
        step = self.here_s / max(1, self.steps_here)
        return self.elapsed_s + step >= self.budget_s
