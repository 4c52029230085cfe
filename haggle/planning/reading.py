"""Answers to a planner's questions: the form they are asked in, and how they are read.

A form is a JSON object whose fields are the paper's labels. An engine without grammars may answer
in lines ("Agent Action: Greet") or in prose; what is found there counts as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from haggle.grammar.json_text import DecodeError, read_object
from haggle.grammar.values import Choice, Either, Field, Fields, Label, Part, Spoken, Value

STATE, ACTION, RESPONSE = "User State", "Agent Action", "Agent Response"
ANSWER, PATH = "Answer", "Best Path"
_PREFIX = re.compile(r"^(?:agent|user)\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of an answer: one of these `rows` of labels with the values each may have, then
    words where there are any (`spoken`): a `haggle.core.codec.ActionSpec`."""

    rows: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = ()
    spoken: bool = False

    def tree(self) -> Value:
        """All answers that may be given. Raises ValueError where there is none."""
        rows = tuple(
            tuple(Field(label, Label(values)) for label, values in row)
            for row in self.rows
            if all(values for _, values in row)
        )
        if len(rows) > 1 and not self.spoken:
            return Either(tuple(Fields(row) for row in rows))
        parts: list[Part] = [*rows[0]] if len(rows) == 1 else [Choice(rows)] if rows else []
        if self.spoken:
            parts.append(Field(RESPONSE, Spoken()))
        if not parts:
            raise ValueError("a form needs a field with a value")
        return Fields(tuple(parts))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels asked for."""
        named = dict.fromkeys(label for row in self.rows for label, _ in row)
        return (*named, RESPONSE) if self.spoken else tuple(named)


def one_of(label: str, values: Sequence[str]) -> Form:
    """A form with one field."""
    return Form((((label, tuple(values)),),))


def read_name(text: str, label: str, names: Sequence[str]) -> str:
    """The name under a label; "" for one that is not known, or where there is none.

    In prose it is what stands last behind a colon, or the only known name there is.
    """
    said = read_words(text, label)
    for candidate in (said, *reversed(re.findall(r"[:：]\s*[\"'“]?([\w.\- ]+)", text))):
        if name := _known(candidate, names):
            return name
    if said:
        return ""
    found = [name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    return found[0] if len(found) == 1 else ""


def read_words(text: str, label: str) -> str:
    """What stands under a label, in JSON or on a line of its own; "" where nothing does."""
    try:
        value = read_object(text).get(label)
        return value.strip() if isinstance(value, str) else ""
    except DecodeError:
        found = re.search(rf"^\W*{re.escape(label)}\W*[:：]\s*(.+)$", text, re.M | re.I)
        return found.group(1).strip() if found else ""


def read_vote(text: str) -> bool | None:
    """A yes (1) or no (0); None for what is neither."""
    said = read_words(text, ANSWER)
    digits = re.findall(r"(?<![\d.])[01](?![\d.])", said or text)
    return digits[-1] == "1" if digits else None


def _known(said: str, names: Sequence[str]) -> str:
    bare = _PREFIX.sub("", said.strip().strip("\"'“”.*` ")).casefold()
    return next((name for name in names if name.casefold() == bare), "")
