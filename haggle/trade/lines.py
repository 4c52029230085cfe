"""The lines that code says itself: safe ones, notes, and why a sale stays open."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from haggle.core.config import Record, load_config


class Lines(Record):
    """`lines.yaml`: a greeting before the first turn, a line for prices that were asked, safe lines
    by state, notes that code adds to a line, who the merchant is, lines that say why a sale stays
    open by reason, what is asked where a player is not understood, and how a line claims that
    something happened."""

    greeting: str
    prices: str
    safe: dict[str, str]
    notes: dict[str, str]
    about: dict[str, str]
    open: dict[str, list[str]]
    ask: dict[str, str]
    claims: dict[str, list[str]]


@cache
def lines() -> Lines:
    """The lines of `haggle/trade/lines.yaml`."""
    return load_config(Path(__file__).with_name("lines.yaml"), Lines)
