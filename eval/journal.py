"""What an interrupted run over many cases has finished, kept in its output directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def finish(out: Path, records: list[dict[str, Any]], metrics: dict[str, Any]) -> None:
    """Write both files; nothing is left to resume."""
    write_jsonl(out / PREDICTIONS, records)
    write_json(out / METRICS, metrics)
    (out / PROGRESS).unlink(missing_ok=True)
    (out / USAGE).unlink(missing_ok=True)
