"""The one error type that a person is meant to read."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class HaggleError(Exception):
    """Something a person can act on: what was wrong, where, and what to do.

    `where` names file, line and field as far as known; `hint` says what to do about it.
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        self.message = message
        self.where = where
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}\n  hint: {self.hint}" if self.hint else text


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint naming the known word closest to `word`, or all known words when none is close; ""
    where none is known."""
    names = sorted(known)
    if not names:
        return ""
    close = get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(names)
