"""The texts a guarded turn may be, as JSON Schema for endpoints that take nothing else.

Remote engines accept neither regular expressions nor grammars, so the compact format is written
here as JSON Schema too: one closed object per state, every property required, in the order of
`haggle.trade.wire.encode_compact`. Only keywords that llama.cpp, vLLM's backends and Gemini all
read.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

from haggle.trade.formula import FORMULA
from haggle.trade.wire import MAX_LINES, MAX_SHOWN, StateShape, WireConstraint
from serving.grammar import CACHED, UNLISTED_CHARACTERS, closed, to_json_schema

UNLISTED_PATTERN = rf'^[?][^"\\\n\r\t]{{1,{UNLISTED_CHARACTERS}}}$'
BID_PATTERN = "^([1-9][0-9]?%|-[1-9][0-9]{0,5}|[1-9][0-9]{0,5} each)$"
FORMULA_PATTERN = f"^{FORMULA}$"
STEP_PATTERN = f"^([+-][1-9][0-9]{{0,3}}|[+-]{FORMULA}|x[2-9])$"
NO_CART = {"type": "array", "items": {"type": "string"}, "maxItems": 0}


def response_schema(constraint: WireConstraint) -> dict[str, Any]:
    """The JSON Schema of an answer in either wire format. Raises ValueError without states."""
    if constraint.wire == "full":
        return to_json_schema(constraint)
    if not constraint.states or not constraint.last:
        raise ValueError("a constraint needs at least one state and one last label")
    answers = [
        closed(
            {"last": _one_of(constraint.last), "state": _one_of((shape.name,))}
            | payload
            | {"say": {"type": "string"}}
        )
        for shape in constraint.states
        for payload in _payloads(shape, constraint.item_names)
    ]
    return answers[0] if len(answers) == 1 else {"anyOf": answers}


def fits(constraint: WireConstraint, text: str) -> bool:
    """Whether `text` keeps to its schema, however its JSON is spaced, escaped and ordered."""
    try:
        return bool(_validator(constraint).is_valid(json.loads(text)))
    except (ValueError, RecursionError):
        return False


@lru_cache(maxsize=CACHED)
def _validator(constraint: WireConstraint) -> Draft202012Validator:
    return Draft202012Validator(response_schema(constraint))


def _payloads(shape: StateShape, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """What a state's answer may carry between `state` and `say`, one entry per alternative."""
    if shape.payload == "show":
        shown = {"type": "array", "items": _one_of(names), "minItems": 1, "maxItems": MAX_SHOWN}
        return [{"show": shown if names else NO_CART}]
    if shape.payload == "cart":
        carried = [{"cart": _lines(names, _quantity())}]
        return [*carried, {"change": _lines(names, _step())}] if shape.may_change else carried
    payload = {"bid": _bid()} if shape.payload == "bid" else {}
    return [payload, {"cart": NO_CART} | payload] if shape.may_clear else [payload]


def _lines(names: tuple[str, ...], number: dict[str, Any]) -> dict[str, Any]:
    unlisted = {"type": "string", "pattern": UNLISTED_PATTERN}
    name = {"anyOf": [_one_of(names), unlisted]} if names else unlisted
    line = {"type": "array", "prefixItems": [name, number], "minItems": 2, "maxItems": 2}
    return {"type": "array", "items": line, "maxItems": MAX_LINES}


def _quantity(least: int = 1) -> dict[str, Any]:
    whole = {"type": "integer", "minimum": least, "maximum": 9999}
    formula = {"type": "string", "pattern": FORMULA_PATTERN}
    return {"anyOf": [whole, _one_of(("all", "half")), formula]}


def _step() -> dict[str, Any]:
    return {"anyOf": [*_quantity(0)["anyOf"], {"type": "string", "pattern": STEP_PATTERN}]}


def _bid() -> dict[str, Any]:
    whole = {"type": "integer", "minimum": 1, "maximum": 9_999_999}
    return {"anyOf": [{"type": "null"}, whole, {"type": "string", "pattern": BID_PATTERN}]}


def _one_of(values: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}
