"""JSON as models write it: read leniently, written exactly."""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

LIMIT = 1e15  # no amount or quantity goes beyond, whatever a model writes


class DecodeError(ValueError):
    """The text is no action in this format; the message says why."""


def _bounded(digits: str) -> float:
    return max(-LIMIT, min(LIMIT, float(digits)))


def bounded_int(digits: str) -> int:
    """The whole number that a text of digits is, cut at `LIMIT`."""
    return int(digits) if len(digits) < 16 else int(_bounded(digits[:400]))


def _refuse(constant: str) -> None:
    raise DecodeError(f"{constant} is no number")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_float=_bounded, parse_int=bounded_int, parse_constant=_refuse)


def to_json(record: Any) -> str:
    """JSON exactly as training, history and grammar have it: no spaces, no escapes but JSON's."""
    return _ENCODER.encode(record)


def read_object(text: str, known: Container[str] | None = None) -> dict[str, Any]:
    """The first JSON object in `text`; one cut off inside its last string is closed.

    Raises DecodeError where there is none, or one with a field that is not `known`.
    """
    start = text.find("{")
    if start < 0:
        raise DecodeError("no JSON object in the answer")
    body = text[start:]
    try:
        data, _ = _DECODER.raw_decode(body)
    except json.JSONDecodeError as error:
        try:
            data = _DECODER.decode(body.rstrip().rstrip("\\") + '"}')
        except json.JSONDecodeError:
            raise DecodeError(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise DecodeError("nested too deeply") from None
    if not isinstance(data, dict):
        raise DecodeError("the answer is not a JSON object")
    if known is not None and (unknown := sorted(key for key in data if key not in known)):
        raise DecodeError(f"unknown field {unknown[0]!r}")
    if "\\u" in body:  # half an emoji, escaped, is no text that can be written anywhere
        return dict(json.loads(to_json(data).encode("utf-8", "replace")))
    return data


def text_of(data: dict[str, Any], key: str, default: str | None = None) -> str:
    """A string of an object. Raises DecodeError where the field is none, or is missing and there is
    no default."""
    value = data.get(key, default)
    if value is None and key not in data:
        raise DecodeError(f"field {key!r} is missing")
    if not isinstance(value, str):
        raise DecodeError(f"field {key!r} must be a string")
    return value


def is_strict_json(text: str) -> bool:
    """Whether the whole text is one JSON object (the measure of valid JSON)."""
    try:
        return isinstance(_DECODER.decode(text), dict)
    except (ValueError, RecursionError):
        return False
