"""A talk as a record: kept by a server or a game, and rebuilt without a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haggle.core.config import Record, parse
from haggle.core.episode import Exchange, check_version
from haggle.sop.domain import Talk
from haggle.sop.task import Task

VERSION = 1


class TalkRecord(Record):
    """What a talk holds besides its task."""

    version: int = VERSION
    last: str
    state: str
    last_line: str
    exchanges: tuple[Exchange, ...]
    path: tuple[str, ...]


def to_record(talk: Talk) -> dict[str, Any]:
    """The talk as plain data, to be kept beside its task."""
    record = TalkRecord(
        last=talk.last,
        state=talk.state,
        last_line=talk.last_line,
        exchanges=talk.exchanges,
        path=talk.path,
    )
    return record.model_dump(mode="json")


def from_record(data: Mapping[str, Any], task: Task) -> Talk:
    """The talk that a record is of. Raises HaggleError for a record that is none or is of another
    version."""
    check_version(data, VERSION, "talk")
    record = parse(data, TalkRecord, "talk")
    talk = Talk(task)
    talk.last, talk.state = record.last, record.state
    talk.last_line, talk.exchanges = record.last_line, record.exchanges
    talk.path = record.path
    return talk
