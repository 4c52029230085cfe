"""The language that answers are read in: the one module of this room that names it."""

from __future__ import annotations

from pathlib import Path

from haggle.language import english
from haggle.language.english.cues import CUES
from haggle.language.english.impossible import bids_below_nothing
from haggle.language.english.numbers import DIGITS, amount_at

EVIDENCE = Path(english.__path__[0]) / "evidence"

__all__ = ["CUES", "DIGITS", "EVIDENCE", "amount_at", "bids_below_nothing"]
