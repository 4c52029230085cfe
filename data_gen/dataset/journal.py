"""What is noted while a shard is made: its journal, and what its source reports.

The journal of a shard made slowly has every finished dialogue on disk before the next one. A kill
at any moment loses no finished dialogue and doubles none. A line torn by the kill is left out, and
its dialogue made again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from data_gen.language.phrasebook import Split
from data_gen.sources import Source, dialogue_number
from haggle.core.errors import HaggleError
from haggle.core.storage import numbered_jsonl, read_json, write_json
from haggle.grammar.json_text import to_json

Report = dict[str, Any]
REPORT = ".report.json"


class Meter:
    """A source whose report is taken in parts, each what was added since the last.

    `recalled` counts the rows that came from a journal instead.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.recalled = 0
        self._taken: Report = {}

    def take(self) -> Report:
        """What the source reports beyond the parts taken before."""
        now = deepcopy(self.source.report())
        part = beyond(now, self._taken)
        self._taken = now
        return part


def reported_rows(
    meter: Meter, split: Split, indices: Sequence[int], name: Path
) -> Iterator[dict[str, Any]]:
    """Rows of these dialogues from a fast source; what it reports goes into a file `name`."""
    yield from meter.source.rows(split, indices)
    if report := meter.take():
        write_json(name.with_name(name.name + REPORT), report)


def journalled_rows(
    meter: Meter, split: Split, indices: Sequence[int], name: Path
) -> Iterator[dict[str, Any]]:
    """Rows of these dialogues: those in the journal, then new ones, each journalled as it comes.

    `name` is that of journal and report, without suffix. Raises HaggleError when the journal cannot
    be written or is not one.
    """
    journal = name.with_name(f"{name.name}.jsonl")
    last, report = -1, Report()
    for line in _entries(journal):
        row = line["row"]
        number = dialogue_number(str(row.get("id")), split, str(journal))
        if number <= last:  # written twice by a worker believed dead
            continue
        last = number
        report = total(report, line["report"])
        meter.recalled += 1
        yield row
    left = [index for index in indices if index > last]
    if left:
        with _Appender(journal) as file:
            for row in meter.source.rows(split, left):
                number = dialogue_number(str(row.get("id")), split, "the source")
                if number <= last or number not in indices:
                    raise ValueError(f"dialogue {number} comes after {last}")
                last = number
                part = meter.take()
                file.append({"row": row, "report": part})
                report = total(report, part)
                yield row
    write_json(name.with_name(name.name + REPORT), total(report, meter.take()))


def reports(folder: Path) -> Report:
    """The sum of the reports of all shards journalled in a folder."""
    whole = Report()
    for path in sorted(folder.glob(f"*{REPORT}")):
        whole = total(whole, read_json(path))
    return whole


def total(one: Mapping[str, Any], other: Mapping[str, Any]) -> Report:
    """Two reports in one: numbers added, other values collected in a sorted list."""
    whole: Report = dict(one)
    for key, value in other.items():
        whole[key] = _joined(whole[key], value) if key in whole else value
    return whole


def _joined(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return total(one, other)
    if _is_number(one) and _is_number(other):
        return one + other
    values = [v for side in (one, other) for v in (side if isinstance(side, list) else [side])]
    distinct = sorted({to_json(value): value for value in values}.items())
    return distinct[0][1] if len(distinct) == 1 else [value for _, value in distinct]


def beyond(now: Mapping[str, Any], before: Mapping[str, Any]) -> Report:
    """What a later report says beyond an earlier one of the same source: numbers subtracted."""
    part: Report = {}
    for key, value in now.items():
        old = before.get(key)
        if isinstance(value, Mapping):
            part[key] = beyond(value, old if isinstance(old, Mapping) else {})
        elif _is_number(value):
            part[key] = value - old if _is_number(old) else value
        else:
            part[key] = value
    return part


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _entries(journal: Path) -> Iterator[dict[str, Any]]:
    """What a journal holds, without a torn last line; nothing when there is none."""
    if not journal.exists():
        return
    for number, line in numbered_jsonl(journal, drop_torn_tail=True):
        if not isinstance(line.get("row"), dict) or not isinstance(line.get("report"), dict):
            raise HaggleError(
                "is no entry of a journal",
                where=f"{journal}:{number}",
                hint="delete the file; its dialogues are then made again",
            )
        yield line


class _Appender:
    """A journal open for writing, rid of a torn last line; every entry is forced to disk."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal

    def __enter__(self) -> _Appender:
        try:
            self.journal.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.journal.open("ab")
            if self._file.tell():
                data = self.journal.read_bytes()
                self._file.truncate(data.rfind(b"\n") + 1)
        except OSError as error:
            raise self._failed(error) from error
        return self

    def append(self, entry: dict[str, Any]) -> None:
        """Add one entry; it is on disk when this returns."""
        try:
            self._file.write((to_json(entry) + "\n").encode("utf-8"))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed(error) from error

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()
        except OSError:  # what could not be written was told when it was appended
            pass

    def _failed(self, error: OSError) -> HaggleError:
        return HaggleError(
            f"could not be written: {error.strerror or error}",
            where=str(self.journal),
            hint="free disk space and run the same command again; finished dialogues are kept",
        )
