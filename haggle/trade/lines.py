"""The lines that code says itself: safe ones, notes, and why a sale stays open."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

from haggle.core.config import Record, load_config
from haggle.trade.language import FOLDER


class Lines(Record):
    """`lines.yaml`: a greeting before the first turn, a line for prices that were asked, how goods
    are listed, safe lines by state, notes that code adds to a line, who the merchant is, lines that
    say why a sale stays open by reason, what is asked where a player is not understood, and how a
    line claims that something happened."""

    greeting: str
    prices: str
    lists: dict[str, str]
    safe: dict[str, str]
    notes: dict[str, str]
    about: dict[str, str]
    open: dict[str, list[str]]
    ask: dict[str, str]
    claims: dict[str, list[str]]


@cache
def lines() -> Lines:
    """The lines of `lines.yaml`."""
    return load_config(FOLDER / "lines.yaml", Lines)


def listed(parts: Sequence[str], joint: Literal["and", "or"] = "and") -> str:
    """`a`, `a and b`, `a, b and c`; the same with `or`."""
    *others, last = parts or ("",)
    return lines().lists[joint].format(others=", ".join(others), last=last) if others else last
