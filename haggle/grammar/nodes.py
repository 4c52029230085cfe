"""A regular language as a tree of five kinds of node, and the notations it is written in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache


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

# Quotes and backslashes are left out: what a character says needs no escapes, and a model that may
# write escapes sooner or later writes half of one.
SPOKEN = Chars((('"', '"'), ("\\", "\\"), ("\x00", "\x1f"), ("\x7f", "\x7f")), negated=True)
DIGIT = Chars((("0", "9"),))
NONZERO = Chars((("1", "9"),))


def number(digits: int) -> Node:
    """A whole number from 1, of at most `digits` digits, without leading zeros."""
    return Join((NONZERO, Times(DIGIT, 0, digits - 1))) if digits > 1 else NONZERO


def joined(*parts: Node | str) -> Join:
    """The parts one after another; a str stands for itself."""
    return Join(tuple(Text(part) if isinstance(part, str) else part for part in parts))


@dataclass(frozen=True, slots=True)
class Notation:
    """How one grammar language writes literals, control characters and groups."""

    literal: Callable[[str], str]
    glue: str
    group: str
    control: Callable[[tuple[str, str]], str]
    rules: bool = False


def _regex_literal(text: str) -> str:
    return "".join("\\" + c if c in r"\.^$*+?{}[]()|" else c for c in text)


def _schema_literal(text: str) -> str:
    return "".join(f"[{c}]" if c in ".$*+?{}()|" else c for c in text)


def _gbnf_literal(text: str) -> str:
    # Control characters cannot occur: they are written as JSON escapes before.
    return '"' + "".join("\\" + c if c in '"\\' else c for c in text) + '"'


def _hexadecimal(ends: tuple[str, str]) -> str:
    first, last = (f"\\x{ord(c):02X}" for c in ends)
    return first if first == last else f"{first}-{last}"


def _named(ends: tuple[str, str]) -> str:
    return "\\n\\r\\t" if ends[0] < " " else ""


REGEX = Notation(_regex_literal, "", "(?:{})", _hexadecimal)
SCHEMA = Notation(_schema_literal, "", "({})", _named)  # what JSON Schema's readers all know
GBNF = Notation(_gbnf_literal, " ", "({})", _hexadecimal, rules=True)


def _count(node: Times) -> str:
    return {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}.get(
        (node.low, node.high),
        f"{{{node.low},{'' if node.high is None else node.high}}}",
    )


def _class(node: Chars, notation: Notation) -> str:
    def one(ends: tuple[str, str]) -> str:
        first, last = ends
        if first < " " or first == "\x7f":
            return notation.control(ends)
        first, last = ("\\" + c if c in "\\]^-" else c for c in ends)
        return first if first == last else f"{first}-{last}"

    return f"[{'^' if node.negated else ''}{''.join(map(one, node.ranges))}]"


def render(node: Node, notation: Notation, rules: dict[str, str]) -> str:
    """`node` in a notation; named alternatives go to `rules` where the notation has any.

    Raises ValueError where two rules have one name.
    """
    if isinstance(node, Text):
        return notation.literal(node.text)
    if isinstance(node, Chars):
        return _class(node, notation)
    if isinstance(node, Times):
        part = render(node.part, notation, rules)
        named = notation.rules and isinstance(node.part, OneOf) and node.part.name
        whole = isinstance(node.part, Chars) or named
        return (part if whole else notation.group.format(part)) + _count(node)
    if isinstance(node, Join):
        parts = (render(part, notation, rules) for part in node.parts)
        return notation.glue.join(part for part in parts if part)
    body = "|".join(render(part, notation, rules) for part in node.parts)
    if not (notation.rules and node.name):
        return notation.group.format(body)
    if rules.setdefault(node.name, body) != body:
        raise ValueError(f"two different rules are called {node.name!r}")
    return node.name


@lru_cache(maxsize=256)
def pattern(node: Node) -> re.Pattern[str]:
    """A compiled regular expression of a node."""
    return re.compile(render(node, REGEX, {}))
