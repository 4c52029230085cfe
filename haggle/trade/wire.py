"""The two wire formats of a turn and what both decode to.

`full` is the JSON of the ASTP paper (Listing 5). `compact` is what small models speak: the
decision first, the spoken line last, no number that code can compute.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from haggle.core.procedure import Payload, Procedure
from haggle.trade.formula import FORMULA, Formula

WireName = Literal["compact", "full"]
Share = Literal["all", "half"]
Quantity = int | Share
Step = int | str  # what becomes of a line: a number, "+3", "-3", "+2*3", "x2", "all", "half"
Bid = int | str | None
UNLISTED = "?"
MAX_LINES = 12
MAX_SHOWN = 8
LIMIT = 1e15  # no amount or quantity goes beyond, whatever a model writes
STEP_TEXT = re.compile(rf"[+-](?:[1-9]\d{{0,3}}|{FORMULA})|x[2-9]|all|half")
BID_TEXT = re.compile(r"(?P<percent>\d{1,2})%|-(?P<off>\d{1,6})|(?P<each>\d{1,6}) each")


class WireError(ValueError):
    """The text is not an answer in this format; the message says why."""


def _bounded(digits: str) -> float:
    return max(-LIMIT, min(LIMIT, float(digits)))


def _bounded_int(digits: str) -> int:
    return int(digits) if len(digits) < 16 else int(_bounded(digits[:400]))


def _refuse(constant: str) -> None:
    raise WireError(f"{constant} is no number")


_DECODER = json.JSONDecoder(parse_float=_bounded, parse_int=_bounded_int, parse_constant=_refuse)


@dataclass(frozen=True, slots=True)
class StateShape:
    """One state that may be answered and what its answer carries.

    With `may_clear`, the compact answer may carry `"cart":[]` before `say`: all is called off.
    With `may_change`, it may carry `"change":[...]` in place of a cart: what becomes of some lines.
    """

    name: str
    payload: Payload | None
    may_clear: bool = False
    may_change: bool = False


@dataclass(frozen=True, slots=True)
class WireConstraint:
    """All texts a guarded turn may produce, said abstractly; engines compile it to a grammar.

    `last` are the labels that may be reported, `states` the states that may be entered,
    `item_names` the inventory. Hashable, so that a compiled grammar can be kept per value.
    """

    wire: WireName
    last: tuple[str, ...]
    states: tuple[StateShape, ...]
    item_names: tuple[str, ...]
    contexts: tuple[tuple[str, str], ...] = ()
    element4: bool = True


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the model proposes for this turn, before code resolves it against the ledger.

    `cart` and `show` name items as the model wrote them; an empty cart empties the ledger's, None
    leaves it. `change` says what becomes of single lines of the ledger's cart, which stands
    otherwise; a proposal has a cart or a change (`haggle.trade.edits` tells one from the other).
    `stated_*` are totals the model itself stated (full format only): a number, the placeholder
    text, or None.
    """

    last: str
    state: str
    say: str
    cart: tuple[tuple[str, Quantity], ...] | None = None
    change: tuple[tuple[str, Step], ...] | None = None
    show: tuple[str, ...] | None = None
    bid: Bid = None
    stated_original: float | str | None = None
    stated_sale: float | str | None = None
    unit_prices: tuple[float | None, ...] = ()
    extras: dict[str, str] = field(default_factory=dict)


def to_json(record: Any) -> str:
    """JSON exactly as training, history and grammar have it: no spaces, no escapes but JSON's."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def encode_compact(proposal: Proposal, procedure: Procedure) -> str:
    """The compact text of a proposal; keys in the order last, state, payload, say."""
    record: dict[str, Any] = {"last": proposal.last, "state": proposal.state}
    payload = procedure.state(proposal.state).payload
    if payload == "show":
        record["show"] = list(proposal.show or ())
    if payload == "cart" and proposal.change is not None:
        record["change"] = [_told(line) for line in proposal.change]
    elif payload == "cart" or (proposal.cart is not None and not proposal.cart):
        record["cart"] = [_told(line) for line in proposal.cart or ()]
    if payload == "bid":
        record["bid"] = proposal.bid
    record["say"] = proposal.say
    return to_json(record)


def _told(line: tuple[str, Step]) -> list[Step]:
    """A line of a cart or a change as it is written."""
    name, number = line
    return [name, number.told if isinstance(number, Formula) else number]


def _object(text: str) -> dict[str, Any]:
    """The first JSON object in `text`; one cut off inside its last string is closed."""
    start = text.find("{")
    if start < 0:
        raise WireError("no JSON object in the answer")
    body = text[start:]
    try:
        data, _ = _DECODER.raw_decode(body)
    except json.JSONDecodeError as error:
        try:
            data = _DECODER.decode(body.rstrip().rstrip("\\") + '"}')
        except json.JSONDecodeError:
            raise WireError(f"not JSON: {error.msg} at character {error.pos}") from None
    if not isinstance(data, dict):
        raise WireError("the answer is not a JSON object")
    if "\\u" in body:  # half an emoji, escaped, is no text that can be written anywhere
        return dict(json.loads(to_json(data).encode("utf-8", "replace")))
    return data


def is_strict_json(text: str) -> bool:
    """Whether the whole text is one JSON object (the measure of valid JSON)."""
    try:
        return isinstance(_DECODER.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def _text(data: dict[str, Any], key: str, default: str | None = None) -> str:
    value = data.get(key, default)
    if not isinstance(value, str):
        raise WireError(f"field {key!r} must be a string")
    return value


def _quantity(value: Any) -> Quantity:
    if value in ("all", "half"):
        return "all" if value == "all" else "half"
    if isinstance(value, str):
        formula = Formula.read(value.strip())
        if formula is not None:
            return formula
        value = _bounded_int(value.strip()) if value.strip().isdecimal() else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise WireError(f"quantity {value!r} is no whole number")
    return value


def decode_compact(text: str, procedure: Procedure) -> Proposal:
    """Decode a compact answer. Raises WireError saying what is wrong with it."""
    data = _object(text)
    unknown = set(data) - {"last", "state", "cart", "change", "bid", "show", "say"}
    if unknown:
        raise WireError(f"unknown field {sorted(unknown)[0]!r}")
    state = _text(data, "state")
    if state not in procedure.states:
        raise WireError(f"unknown state {state!r}")
    payload = procedure.states[state].payload
    carried: str | None = payload
    if payload == "cart" and "change" in data and "cart" not in data:
        carried = "change"
    if carried in {"cart", "change", "show"} and not isinstance(data.get(carried), list):
        raise WireError(f"state {state} needs the list {carried!r}")
    cart = show = change = None
    if carried == "change":
        change = tuple(_change_line(line) for line in data["change"])
    elif payload == "cart":
        cart = tuple(_cart_line(line) for line in data["cart"])
    elif data.get("cart") == [] and procedure.states[state].may_clear:
        cart = ()
    if payload == "show":
        if not all(isinstance(name, str) for name in data["show"]):
            raise WireError("field 'show' must list item names")
        show = tuple(data["show"])
    bid = data.get("bid") if payload == "bid" else None
    if isinstance(bid, float):
        bid = round(bid)
    if isinstance(bid, str) and not BID_TEXT.fullmatch(bid):
        raise WireError(f"bid {bid!r} is none of: number, 'N%', '-N', 'N each', null")
    if not isinstance(bid, int | str | None) or isinstance(bid, bool):
        raise WireError(f"bid {bid!r} is no number")
    return Proposal(
        last=_text(data, "last", ""), state=state, say=_text(data, "say"),
        cart=cart, change=change, show=show, bid=bid,
    )  # fmt: skip


def _change_line(line: Any) -> tuple[str, Step]:
    if not (isinstance(line, list) and len(line) == 2 and isinstance(line[0], str)):
        raise WireError(f"change {line!r} is not [item name, what becomes of it]")
    name, step = line
    if isinstance(step, str) and STEP_TEXT.fullmatch(step):
        return name, step
    return name, _quantity(step)


def _cart_line(line: Any) -> tuple[str, Quantity]:
    if not (isinstance(line, list) and len(line) == 2 and isinstance(line[0], str)):
        raise WireError(f"cart line {line!r} is not [item name, quantity]")
    return line[0], _quantity(line[1])


def decode_full(text: str, procedure: Procedure) -> Proposal:
    """Decode the papers' JSON (ASTP Listing 5). Raises WireError saying what is wrong."""
    data = _object(text)
    details = data.get("context_details")
    kind = _text(data, "context_type")
    label = kind
    if kind == "TRADE":
        if not isinstance(details, dict):
            raise WireError("context_type TRADE needs the object 'context_details'")
        label = _text(details, "context_subtype")
    state = procedure.alias("sibp", label)
    if state not in procedure.states or procedure.states[state].context != procedure.alias(
        "sibp", kind
    ):
        raise WireError(f"unknown state {label!r} in context_type {kind!r}")
    extras = {
        key: data[key]
        for key in ("context_reason", "npc_thoughts", "npc_action")
        if isinstance(data.get(key), str)
    }
    base = Proposal(
        last=procedure.alias("sibp", _text(data, "last_trade_context", "")),
        state=state, say=_text(data, "npc_dialogue"), extras=extras,
    )  # fmt: skip
    if kind != "TRADE":
        return base
    assert isinstance(details, dict)
    items = details.get("items", [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise WireError("field 'items' must be a list of objects")
    lines = tuple((_text(i, "item_name", ""), _quantity(i.get("quantity", 1))) for i in items)
    prices = tuple(_number(i.get("price")) for i in items)
    shown = procedure.states[state].payload == "show"
    return Proposal(
        last=base.last, state=state, say=base.say, extras=extras,
        show=tuple(name for name, _ in lines) if shown else None,
        cart=None if shown else lines,
        stated_original=_stated(details.get("original_price")),
        stated_sale=_stated(details.get("sale_price")),
        unit_prices=prices,
    )  # fmt: skip


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _stated(value: Any) -> float | str | None:
    if isinstance(value, str):
        try:
            number = float(value.replace(",", ""))
        except ValueError:
            return value
        return number if math.isfinite(number) else None
    return _number(value)


def decode(wire: WireName, text: str, procedure: Procedure) -> Proposal:
    """Decode an answer in either format. Raises WireError."""
    try:
        return (decode_compact if wire == "compact" else decode_full)(text, procedure)
    except RecursionError:
        raise WireError("nested too deeply") from None
