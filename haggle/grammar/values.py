"""What an answer may be, written down once: a tree of JSON values.

From the tree come the texts of the answer as a regular language, its JSON Schema, the check whether
data keeps to it, and what reads and writes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from haggle.grammar.json_text import DecodeError, bounded_int, to_json
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
    """One of these strings. `name` is the rule's, where a grammar has rules. Of an `open` one any
    string is read: what it stands for is judged later."""

    values: tuple[str, ...]
    name: str = ""
    open: bool = False


@dataclass(frozen=True, slots=True)
class Null:
    """The value null."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number of at most `digits` digits, from 1, or from 0 with `zero`. An `amount` is read
    rounded; other numbers may be read from strings."""

    digits: int
    zero: bool = False
    amount: bool = False


@dataclass(frozen=True, slots=True)
class Phrase:
    """A string of this form, or where lists are unbounded of the `longer` one. `made` makes of it
    what is read; `told` are examples for error messages."""

    form: Node
    longer: Node | None = None
    made: Callable[[str], Any] = str
    told: str = "a string"


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
    """One of the values; at most one of them is an array."""

    values: tuple[Value, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A key and its value. `default` is what is read where a model leaves the key out."""

    key: str
    value: Value
    default: Any = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these rows of fields; an empty row stands for none."""

    rows: tuple[tuple[Part, ...], ...]


@dataclass(frozen=True)
class Fields:
    """An object with exactly these fields, in this order. At least one part is a field."""

    parts: tuple[Part, ...]

    @cached_property
    def rows(self) -> list[list[Field]]:
        """Every row of fields that it may have."""
        return list(_rows(self.parts))


Order = Callable[[Iterable[str]], list[str]]
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
    return _any_of([closed({f.key: schema(f.value, bounded) for f in row}) for row in value.rows])


def read(value: Value, data: Any, at: str = "the answer", order: Order | None = None) -> Any:
    """JSON data as a value of the tree: arrays as tuples, objects as dicts.

    Models are read leniently: numbers and lists may be of any size, other keys are left out. With
    `order` (`list` or `sorted`, for the keys) data must keep to the tree. Raises DecodeError saying
    what must stand `at` which place.
    """
    found = _found(value, data, at, order)
    if found is None:
        raise DecodeError(f"{at} must be {_told(value)}, not {data!r}")
    return found[0]


def _found(value: Value, data: Any, at: str, order: Order | None) -> tuple[Any] | None:
    """What is read, in a tuple; None where data is no such value."""
    if isinstance(value, Either):
        return next((f for v in value.values if (f := _found(v, data, at, order))), None)
    if isinstance(value, Fields):
        return _object(value, data, order) if isinstance(data, dict) else None
    if isinstance(value, Row):
        if not isinstance(data, list) or len(data) != len(value.values):
            return None
        return (tuple([read(v, e, at, order) for v, e in zip(value.values, data, strict=True)]),)
    if isinstance(value, Items):
        if not isinstance(data, list) or (order and not value.low <= len(data) <= value.high):
            return None
        entries = enumerate(data, 1)
        return (tuple([read(value.entry, e, f"{at}, entry {n}", order) for n, e in entries]),)
    return _plain(value, data, order is None)


def _object(value: Fields, data: dict[str, Any], order: Order | None) -> tuple[Any] | None:
    if not order:
        return (_read_row(_likeliest(value, data), data, order),)
    for row in value.rows:
        if order(data) == order(field.key for field in row):
            with suppress(DecodeError):
                return (_read_row(row, data, order),)
    return None


def _read_row(row: list[Field], data: dict[str, Any], order: Order | None) -> dict[str, Any]:
    return {
        f.key: read(f.value, data.get(f.key, f.default), f"field {f.key!r}", order) for f in row
    }


def _plain(
    value: Label | Null | Whole | Phrase | Spoken | AnyText | AnyNumber, data: Any, lenient: bool
) -> tuple[Any] | None:
    """What is read from data that holds no other."""
    if isinstance(value, Whole):
        return _whole(value, data, lenient)
    if isinstance(value, Null):
        return (data,) if data is None else None
    if isinstance(value, AnyNumber):
        return (data,) if _is_number(data) else None
    if not isinstance(data, str):
        return None
    if isinstance(value, Phrase):
        text = data.strip() if lenient else data
        return (value.made(text),) if pattern(value.form).fullmatch(text) else None
    other = isinstance(value, Label) and not (lenient and value.open) and data not in value.values
    return None if other else (data,)


def _whole(value: Whole, data: Any, lenient: bool) -> tuple[int] | None:
    if lenient and isinstance(data, str) and not value.amount and data.strip().isdecimal():
        data = bounded_int(data.strip())
    if not _is_number(data):
        return None
    whole = isinstance(data, int) or data.is_integer()
    if not (whole or (lenient and value.amount and math.isfinite(data))):
        return None
    fits_in = (0 if value.zero else 1) <= data < 10**value.digits
    return (round(data),) if lenient or fits_in else None


def _is_number(data: Any) -> bool:
    return isinstance(data, int | float) and not isinstance(data, bool)


def _told(value: Value) -> str:
    """What a value must be, in words."""
    if isinstance(value, Either):
        return " or ".join(dict.fromkeys(map(_told, value.values)))
    if isinstance(value, Row):
        return f"[{', '.join(map(_told, value.values))}]"
    if isinstance(value, Label) and not value.open:
        return " or ".join(map(repr, value.values))
    if isinstance(value, Phrase):
        return value.told
    kinds = {Null: "null", Whole: "a whole number", AnyNumber: "a number", Items: "a list"}
    return {**kinds, Fields: "an object"}.get(type(value), "a string")


def write(value: Value, data: Any) -> Any:
    """The JSON data of a value as `read` gives it; an array that is None is empty."""
    if isinstance(value, Fields):
        return {f.key: write(f.value, data[f.key]) for f in _likeliest(value, data)}
    if isinstance(value, Items):
        return [write(value.entry, entry) for entry in data or ()]
    if isinstance(value, Row):
        return [write(v, entry) for v, entry in zip(value.values, data, strict=True)]
    return getattr(data, "told", data)  # what was made of a phrase knows the phrase


def _likeliest(value: Fields, data: Mapping[str, Any]) -> list[Field]:
    """The row of fields that data has most of; the first of several."""
    return max(value.rows, key=lambda row: sum(_is_there(f, data) for f in row))


def _is_there(field: Field, data: Mapping[str, Any]) -> int:
    """1, or -1 for a field that data has not, or has otherwise where it must be empty."""
    found = data.get(field.key)
    empty = isinstance(field.value, Items) and not field.value.high
    return 1 if (found in ([], ()) if empty else found is not None) else -1
