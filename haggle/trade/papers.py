"""The JSON of the ASTP paper (Listing 5) as a format of answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from haggle.grammar.json_text import DecodeError, read_object, text_of, to_json
from haggle.grammar.values import (
    AnyNumber,
    AnyText,
    Choice,
    Either,
    Field,
    Fields,
    Items,
    Label,
    Part,
    Value,
    Whole,
)
from haggle.trade.placeholders import PRICE
from haggle.trade.procedure import Procedure
from haggle.trade.response import MerchantResponse
from haggle.trade.wire import MAX_LINES, Proposal, StateShape, WireConstraint, quantity
from haggle.trade.world import plain_number

TRADE = "TRADE"
EXTRAS = ("context_reason", "npc_thoughts", "npc_action")


@dataclass(frozen=True, slots=True)
class Papers:
    """The papers' format: the model states items, totals and prices itself."""

    states_totals: bool = True
    one_message: bool = True
    length: int = 4
    speaks_after: bool = False
    template: str = "full.jinja"

    def tree(self, constraint: WireConstraint) -> Value:
        """One object per state, keys in the paper's order."""
        contexts = dict(constraint.contexts)
        states = tuple(
            _context(shape, contexts.get(shape.name, TRADE), constraint.item_names)
            for shape in constraint.states
        )
        last = (Field("last_trade_context", Label(constraint.last)),) if constraint.element4 else ()
        reason, thoughts, action = (Field(key, AnyText()) for key in EXTRAS)
        said = Field("npc_dialogue", AnyText())
        return Fields((*last, reason, Choice(states), thoughts, action, said))

    def decode(self, text: str, procedure: Procedure) -> Proposal:
        """Decode an answer in the papers' JSON."""
        return decode_full(text, procedure)


def _context(shape: StateShape, context: str, names: tuple[str, ...]) -> tuple[Part, ...]:
    """`context_type`, and `context_details` in a trade; nothing has a total while shown."""
    kind = Field("context_type", Label((context,)))
    if context != TRADE:
        return (kind,)
    item = Fields(
        (
            Field("item_id", AnyText()),
            Field("item_name", Label(names)),
            Field("quantity", Whole(4)),
            Field("price", AnyNumber()),
        )
    )
    stated = Either((AnyNumber(), Label((PRICE,))))
    totals = [Field(key, stated) for key in ("original_price", "sale_price")]
    details = Fields(
        (
            Field("context_subtype", Label((shape.name,))),
            Field("items", Items(item, 0, MAX_LINES if names else 0)),
            *(totals if shape.payload != "show" else ()),
        )
    )
    return kind, Field("context_details", details)


def decode_full(text: str, procedure: Procedure) -> Proposal:
    """Decode the papers' JSON (ASTP Listing 5). Raises DecodeError saying what is wrong."""
    data = read_object(text)
    details = data.get("context_details")
    kind = text_of(data, "context_type")
    label = kind
    if kind == TRADE:
        if not isinstance(details, dict):
            raise DecodeError("context_type TRADE needs the object 'context_details'")
        label = text_of(details, "context_subtype")
    state = procedure.alias("sibp", label)
    if state not in procedure.states or procedure.states[state].context != procedure.alias(
        "sibp", kind
    ):
        raise DecodeError(f"unknown state {label!r} in context_type {kind!r}")
    extras = {key: data[key] for key in EXTRAS if isinstance(data.get(key), str)}
    base = Proposal(
        last=procedure.alias("sibp", text_of(data, "last_trade_context", "")),
        state=state, say=text_of(data, "npc_dialogue"), extras=extras,
    )  # fmt: skip
    if kind != TRADE:
        return base
    assert isinstance(details, dict)
    items = details.get("items", [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise DecodeError("field 'items' must be a list of objects")
    lines = tuple((text_of(i, "item_name", ""), quantity(i.get("quantity", 1))) for i in items)
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


def full_json(response: MerchantResponse, with_last: bool = True) -> str:
    """The papers' JSON of a finished answer, totals filled in (ASTP Listing 5).

    `with_last` is off for methods without Element 4, which never see the field.
    """
    data: dict[str, object] = {}
    if with_last:
        data["last_trade_context"] = response.last_trade_context
    data["context_reason"] = response.context_reason
    data["context_type"] = response.context_type
    details = response.context_details
    if details is not None:
        trade = details.model_dump(exclude_none=True)
        for line in trade.get("items", []):
            if "price" in line:
                line["price"] = plain_number(line["price"])
        for key in ("original_price", "sale_price"):
            if key in trade:
                trade[key] = plain_number(trade[key])
        data["context_details"] = trade
    data["npc_thoughts"] = response.npc_thoughts
    data["npc_action"] = response.npc_action
    data["npc_dialogue"] = response.npc_dialogue
    return to_json(data)
