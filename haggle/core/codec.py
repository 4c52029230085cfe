"""What an answer may be, written down once: a tree of JSON values.

From the tree come the grammar of the answer in every notation an engine reads (regular expression,
GBNF, Lark, JSON Schema), and the check whether a text keeps to it. A domain writes the tree of the
actions that are legal now (`ActionSpec`); nothing else knows fields and formats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, Protocol

from haggle.core.json_text import to_json
from haggle.grammar.forced import after
from haggle.grammar.nodes import (
    GBNF,
    REGEX,
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

CACHED = 512  # grammars kept
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


class ActionSpec(Hashable, Protocol):
    """The actions that are legal now. Hashable, so that a compiled grammar is kept per value."""

    def tree(self) -> Value:
        """All answers that may be given. Raises ValueError where there is none."""
        ...


def _quoted(inside: Node) -> Node:
    return joined('"', inside, '"')


def _text(value: Value, bounded: bool) -> Node:
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
        entries = [part for v in value.values for part in (Text(","), _text(v, bounded))]
        return joined("[", *entries[1:], "]")
    if isinstance(value, Either):
        return OneOf(tuple(_text(v, bounded) for v in value.values), value.name)
    if isinstance(value, Items):
        if not value.high:
            return Text("[]")
        entry = OneOf((_text(value.entry, bounded),), value.name)
        more = Times(joined(",", entry), 0, value.high - 1 if bounded else None)
        return joined("[", Times(Join((entry, more)), value.low, 1), "]")
    pivot = next(i for i, part in enumerate(value.parts) if isinstance(part, Field))
    before = [_part_text(part, bounded, behind=",") for part in value.parts[:pivot]]
    after = [_part_text(part, bounded, ahead=",") for part in value.parts[pivot + 1 :]]
    return joined("{", *before, _part_text(value.parts[pivot], bounded), *after, "}")


def _part_text(part: Part, bounded: bool, ahead: str = "", behind: str = "") -> Node:
    """A part with a comma ahead of each of its fields, or behind."""
    if isinstance(part, Field):
        return joined(ahead, to_json(part.key) + ":", _text(part.value, bounded), behind)
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


def _schema(value: Value, bounded: bool) -> dict[str, Any]:
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
        entries = [_schema(entry, bounded) for entry in value.values]
        many = len(entries)
        return {"type": "array", "prefixItems": entries, "minItems": many, "maxItems": many}
    if isinstance(value, Either):
        return _any_of([_schema(v, bounded) for v in value.values])
    if isinstance(value, Items):
        schema: dict[str, Any] = {"type": "array", "items": _schema(value.entry, bounded)}
        if value.low:
            schema["minItems"] = value.low
        if bounded or not value.high:
            schema["maxItems"] = value.high
        return schema
    return _any_of(
        [closed({f.key: _schema(f.value, bounded) for f in row}) for row in _rows(value.parts)]
    )


def _allows(value: Value, data: Any, ordered: bool) -> bool:
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
        return any(_allows(v, data, ordered) for v in value.values)
    if isinstance(value, Fields):
        return isinstance(data, dict) and any(
            (list(data) if ordered else sorted(data)) == _keys(row, ordered)
            and all(_allows(f.value, data[f.key], ordered) for f in row)
            for row in _rows(value.parts)
        )
    if not isinstance(data, list):
        return False
    if isinstance(value, Items):
        fits_in = value.low <= len(data) <= value.high
        return fits_in and all(_allows(value.entry, entry, ordered) for entry in data)
    return len(data) == len(value.values) and all(
        _allows(v, entry, ordered) for v, entry in zip(value.values, data, strict=True)
    )


def _keys(row: list[Field], ordered: bool) -> list[str]:
    """The keys of a row of fields, as they come or sorted."""
    found = [field.key for field in row]
    return found if ordered else sorted(found)


def _is_number(data: Any) -> bool:
    return isinstance(data, int | float) and not isinstance(data, bool)


@lru_cache(maxsize=CACHED)
def is_regular(spec: ActionSpec) -> bool:
    """Whether the answers are a regular language: the compact formats are, the papers' is not."""
    try:
        _text(spec.tree(), True)
    except ValueError:
        spec.tree()  # a spec without an answer is a mistake in either case
        return False
    return True


@lru_cache(maxsize=CACHED)
def to_regex(spec: ActionSpec, *, bounded: bool = True) -> str:
    """A regular expression for the whole answer, in what Python's and Rust's dialect share.

    Without `bounded`, lists and free words may be of any length: a somewhat larger language whose
    automaton has a twentieth of the states. Raises ValueError for a format that is not regular.
    """
    return render(_text(spec.tree(), bounded), REGEX, {})


@lru_cache(maxsize=CACHED)
def to_node(spec: ActionSpec, *, bounded: bool = True) -> Node:
    """The answers as a regular language. Raises ValueError where they are none."""
    return _text(spec.tree(), bounded)


@lru_cache(maxsize=CACHED)
def to_gbnf(spec: ActionSpec) -> str:
    """The same language in llama.cpp's own grammar notation."""
    return node_gbnf(to_node(spec))


def node_gbnf(node: Node) -> str:
    """A regular language in llama.cpp's own grammar notation."""
    rules: dict[str, str] = {}
    root = render(node, GBNF, rules)
    lines = [f"root ::= {root}", *(f"{name} ::= {body}" for name, body in rules.items())]
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=CACHED)
def to_lark(spec: ActionSpec) -> str:
    """The grammar for llguidance: one lexeme for compact answers, a JSON Schema for others."""
    if not is_regular(spec):
        spacing = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        return f"start: %json {to_json({**to_schema(spec), 'x-guidance': spacing})}\n"
    return node_lark(to_node(spec))


def node_lark(node: Node) -> str:
    """A regular language as llguidance's grammar of one lexeme."""
    return "start: /" + render(node, REGEX, {}).replace("/", "\\/") + "/\n"


def to_schema(spec: ActionSpec, *, bounded: bool = True) -> dict[str, Any]:
    """The answers as JSON Schema: closed objects, every property required, keys in order."""
    return _schema(spec.tree(), bounded)


@lru_cache(maxsize=CACHED)
def _compiled(spec: ActionSpec, bounded: bool) -> re.Pattern[str]:
    return re.compile(to_regex(spec, bounded=bounded))


def matches(spec: ActionSpec, text: str, *, bounded: bool = True) -> bool:
    """Whether `text` is, from first to last character, an answer that is allowed."""
    if is_regular(spec):
        return _compiled(spec, bounded).fullmatch(text) is not None
    return _read_and_allowed(spec, text, ordered=True)


def fits(spec: ActionSpec, text: str) -> bool:
    """Whether `text` is an allowed answer, however its JSON is spaced, escaped and ordered."""
    return _read_and_allowed(spec, text, ordered=False)


def _read_and_allowed(spec: ActionSpec, text: str, ordered: bool) -> bool:
    try:
        return _allows(spec.tree(), json.loads(text), ordered)
    except (ValueError, RecursionError):
        return False


def may_begin(spec: ActionSpec, text: str) -> bool:
    """Whether an answer that was cut off may still have become an allowed one."""
    if not is_regular(spec):
        return text.lstrip()[:1] in {"{", ""}
    return after(to_node(spec, bounded=False), text) is not None
