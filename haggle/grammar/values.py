"""What an answer may be, written down once: a tree of JSON values.

From the tree come the texts of the answer as a regular language, its JSON Schema, and the check
whether data keeps to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from haggle.grammar.json_text import to_json
from haggle.grammar.nodes import (
    SCHEMA,
    SPOKEN,
    Join,
    Node,
    OneOf,
    Text,
    Times,
    joined,
    number,
    pattern,
    render,
)

SPOKEN_CHARACTERS = 240  # two to three times the longest line there is to learn from


@dataclass(frozen=True, slots=True)
class Label:
    """One of these strings. `name` is the rule's, where a grammar has rules."""

    values: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Null:
    """The value null."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number of at most `digits` digits, from 1, or from 0 with `zero`."""

    digits: int
    zero: bool = False


@dataclass(frozen=True, slots=True)
class Phrase:
    """A string of this form, or where lists are unbounded of the `longer` one."""

    form: Node
    longer: Node | None = None


@dataclass(frozen=True, slots=True)
class Spoken:
    """Free words on one line, without quotes and backslashes; at most `SPOKEN_CHARACTERS`, so that
    a model that rambles still ends its answer."""


@dataclass(frozen=True, slots=True)
class AnyText:
    """Any JSON string, escapes and all: too free for a regular expression of its own."""


@dataclass(frozen=True, slots=True)
class AnyNumber:
    """Any JSON number."""


@dataclass(frozen=True, slots=True)
class Row:
    """An array of exactly these values."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """An array of `low` (0 or 1) to `high` entries; unbounded lists know no `high` above 0."""

    entry: Value
    low: int
    high: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Either:
    """One of the values."""

    values: tuple[Value, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A key and its value."""

    key: str
    value: Value


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these rows of fields; an empty row stands for none."""

    rows: tuple[tuple[Part, ...], ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """An object with exactly these fields, in this order. At least one part is a field."""

    parts: tuple[Part, ...]


Part = Field | Choice
Value = Label | Null | Whole | Phrase | Spoken | AnyText | AnyNumber | Row | Items | Either | Fields


def _quoted(inside: Node) -> Node:
    return joined('"', inside, '"')


def texts(value: Value, bounded: bool) -> Node:
    """The texts of a value as a regular language. Raises ValueError where it is none."""
    if isinstance(value, Label):
        return OneOf(tuple(Text(to_json(v)) for v in value.values), value.name)
    if isinstance(value, Null):
        return Text("null")
    if isinstance(value, Whole):
        whole = number(value.digits)
        return OneOf((Text("0"), whole)) if value.zero else whole
    if isinstance(value, Phrase):
        return _quoted(value.form if bounded else value.longer or value.form)
    if isinstance(value, Spoken):
        return _quoted(Times(SPOKEN, 1, SPOKEN_CHARACTERS if bounded else None))
    if isinstance(value, AnyText | AnyNumber):
        raise ValueError("only the compact format is a regular language")
    return _compound_text(value, bounded)


def _compound_text(value: Row | Items | Either | Fields, bounded: bool) -> Node:
    if isinstance(value, Row):
        entries = [part for v in value.values for part in (Text(","), texts(v, bounded))]
        return joined("[", *entries[1:], "]")
    if isinstance(value, Either):
        return OneOf(tuple(texts(v, bounded) for v in value.values), value.name)
    if isinstance(value, Items):
        if not value.high:
            return Text("[]")
        entry = OneOf((texts(value.entry, bounded),), value.name)
        more = Times(joined(",", entry), 0, value.high - 1 if bounded else None)
        return joined("[", Times(Join((entry, more)), value.low, 1), "]")
    pivot = next(i for i, part in enumerate(value.parts) if isinstance(part, Field))
    before = [_part_text(part, bounded, behind=",") for part in value.parts[:pivot]]
    after = [_part_text(part, bounded, ahead=",") for part in value.parts[pivot + 1 :]]
    return joined("{", *before, _part_text(value.parts[pivot], bounded), *after, "}")


def _part_text(part: Part, bounded: bool, ahead: str = "", behind: str = "") -> Node:
    """A part with a comma ahead of each of its fields, or behind."""
    if isinstance(part, Field):
        return joined(ahead, to_json(part.key) + ":", texts(part.value, bounded), behind)
    rows = [Join(tuple(_part_text(p, bounded, ahead, behind) for p in row)) for row in part.rows]
    some = [row for row in rows if row.parts]
    body: Node = OneOf(tuple(some)) if len(some) > 1 else some[0]
    return body if len(some) == len(rows) else Times(body, 0, 1)


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _rows(parts: tuple[Part, ...]) -> Iterator[list[Field]]:
    """Every row of fields that an object may have."""
    options = [
        [[part]] if isinstance(part, Field) else [f for row in part.rows for f in _rows(row)]
        for part in parts
    ]
    for chosen in product(*options):
        yield [field for fields in chosen for field in fields]


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def schema(value: Value, bounded: bool) -> dict[str, Any]:
    """A value as JSON Schema, with what llama.cpp, llguidance, outlines and Gemini all honour:
    anyOf, enum rather than const, every property required."""
    if isinstance(value, Label):
        return {"type": "string", "enum": list(value.values)}
    if isinstance(value, Null):
        return {"type": "null"}
    if isinstance(value, Whole):
        least = 0 if value.zero else 1
        return {"type": "integer", "minimum": least, "maximum": 10**value.digits - 1}
    if isinstance(value, Phrase):
        return {"type": "string", "pattern": f"^{render(value.form, SCHEMA, {})}$"}
    if isinstance(value, Spoken | AnyText):
        return {"type": "string"}
    if isinstance(value, AnyNumber):
        return {"type": "number"}
    return _compound_schema(value, bounded)


def _compound_schema(value: Row | Items | Either | Fields, bounded: bool) -> dict[str, Any]:
    if isinstance(value, Row):
        entries = [schema(entry, bounded) for entry in value.values]
        many = len(entries)
        return {"type": "array", "prefixItems": entries, "minItems": many, "maxItems": many}
    if isinstance(value, Either):
        return _any_of([schema(v, bounded) for v in value.values])
    if isinstance(value, Items):
        array: dict[str, Any] = {"type": "array", "items": schema(value.entry, bounded)}
        if value.low:
            array["minItems"] = value.low
        if bounded or not value.high:
            array["maxItems"] = value.high
        return array
    return _any_of(
        [closed({f.key: schema(f.value, bounded) for f in row}) for row in _rows(value.parts)]
    )


def allows(value: Value, data: Any, ordered: bool) -> bool:
    """Whether JSON data is a value of the tree; with `ordered` its keys in the tree's order."""
    if isinstance(value, Label):
        return isinstance(data, str) and data in value.values
    if isinstance(value, Null):
        return data is None
    if isinstance(value, Whole):
        least, below = 0 if value.zero else 1, 10**value.digits
        return _is_number(data) and float(data).is_integer() and least <= data < below
    if isinstance(value, Phrase):
        return isinstance(data, str) and pattern(value.form).fullmatch(data) is not None
    if isinstance(value, Spoken | AnyText):
        return isinstance(data, str)
    if isinstance(value, AnyNumber):
        return _is_number(data)
    return _compound_allows(value, data, ordered)


def _compound_allows(value: Row | Items | Either | Fields, data: Any, ordered: bool) -> bool:
    if isinstance(value, Either):
        return any(allows(v, data, ordered) for v in value.values)
    if isinstance(value, Fields):
        return isinstance(data, dict) and any(
            (list(data) if ordered else sorted(data)) == _keys(row, ordered)
            and all(allows(f.value, data[f.key], ordered) for f in row)
            for row in _rows(value.parts)
        )
    if not isinstance(data, list):
        return False
    if isinstance(value, Items):
        fits_in = value.low <= len(data) <= value.high
        return fits_in and all(allows(value.entry, entry, ordered) for entry in data)
    return len(data) == len(value.values) and all(
        allows(v, entry, ordered) for v, entry in zip(value.values, data, strict=True)
    )


def _keys(row: list[Field], ordered: bool) -> list[str]:
    """The keys of a row of fields, as they come or sorted."""
    found = [field.key for field in row]
    return found if ordered else sorted(found)


def _is_number(data: Any) -> bool:
    return isinstance(data, int | float) and not isinstance(data, bool)
