"""What a merchant may do in a turn, and the two formats it is written in.

`full` is the JSON of the ASTP paper (Listing 5, `haggle.trade.papers`). `compact` is what small
models speak: the decision first, the spoken line last, no number that code can compute. `stepwise`
is the compact decision alone; the line is a second answer, once the outcome is known. Each is a
`Codec`; nothing outside them asks which one it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, Protocol

from haggle.grammar.json_text import DecodeError, bounded_int, read_object, text_of, to_json
from haggle.grammar.nodes import SPOKEN, Chars, OneOf, Text, Times, joined, number, pattern
from haggle.grammar.values import (
    Choice,
    Either,
    Field,
    Fields,
    Items,
    Label,
    Null,
    Part,
    Phrase,
    Row,
    Spoken,
    Value,
    Whole,
)
from haggle.trade.formula import FORMULA, Formula
from haggle.trade.procedure import Payload, Procedure

WireName = Literal["compact", "stepwise", "full"]
Share = Literal["all", "half"]
Quantity = int | Share
CartLines = tuple[tuple[str, Quantity], ...]  # of an order: names and how many
Step = int | str  # what becomes of a line: a number, "+3", "-3", "+2*3", "x2", "all", "half"
Bid = int | str | None
UNLISTED = "?"
UNLISTED_CHARACTERS = 60
MAX_LINES = 12
MAX_SHOWN = 8

_SHARE = Label(("all", "half"))
_BY = OneOf(
    (
        joined(OneOf((Text("+"), Text("-"))), OneOf((number(4), FORMULA))),
        joined("x", Chars((("2", "9"),))),
    ),
    "by",
)
_OFFER = OneOf(
    (joined(number(2), "%"), joined("-", number(6)), joined(number(6), " each")),
    "offered",
)
QUANTITY = Either((Whole(4), _SHARE, Phrase(FORMULA)), "quantity")
STEP = Either((Whole(4, zero=True), _SHARE, Phrase(FORMULA), Phrase(_BY)), "step")
BID = Either((Null(), Whole(7), Phrase(_OFFER)), "bid")


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
    """The answers that are legal now, said abstractly; `tree` writes them in their format.

    `last` are the labels that may be reported, `states` the states that may be entered,
    `item_names` the inventory. Hashable, so that a compiled grammar can be kept per value.
    """

    wire: WireName
    last: tuple[str, ...]
    states: tuple[StateShape, ...]
    item_names: tuple[str, ...]
    contexts: tuple[tuple[str, str], ...] = ()
    element4: bool = True

    def tree(self) -> Value:
        """All answers that may be given. Raises ValueError without a state or a last label."""
        if not self.states or not self.last:
            raise ValueError("a constraint needs at least one state and one last label")
        return _tree(self)


@lru_cache(maxsize=512)
def _tree(constraint: WireConstraint) -> Value:
    return codec(constraint.wire).tree(constraint)


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
    cart: CartLines | None = None
    change: tuple[tuple[str, Step], ...] | None = None
    show: tuple[str, ...] | None = None
    bid: Bid = None
    stated_original: float | str | None = None
    stated_sale: float | str | None = None
    unit_prices: tuple[float | None, ...] = ()
    extras: dict[str, str] = field(default_factory=dict)


class Codec(Protocol):
    """A format of answers.

    `states_totals`: the model itself writes items, totals and prices. `one_message`: the whole
    dialogue is told to it in one message, with the stock as it is now. `length`: how many times as
    long as a compact answer one may be. `speaks_after`: the line is an answer of its own, with the
    outcome in view. `template`: the file of the system message.
    """

    @property
    def states_totals(self) -> bool: ...

    @property
    def one_message(self) -> bool: ...

    @property
    def length(self) -> int: ...

    @property
    def speaks_after(self) -> bool: ...

    @property
    def template(self) -> str: ...

    def tree(self, constraint: WireConstraint) -> Value:
        """The answers that a constraint allows."""
        ...

    def decode(self, text: str, procedure: Procedure) -> Proposal:
        """The proposal that a text is. Raises DecodeError saying what is wrong with it."""
        ...


def codec(wire: WireName) -> Codec:
    """The format called `wire`."""
    if wire == "compact":
        return Compact()
    if wire == "stepwise":
        return Compact(speaks_after=True, template="stepwise.jinja")
    from haggle.trade.papers import Papers

    return Papers()


@dataclass(frozen=True, slots=True)
class Compact:
    """The compact format: keys in the order last, state, payload, say. A line that comes after the
    outcome is an object of its own, on a line of its own where both are one text."""

    states_totals: bool = False
    one_message: bool = False
    length: int = 1
    speaks_after: bool = False
    template: str = "compact.jinja"

    def tree(self, constraint: WireConstraint) -> Value:
        """The answers that a constraint allows."""
        names = constraint.item_names
        answers = tuple(
            (Field("state", Label((shape.name,))), *_payload(shape, names))
            for shape in constraint.states
        )
        last = Field("last", Label(constraint.last))
        say = () if self.speaks_after else (Field("say", Spoken()),)
        return Fields((last, Choice(answers), *say))

    def decode(self, text: str, procedure: Procedure) -> Proposal:
        """Decode a compact answer."""
        decision, _, said = text.partition("\n") if self.speaks_after else (text, "", "")
        proposal = decode_compact(decision, procedure)
        return replace(proposal, say=text_of(read_object(said), "say")) if said else proposal


def _payload(shape: StateShape, names: tuple[str, ...]) -> tuple[Part, ...]:
    """What an answer carries between its state and its line."""
    if shape.payload == "show":
        shown = Items(Label(names, "item"), 1, MAX_SHOWN) if names else Items(Spoken(), 0, 0)
        return (Field("show", shown),)
    if shape.payload == "cart":
        cart = Field("cart", _lines(names, QUANTITY, "line"))
        change = Field("change", _lines(names, STEP, "changed"))
        return (Choice(((cart,), (change,))),) if shape.may_change else (cart,)
    cleared = Field("cart", Items(Spoken(), 0, 0))
    offered = (Field("bid", BID),) if shape.payload == "bid" else ()
    return (Choice(((), (cleared,))), *offered) if shape.may_clear else offered


def _lines(names: tuple[str, ...], of: Value, rule: str) -> Items:
    words = Times(SPOKEN, 1, UNLISTED_CHARACTERS)
    unlisted = Phrase(joined(UNLISTED, words), joined(UNLISTED, Times(SPOKEN, 1, None)))
    name = Either((Label(names, "item"), unlisted) if names else (unlisted,), "wanted")
    return Items(Row((name, of)), 0, MAX_LINES, rule)


def encode_compact(proposal: Proposal, procedure: Procedure, *, say: bool = True) -> str:
    """The compact text of a proposal; keys in the order last, state, payload, and `say`."""
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
    if say:
        record["say"] = proposal.say
    return to_json(record)


def _told(line: tuple[str, Step]) -> list[Step]:
    """A line of a cart or a change as it is written."""
    name, step = line
    return [name, step.told if isinstance(step, Formula) else step]


def quantity(value: Any) -> Quantity:
    """A number of pieces as models write it. Raises DecodeError where it is none."""
    if value in ("all", "half"):
        return "all" if value == "all" else "half"
    if isinstance(value, str):
        formula = Formula.read(value.strip())
        if formula is not None:
            return formula
        value = bounded_int(value.strip()) if value.strip().isdecimal() else value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DecodeError(f"quantity {value!r} is no whole number")
    return value


def decode_compact(text: str, procedure: Procedure) -> Proposal:
    """Decode a compact answer, with its line or without. Raises DecodeError saying what is wrong
    with it."""
    data = read_object(text)
    if "say" not in data and not text.rstrip().endswith("}"):
        raise DecodeError("cut off within the decision")  # "-10" must not become "-1"
    unknown = set(data) - {"last", "state", "cart", "change", "bid", "show", "say"}
    if unknown:
        raise DecodeError(f"unknown field {sorted(unknown)[0]!r}")
    name = text_of(data, "state")
    if name not in procedure.states:
        raise DecodeError(f"unknown state {name!r}")
    state = procedure.states[name]
    fields: dict[str, Any] = {}
    if state.payload == "cart":
        key = "change" if "change" in data and "cart" not in data else "cart"
        read = _step if key == "change" else quantity
        fields[key] = tuple(_line(key, line, read) for line in _list(data, name, key))
    elif data.get("cart") == [] and state.may_clear:
        fields["cart"] = ()
    if state.payload == "show":
        fields["show"] = tuple(_list(data, name, "show"))
        if not all(isinstance(item, str) for item in fields["show"]):
            raise DecodeError("field 'show' must list item names")
    if state.payload == "bid":
        fields["bid"] = _bid(data.get("bid"))
    return Proposal(
        last=text_of(data, "last", ""), state=name, say=text_of(data, "say", ""), **fields
    )


def _list(data: dict[str, Any], state: str, key: str) -> list[Any]:
    if not isinstance(data.get(key), list):
        raise DecodeError(f"state {state} needs the list {key!r}")
    found: list[Any] = data[key]
    return found


def _line(key: str, line: Any, read: Any) -> tuple[str, Any]:
    if not (isinstance(line, list) and len(line) == 2 and isinstance(line[0], str)):
        what = "what becomes of it" if key == "change" else "quantity"
        raise DecodeError(f"{key} line {line!r} is not [item name, {what}]")
    return line[0], read(line[1])


def _step(value: Any) -> Step:
    if isinstance(value, str) and pattern(_BY).fullmatch(value):
        return value
    return quantity(value)


def is_bid(text: str) -> bool:
    """Whether a text is a bid: `10%` or `-30` less, `30 each`."""
    return pattern(_OFFER).fullmatch(text) is not None


def _bid(bid: Any) -> Bid:
    if isinstance(bid, float):
        bid = round(bid)
    if isinstance(bid, str) and not is_bid(bid):
        raise DecodeError(f"bid {bid!r} is none of: number, 'N%', '-N', 'N each', null")
    if not isinstance(bid, int | str | None) or isinstance(bid, bool):
        raise DecodeError(f"bid {bid!r} is no number")
    return bid
