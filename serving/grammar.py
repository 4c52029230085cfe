"""The texts a guarded turn may be, as regular expression, GBNF, Lark grammar and JSON Schema.

The compact format is a regular language. It is written down once (`turn`), as a tree of five kinds
of node; everything an engine needs is rendered from that tree. The papers' format is a JSON Schema
(`to_json_schema`), with one whole object per state. `matches` tells after decoding whether a text
keeps to its constraint, whatever the engine did with the grammar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from haggle.trade.placeholders import PRICE
from haggle.trade.wire import MAX_LINES, MAX_SHOWN, UNLISTED, StateShape, WireConstraint, to_json

UNLISTED_CHARACTERS = 60
CACHED = 512
TRADE = "TRADE"


@dataclass(frozen=True, slots=True)
class Text:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character: of `ranges`, or with `negated` any other."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Times:
    """`part` from `low` to `high` times; without `high` as often as it likes."""

    part: Node
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Join:
    """The parts one after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of the parts. `name` makes it a rule of its own where a grammar has rules."""

    parts: tuple[Node, ...]
    name: str = ""


Node = Text | Chars | Times | Join | OneOf

# Quotes and backslashes are left out: what a merchant says needs no escapes, and a model that may
# write escapes sooner or later writes half of one.
SPOKEN = Chars((('"', '"'), ("\\", "\\"), ("\x00", "\x1f"), ("\x7f", "\x7f")), negated=True)
DIGIT = Chars((("0", "9"),))
NONZERO = Chars((("1", "9"),))


def _number(digits: int) -> Node:
    """A whole number from 1, of at most `digits` digits, without leading zeros."""
    return Join((NONZERO, Times(DIGIT, 0, digits - 1))) if digits > 1 else NONZERO


def _quoted(inside: Node) -> Node:
    return Join((Text('"'), inside, Text('"')))


def _labels(values: tuple[str, ...], name: str = "") -> Node:
    return OneOf(tuple(Text(to_json(value)) for value in values), name)


def _list(entry: Node, low: int, high: int | None) -> Node:
    """A JSON array of `low` (0 or 1) to `high` entries."""
    rest = Times(Join((Text(","), entry)), 0, None if high is None else high - 1)
    return Join((Text("["), Times(Join((entry, rest)), low, 1), Text("]")))


BID = OneOf(
    (
        Text("null"),
        _number(7),
        _quoted(Join((_number(2), Text("%")))),
        _quoted(Join((Text("-"), _number(6)))),
        _quoted(Join((_number(6), Text(" each")))),
    ),
    "bid",
)
_PLUS = Join((Text("+"), _number(3)))
FORMULA = OneOf(  # haggle.trade.formula's
    (
        Join((_number(3), Text("*"), _number(3), Times(_PLUS, 0, 1))),
        Join((_number(3), Times(_PLUS, 1, 2))),
    ),
    "formula",
)
QUANTITY = OneOf((_number(4), Text('"all"'), Text('"half"'), _quoted(FORMULA)), "quantity")
STEP = OneOf(
    (
        *QUANTITY.parts,
        Text("0"),
        _quoted(Join((OneOf((Text("+"), Text("-"))), OneOf((_number(4), FORMULA))))),
        _quoted(Join((Text("x"), Chars((("2", "9"),))))),
    ),
    "step",
)


def _show(names: tuple[str, ...], bounded: bool) -> Node:
    shown = _list(_labels(names, "item"), 1, MAX_SHOWN if bounded else None)
    return Join((Text('"show":'), shown if names else Text("[]"), Text(",")))


def _cart(names: tuple[str, ...], bounded: bool, may_change: bool) -> Node:
    words = Times(SPOKEN, 1, UNLISTED_CHARACTERS if bounded else None)
    unlisted = _quoted(Join((Text(UNLISTED), words)))
    name = OneOf((_labels(names, "item"), unlisted) if names else (unlisted,), "wanted")
    most = MAX_LINES if bounded else None

    def lines(number: OneOf, rule: str) -> Node:
        line = OneOf((Join((Text("["), name, Text(","), number, Text("]"))),), rule)
        return Join((_list(line, 0, most), Text(",")))

    cart = Join((Text('"cart":'), lines(QUANTITY, "line")))
    if not may_change:
        return cart
    return OneOf((cart, Join((Text('"change":'), lines(STEP, "changed")))))


def _payload(shape: StateShape, names: tuple[str, ...], bounded: bool) -> Node:
    """What an answer carries between its state and its line, in the order of `encode_compact`."""
    parts: list[Node] = []
    if shape.payload == "show":
        parts.append(_show(names, bounded))
    if shape.payload == "cart":
        parts.append(_cart(names, bounded, shape.may_change))
    elif shape.may_clear:
        parts.append(Times(Text('"cart":[],'), 0, 1))
    if shape.payload == "bid":
        parts.append(Join((Text('"bid":'), BID, Text(","))))
    return Join(tuple(parts))


def turn(constraint: WireConstraint, *, bounded: bool = True) -> Node:
    """The compact answers `constraint` allows.

    Without `bounded`, lists and free words may be of any length: a somewhat larger language whose
    automaton has a twentieth of the states. Raises ValueError for the full format.
    """
    if constraint.wire != "compact":
        raise ValueError("only the compact format is a regular language")
    if not constraint.states or not constraint.last:
        raise ValueError("a constraint needs at least one state and one last label")
    states = tuple(
        Join((Text(to_json(s.name) + ","), _payload(s, constraint.item_names, bounded)))
        for s in constraint.states
    )
    say = Join((Text('"say":"'), Times(SPOKEN, 1, None), Text('"}')))
    head = (Text('{"last":'), _labels(constraint.last), Text(',"state":'))
    return Join((*head, OneOf(states), say))


@dataclass(frozen=True, slots=True)
class _Notation:
    """How one grammar language writes literals and counts."""

    literal: Callable[[str], str]
    glue: str
    group: str


def _count(node: Times) -> str:
    return {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}.get(
        (node.low, node.high),
        f"{{{node.low},{'' if node.high is None else node.high}}}",
    )


def _class(node: Chars) -> str:
    def one(character: str) -> str:
        if character < " " or character == "\x7f":
            return f"\\x{ord(character):02X}"
        return "\\" + character if character in "\\]^-" else character

    inside = "".join(one(a) if a == b else f"{one(a)}-{one(b)}" for a, b in node.ranges)
    return f"[{'^' if node.negated else ''}{inside}]"


def _render(node: Node, notation: _Notation, rules: dict[str, str] | None) -> str:
    """`node` in a notation; named alternatives go to `rules`, where there are any."""
    if isinstance(node, Text):
        return notation.literal(node.text)
    if isinstance(node, Chars):
        return _class(node)
    if isinstance(node, Times):
        part = _render(node.part, notation, rules)
        whole = isinstance(node.part, Chars) or (
            rules is not None and isinstance(node.part, OneOf) and bool(node.part.name)
        )
        return (part if whole else notation.group.format(part)) + _count(node)
    if isinstance(node, Join):
        parts = (_render(part, notation, rules) for part in node.parts)
        return notation.glue.join(part for part in parts if part)
    body = "|".join(_render(part, notation, rules) for part in node.parts)
    if rules is None or not node.name:
        return notation.group.format(body)
    if rules.setdefault(node.name, body) != body:
        raise ValueError(f"two different rules are called {node.name!r}")
    return node.name


def _regex_literal(text: str) -> str:
    return "".join("\\" + c if c in r"\.^$*+?{}[]()|" else c for c in text)


def _gbnf_literal(text: str) -> str:
    # Control characters cannot occur: `to_json` has already written them as escapes.
    return '"' + "".join("\\" + c if c in '"\\' else c for c in text) + '"'


REGEX = _Notation(_regex_literal, "", "(?:{})")
GBNF = _Notation(_gbnf_literal, " ", "({})")


@lru_cache(maxsize=CACHED)
def to_regex(constraint: WireConstraint, *, bounded: bool = True) -> str:
    """A regular expression for the whole answer, in what Python's and Rust's dialect share."""
    return _render(turn(constraint, bounded=bounded), REGEX, None)


@lru_cache(maxsize=CACHED)
def to_gbnf(constraint: WireConstraint) -> str:
    """The same language in llama.cpp's own grammar notation."""
    rules: dict[str, str] = {}
    root = _render(turn(constraint), GBNF, rules)
    lines = [f"root ::= {root}", *(f"{name} ::= {body}" for name, body in rules.items())]
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=CACHED)
def to_lark(constraint: WireConstraint) -> str:
    """The grammar for llguidance: one lexeme for compact answers, a JSON Schema for full ones."""
    if constraint.wire == "full":
        spacing = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
        return f"start: %json {to_json({**to_json_schema(constraint), 'x-guidance': spacing})}\n"
    return "start: /" + to_regex(constraint).replace("/", "\\/") + "/\n"


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _details(shape: StateShape, names: tuple[str, ...], bounded: bool) -> dict[str, Any]:
    """`context_details` of a trade state (ASTP, Listing 5); nothing has a total while shown."""
    stated = {"anyOf": [{"type": "number"}, {"type": "string", "enum": [PRICE]}]}
    item = closed(
        {
            "item_id": {"type": "string"},
            "item_name": {"type": "string", "enum": list(names)},
            "quantity": {"type": "integer", "minimum": 1, "maximum": 9999},
            "price": {"type": "number"},
        }
    )
    items: dict[str, Any] = {"type": "array", "items": item}
    if bounded or not names:
        items["maxItems"] = MAX_LINES if names else 0
    details = {"context_subtype": {"type": "string", "enum": [shape.name]}, "items": items}
    if shape.payload != "show":
        details |= {"original_price": stated, "sale_price": stated}
    return closed(details)


def to_json_schema(constraint: WireConstraint, *, bounded: bool = True) -> dict[str, Any]:
    """The papers' JSON (ASTP, Listing 5): one closed object per state, every property required.

    Written with what llama.cpp, llguidance and outlines all honour: anyOf at the top, enum rather
    than const, order of the keys as in the paper. Without `bounded` the list of items may be of
    any length. Raises ValueError without states.
    """
    if not constraint.states or not constraint.last:
        raise ValueError("a constraint needs at least one state and one last label")
    contexts = dict(constraint.contexts)
    answers = []
    for shape in constraint.states:
        context = contexts.get(shape.name, TRADE)
        properties: dict[str, Any] = {}
        if constraint.element4:
            properties["last_trade_context"] = {"type": "string", "enum": list(constraint.last)}
        properties["context_reason"] = {"type": "string"}
        properties["context_type"] = {"type": "string", "enum": [context]}
        if context == TRADE:
            properties["context_details"] = _details(shape, constraint.item_names, bounded)
        properties |= {key: {"type": "string"} for key in ("npc_thoughts", "npc_action")}
        properties["npc_dialogue"] = {"type": "string"}
        answers.append(closed(properties))
    return answers[0] if len(answers) == 1 else {"anyOf": answers}


@lru_cache(maxsize=CACHED)
def _compiled(constraint: WireConstraint, bounded: bool) -> re.Pattern[str]:
    return re.compile(to_regex(constraint, bounded=bounded))


def matches(constraint: WireConstraint, text: str, *, bounded: bool = True) -> bool:
    """Whether `text` is, from first to last character, an answer the constraint allows."""
    if constraint.wire == "compact":
        return _compiled(constraint, bounded).fullmatch(text) is not None
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return False
    return _valid(value, to_json_schema(constraint, bounded=bounded))


def _valid(value: Any, schema: dict[str, Any]) -> bool:
    """The part of JSON Schema that `to_json_schema` uses, and the order of the keys."""
    if "anyOf" in schema:
        return any(_valid(value, option) for option in schema["anyOf"])
    kind = schema["type"]
    if kind == "object":
        return (
            isinstance(value, dict)
            and list(value) == schema["required"]
            and all(_valid(value[key], part) for key, part in schema["properties"].items())
        )
    if kind == "array":
        return (
            isinstance(value, list)
            and len(value) <= schema.get("maxItems", len(value))
            and all(_valid(entry, schema["items"]) for entry in value)
        )
    if kind == "string":
        return isinstance(value, str) and value in schema.get("enum", [value])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if kind == "integer":
        return float(value).is_integer() and schema["minimum"] <= value <= schema["maximum"]
    return True
