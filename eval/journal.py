"""What an interrupted run over many cases has finished, kept in its output directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from eval.usage import Meter
from haggle.core.engine import Engine
from haggle.core.storage import append_jsonl, read_json, read_jsonl, write_json, write_jsonl

RUN = "run.json"
PROGRESS = "progress.jsonl"
USAGE = "usage.json"
PREDICTIONS = "predictions.jsonl"
METRICS = "metrics.json"

Records = dict[str, dict[str, Any]]


def resume(out: Path, identity: dict[str, Any]) -> Records:
    """The records by id that an interrupted run of the same identity left in `out`.

    Those of another run are dropped. Makes the directory.
    """
    out.mkdir(parents=True, exist_ok=True)
    marker, kept = out / RUN, out / PROGRESS
    if not (marker.exists() and read_json(marker) == identity):
        (out / USAGE).unlink(missing_ok=True)
        kept.write_bytes(b"")  # says that what lies there is not this run's, until `finish`
        write_json(marker, identity)
    return {r["id"]: r for r in read_jsonl(kept, drop_torn_tail=True)} if kept.exists() else {}


def keep(out: Path, record: dict[str, Any]) -> None:
    """Put a finished record, which has an `id`, where `resume` finds it."""
    append_jsonl(out / PROGRESS, record)


def answered(
    out: Path,
    identity: dict[str, Any],
    engine: Engine,
    names: Sequence[str],
    ask: Callable[[list[str]], Iterable[dict[str, Any]]],
    *,
    what: str,
    batch: int = 1,
    order: Callable[[str], Any] | None = None,
    progress: bool = True,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The records of all `names` (ids): those kept in `out`, and those that `ask` makes of the
    others, `batch` at a time, each kept as it is made; and what an API charged for all of them.

    `order` sorts what is asked; records come in the order of `names`.
    """
    from rich.progress import track

    done = resume(out, identity)
    meter = Meter(engine, out / USAGE)
    todo = [name for name in names if name not in done]
    if order is not None:
        todo.sort(key=order)
    groups = [todo[i : i + batch] for i in range(0, len(todo), batch)]
    for group in track(groups, what, disable=not progress or not groups):
        try:
            for record in ask(group):
                keep(out, record)
                done[record["id"]] = record
        finally:
            meter.keep()
    return [done[name] for name in names], meter.read()


def finish(out: Path, records: list[dict[str, Any]], metrics: dict[str, Any]) -> None:
    """Write both files; nothing is left to resume."""
    write_jsonl(out / PREDICTIONS, records)
    write_json(out / METRICS, metrics)
    (out / PROGRESS).unlink(missing_ok=True)
    (out / USAGE).unlink(missing_ok=True)
