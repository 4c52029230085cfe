"""What an engine used in a run (tokens, cost, model versions), summed over interruptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from data_gen.dataset.journal import beyond, total
from haggle.core.engine import Engine
from haggle.core.storage import read_json, write_json
from serving.engines.accounting import usage_of

Usage = dict[str, Any]
DIGITS = 6  # of a cost, as `ApiUsage` has


class Meter:
    """What one engine has used in a run, kept in a file so that an interruption forgets nothing.

    Runs may share an engine, whose own count goes on from run to run; a resumed run has a new
    engine, which begins at nothing. The keys are those of `ApiUsage` in
    `serving.engines.accounting`; engines in this process count nothing, and their usage is empty.
    """

    def __init__(self, engine: Engine, path: Path) -> None:
        self.engine = engine
        self.path = path
        self._before = kept_usage(path)
        self._start = usage_of(engine)

    def read(self) -> Usage:
        """The usage so far."""
        used = total(self._before, beyond(usage_of(self.engine), self._start))
        if isinstance(used.get("cost"), float):
            used["cost"] = round(used["cost"], DIGITS)
        return {
            key: {k: v for k, v in value.items() if v} if isinstance(value, Mapping) else value
            for key, value in used.items()
        }

    def keep(self) -> None:
        """Write the usage so far; nothing for an engine that counts none."""
        if used := self.read():
            write_json(self.path, used)


def kept_usage(path: Path) -> Usage:
    """The usage that a meter kept in a file; empty without one."""
    return read_json(path) if path.exists() else {}


def describe(usage: Mapping[str, Any]) -> Iterator[str]:
    """A usage in words: versions that answered, tokens, cost, answers that needed no request."""
    if not usage:
        return
    for version, number in usage.get("model_versions", {}).items():
        yield f"{number} answers as {version}"
    counts = [f"{usage.get(f'{kind}_tokens', 0):,}" for kind in ("prompt", "completion", "thought")]
    yield "tokens read {}, written {}, thought {}".format(*counts)
    if "cost" in usage:
        cost = f"{usage['cost']:.4f} {usage.get('currency', '')}".strip()
        yield f"{cost} at prices of {usage.get('prices_as_of', '?')}"
    if usage.get("from_cache"):
        yield f"{usage['from_cache']} answers from the cache"
