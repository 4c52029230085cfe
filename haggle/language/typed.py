"""What a player typed, made safe to show to a model."""

from __future__ import annotations

import re
import unicodedata

from haggle.core.chat_template import neutralise_markup

MAX_UTTERANCE = 500
SILENCE = "(says nothing)"
_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def clean_utterance(text: str) -> str:
    """A player's line as the model reads it.

    Control and direction characters become spaces, white space collapses to single spaces (so one
    line can never pose as another), markup is made harmless, and what is over 500 characters is
    cut. An empty line reads as silence.
    """
    if len(text) > 20 * MAX_UTTERANCE:
        text = text[: 20 * MAX_UTTERANCE]
    if not (text.isascii() and text.isprintable()):
        text = "".join(" " if _unseen(c) else c for c in text)
    plain = neutralise_markup(re.sub(r"\s+", " ", text).strip())
    if len(plain) > MAX_UTTERANCE:
        plain = plain[:MAX_UTTERANCE].rstrip() + "..."
    return plain or SILENCE


def _unseen(character: str) -> bool:
    category = unicodedata.category(character)
    return category in {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"} or character in _BIDI


def without_marks(text: str) -> str:
    """A line whose own braces are brackets, so that nothing typed can pose as a mark."""
    return text.replace("{", "(").replace("}", ")")
