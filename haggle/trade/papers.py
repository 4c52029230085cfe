"""The JSON of the ASTP paper (Listing 5) as a format of answers."""

from __future__ import annotations

import math
from typing import Any

from haggle.core.config import Record
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
    read,
)
from haggle.trade.placeholders import PRICE
from haggle.trade.procedure import Procedure
from haggle.trade.response import ContextDetails, ItemLine, MerchantResponse
from haggle.trade.wire import MAX_LINES, QUANTITY, Codec, Proposal, StateShape, WireConstraint
from haggle.trade.world import plain_number

TRADE = "TRADE"
EXTRAS = ("context_reason", "npc_thoughts", "npc_action")


class Papers(Codec):
    """The papers' format: the model states items, totals and prices itself."""

    def tree(self, constraint: WireConstraint) -> Fields:
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
        """Decode an answer (ASTP Listing 5). Raises DecodeError saying what is wrong."""
        data = read_object(text)
        kind = text_of(data, "context_type")
        details = data.get("context_details") if kind == TRADE else {}
        if not isinstance(details, dict):
            raise DecodeError("context_type TRADE needs the object 'context_details'")
        label = text_of(details, "context_subtype") if kind == TRADE else kind
        state = procedure.alias("sibp", label)
        found = procedure.states.get(state)
        if found is None or found.context != procedure.alias("sibp", kind):
            raise DecodeError(f"unknown state {label!r} in context_type {kind!r}")
        items = details.get("items", [])
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise DecodeError("field 'items' must be a list of objects")
        names = tuple(text_of(item, "item_name", "") for item in items)
        counts = [read(QUANTITY, item.get("quantity", 1), "field 'quantity'") for item in items]
        shown = found.payload == "show"
        return Proposal(
            last=procedure.alias("sibp", text_of(data, "last_trade_context", "")),
            state=state,
            say=text_of(data, "npc_dialogue"),
            show=names if shown else None,
            cart=tuple(zip(names, counts, strict=True)) if kind == TRADE and not shown else None,
            stated_original=_stated(details.get("original_price")),
            stated_sale=_stated(details.get("sale_price")),
            unit_prices=tuple(_number(item.get("price")) for item in items),
            extras={key: data[key] for key in EXTRAS if isinstance(data.get(key), str)},
        )

    def encode(
        self,
        proposal: Proposal,
        procedure: Procedure,
        response: MerchantResponse | None = None,
        reports: bool = True,
    ) -> str:
        """The whole answer, totals filled in."""
        assert response is not None
        return full_json(response, reports)


PAPERS = Papers("full.jinja", length=4, states_totals=True, one_message=True)


def _context(shape: StateShape, context: str, names: tuple[str, ...]) -> tuple[Part, ...]:
    """`context_type`, and `context_details` in a trade; nothing has a total while shown."""
    kind = Field("context_type", Label((context,)))
    if context != TRADE:
        return (kind,)
    item = _fields(ItemLine, item_name=Label(names), quantity=Whole(4), price=AnyNumber())
    stated = Either((AnyNumber(), Label((PRICE,))))
    subtype = Label((shape.name,))
    items = Items(Fields(item), 0, MAX_LINES if names else 0)
    details = _fields(
        ContextDetails,
        context_subtype=subtype,
        items=items,
        original_price=stated,
        sale_price=stated,
    )
    if shape.payload == "show":
        details = details[:2]
    return kind, Field("context_details", Fields(details))


def _fields(record: type[Record], **values: Value) -> tuple[Field, ...]:
    """The fields of a record in its own order: any text, but for these values."""
    return tuple(Field(key, values.get(key, AnyText())) for key in record.model_fields)


def _number(value: Any) -> float | None:
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_one else None


def _stated(value: Any) -> float | str | None:
    try:
        number = float(value.replace(",", "")) if isinstance(value, str) else _number(value)
    except ValueError:
        return str(value)
    return number if number is not None and math.isfinite(number) else None


def full_json(response: MerchantResponse, with_last: bool = True) -> str:
    """The papers' JSON of a finished answer, totals filled in (ASTP Listing 5).

    `with_last` is off for methods without Element 4, which never see the field.
    """
    left_out = set() if with_last else {"last_trade_context"}
    return to_json(_plain(response.model_dump(exclude_none=True, exclude=left_out)))


def _plain(data: Any) -> Any:
    """The same data, whole amounts as integers."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_plain(value) for value in data]
    return plain_number(data) if isinstance(data, float) else data
