"""An episode: where a conversation stands, and what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from haggle.core.engine import Message
from haggle.core.errors import HaggleError
from haggle.core.procedure import Procedure
from haggle.core.text import outcome_message, player_message

T = TypeVar("T")


def latest(exchanges: Sequence[T], limit: int | None) -> Sequence[T]:
    """The last exchanges, `limit` at most, or all. Older ones are left out half a limit at a time:
    so what stays begins alike for several turns, and a prefix cache holds."""
    if not limit or len(exchanges) <= limit:
        return exchanges
    step = max(1, limit // 2)
    return exchanges[-((limit - len(exchanges)) // step) * step :]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One round as the model sees it later: state note, player's line, answer as it was written.

    Where the line was said with the outcome in view, `answer` is the decision alone, `outcome` what
    became of it, and `said` the answer that holds the line.
    """

    note: str
    player: str
    answer: str
    outcome: str = ""
    said: str = ""

    def messages(self) -> list[Message]:
        """The round as chat messages."""
        asked = Message("user", player_message(self.note, self.player))
        told = [asked, Message("assistant", self.answer)]
        if self.said:
            told += [
                Message("user", outcome_message(self.outcome)),
                Message("assistant", self.said),
            ]
        return told


@dataclass
class Episode:
    """A conversation under way. `last` is the true tracked state, `state` the latest one, and
    `last_line` what code said last of its own.

    Fields are replaced, never changed in place: a branch is a shallow copy.
    """

    procedure: Procedure[Any]
    last: str = ""
    state: str = ""
    exchanges: tuple[Exchange, ...] = ()
    last_line: str = ""

    def branch(self) -> Self:
        """A copy that goes its own way from here: a search tries actions on it."""
        return copy(self)

    @property
    def ended(self) -> bool:
        """Whether the conversation is over: its state begins the dialogue anew."""
        return bool(self.state) and self.procedure.state(self.state).resets

    def record(
        self, note: str, player: str, answer: str, outcome: str = "", said: str = ""
    ) -> None:
        """Remember an exchange as later turns will see it."""
        self.exchanges = (*self.exchanges, Exchange(note, player, answer, outcome, said))


def check_version(record: Mapping[str, Any], version: int, what: str) -> None:
    """Raise HaggleError where a stored episode is of another version than the one read here."""
    if record.get("version") != version:
        raise HaggleError(
            f"is stored in version {record.get('version')!r}; this Haggle reads {version}",
            where=what,
            hint="open it with the Haggle that stored it, or begin a new one",
        )
