"""What goes into a prompt: templates, and players' lines made safe."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

MAX_UTTERANCE = 500
SILENCE = "(says nothing)"
_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


_MARKUP = re.compile(
    r"""
    [<＜\[](?:  # one set at the beginning: other text is passed over fast
        (?<!\[)(?=[|｜])                          # <|im_start|>, <｜User｜>, and what looks like it
      | (?<!\[)(?=/?[A-Za-z_][\w.:-]*/?\s*[>＞])  # <start_of_turn>, </s>, <think>, <<SYS>>
      | (?<!\[)(?=0x[0-9A-Fa-f]{2}[>＞])          # byte tokens
      | (?<=\[)(?=/?(?:[A-Z][A-Z_]+|gMASK|sMASK)\])  # [INST], [/INST], [TOOL_CALLS]
    )
    """,
    re.VERBOSE,
)


def clean_utterance(text: str) -> str:
    """A player's line as the model reads it.

    Control and direction characters become spaces, white space collapses to single spaces (so one
    line can never pose as another), markup is made harmless, and what is over 500 characters is
    cut. An empty line reads as silence.
    """
    if len(text) > 20 * MAX_UTTERANCE:
        text = text[: 20 * MAX_UTTERANCE]
    plain = neutralise_markup(one_line(text))
    if len(plain) > MAX_UTTERANCE:
        plain = plain[:MAX_UTTERANCE].rstrip() + "..."
    return plain or SILENCE


def one_line(text: str) -> str:
    """A text on one line: control and direction characters become spaces, white space collapses."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(" " if _is_unseen(character) else character for character in text)
    return " ".join(text.split())


def _is_unseen(character: str) -> bool:
    category = unicodedata.category(character)
    return category in {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"} or character in _BIDI


def neutralise_markup(text: str) -> str:
    """Make chat markup typed by a player harmless: a space goes behind its opening bracket.

    Covers the special tokens of the common model families by their shape (`<|...|>`, `<name>`,
    `</name>`, `<<SYS>>`, `[INST]`); anything else stays as typed. Idempotent.
    """
    return _MARKUP.sub(lambda match: match.group() + " ", text)


@cache
def prompts(folder: Path) -> Environment:
    """The jinja environment of the prompts in a folder; a missing variable is an error."""
    return Environment(loader=FileSystemLoader(folder), undefined=StrictUndefined, autoescape=False)


OUTCOME = "outcome: "


def outcome_message(outcome: str) -> str:
    """A user message that tells what became of a decision."""
    return OUTCOME + outcome


def is_outcome(message: str) -> bool:
    """Whether a user message tells an outcome. No player's line begins one: a note does."""
    return message.startswith(OUTCOME)


def player_message(note: str, line: str) -> str:
    """A user message of the compact prompts: where things stand, then the player's line."""
    return f"{note}\nplayer: {line}"
