"""The answers that are legal now, in every notation an engine reads.

A domain writes the tree of the actions that are legal now (`ActionSpec`); nothing else knows fields
and formats. From it come the grammar (regular expression, GBNF, Lark, JSON Schema) and the check
whether a text keeps to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, Protocol

from haggle.grammar.forced import after
from haggle.grammar.json_text import to_json
from haggle.grammar.nodes import GBNF, REGEX, Node, render
from haggle.grammar.values import Value, read, schema, texts

CACHED = 512  # grammars kept


class ActionSpec(Hashable, Protocol):
    """The actions that are legal now. Hashable, so that a compiled grammar is kept per value."""

    def tree(self) -> Value:
        """All answers that may be given. Raises ValueError where there is none."""
        ...


@lru_cache(maxsize=CACHED)
def is_regular(spec: ActionSpec) -> bool:
    """Whether the answers are a regular language: the compact formats are, the papers' is not."""
    try:
        texts(spec.tree(), True)
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
    return render(texts(spec.tree(), bounded), REGEX, {})


@lru_cache(maxsize=CACHED)
def to_node(spec: ActionSpec, *, bounded: bool = True) -> Node:
    """The answers as a regular language. Raises ValueError where they are none."""
    return texts(spec.tree(), bounded)


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
    return schema(spec.tree(), bounded)


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
        read(spec.tree(), json.loads(text), order=list if ordered else sorted)
    except (ValueError, RecursionError):
        return False
    return True


def may_begin(spec: ActionSpec, text: str) -> bool:
    """Whether an answer that was cut off may still have become an allowed one."""
    if not is_regular(spec):
        return text.lstrip()[:1] in {"{", ""}
    return after(to_node(spec, bounded=False), text) is not None
