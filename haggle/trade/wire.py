"""What a merchant may do in a turn, and the two formats it is written in.

`full` is the JSON of the ASTP paper (Listing 5, `haggle.trade.papers`). `compact` is what small
models speak: the decision first, the spoken line last, no number that code can compute. `stepwise`
is the compact decision alone; the line is a second answer, once the outcome is known. `acted` is
`stepwise` with what the player does ahead of the state. Each is a `Codec`; nothing outside them
asks which one it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from haggle.grammar.json_text import DecodeError, read_object, text_of, to_json
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
    read,
    write,
)
from haggle.trade.formula import FORMULA, Formula
from haggle.trade.procedure import Payload, Procedure, State

if TYPE_CHECKING:
    from haggle.trade.response import MerchantResponse

WireName = Literal["compact", "stepwise", "acted", "full"]
Share = Literal["all", "half"]
Quantity = int | Share
CartLines = tuple[tuple[str, Quantity], ...]  # of an order: names and how many
Step = int | str  # what becomes of a line: a number, "+3", "-3", "+2*3", "x2", "all", "half"
Bid = int | str | None
UNLISTED = "?"
UNLISTED_CHARACTERS = 60
# What a player does in a line; who asks something beside it "agree+ask".
ASKABLE = ("order", "change", "agree")
ACTS = ("talk", "look", "ask", *ASKABLE, "clear", "bid", "refuse", "leave")
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
_FORMULA = Phrase(FORMULA, made=Formula, told="'3*4', '2+3'")
_STEPS = Phrase(_BY, told="'+2', '-2', 'x2'")
_OFFERS = Phrase(_OFFER, told="'10%', '-30', '30 each'")
_ACT = Field("act", Label((*ACTS, *(f"{act}+ask" for act in ASKABLE))))
QUANTITY = Either((Whole(4), _SHARE, _FORMULA), "quantity")
STEP = Either((Whole(4, zero=True), _SHARE, _FORMULA, _STEPS), "step")
BID = Either((Null(), Whole(7, amount=True), _OFFERS), "bid")


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

    @classmethod
    def of(cls, name: str, state: State, changes: bool = True) -> StateShape:
        """What an answer in a state of a procedure carries."""
        return cls(name, state.payload, state.may_clear, changes and state.payload == "cart")


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


@dataclass(frozen=True)
class Proposal:
    """What the model proposes for this turn, before code resolves it against the ledger.

    `cart` and `show` name items as the model wrote them; an empty cart empties the ledger's, None
    leaves it. `change` says what becomes of single lines of the ledger's cart, which stands
    otherwise; a proposal has a cart or a change (`haggle.trade.edits` tells one from the other).
    `stated_*` are totals the model itself stated (full format only): a number, the placeholder
    text, or None. `act` is what the player does in the line, where the format says it.
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
    act: str | None = None


@dataclass(frozen=True)
class Codec(ABC):
    """A format of answers.

    `template`: the file of the system message. `length`: how many times as long as a compact answer
    one may be. `states_totals`: the model itself writes items, totals and prices. `one_message`:
    the whole dialogue is told to it in one message, with the stock as it is now. `speaks_after`:
    the line is an answer of its own, with the outcome in view. `acts`: it says what the player
    does.
    """

    template: str
    length: int = 1
    states_totals: bool = False
    one_message: bool = False
    speaks_after: bool = False
    acts: bool = False

    @abstractmethod
    def tree(self, constraint: WireConstraint) -> Fields:
        """The answers that a constraint allows."""

    @abstractmethod
    def decode(self, text: str, procedure: Procedure) -> Proposal:
        """The proposal that a text is. Raises DecodeError saying what is wrong with it."""

    @abstractmethod
    def encode(
        self,
        proposal: Proposal,
        procedure: Procedure,
        response: MerchantResponse | None = None,
        reports: bool = True,
    ) -> str:
        """A finished answer as later turns see it, without its line where that comes after the
        outcome. A method that `reports` asks for the last state (Element 4)."""


def codec(wire: WireName) -> Codec:
    """The format called `wire`."""
    from haggle.trade.papers import PAPERS

    return {"compact": COMPACT, "stepwise": STEPWISE, "acted": ACTED, "full": PAPERS}[wire]


class Compact(Codec):
    """The compact format: keys in the order last, state, payload, say. A line that comes after the
    outcome is an object of its own, on a line of its own where both are one text."""

    def tree(self, constraint: WireConstraint) -> Fields:
        """The answers that a constraint allows."""
        names = constraint.item_names
        answers = tuple(
            (Field("state", Label((shape.name,))), *_payload(shape, names))
            for shape in constraint.states
        )
        last = Field("last", Label(constraint.last, open=True), "")
        act = (_ACT,) if self.acts else ()
        say = () if self.speaks_after else (Field("say", Spoken(), ""),)
        return Fields((last, *act, Choice(answers), *say))

    def decode(self, text: str, procedure: Procedure) -> Proposal:
        """The decision, with its line or without."""
        decision, _, said = text.partition("\n") if self.speaks_after else (text, "", "")
        data = read_object(decision, Proposal.__dataclass_fields__)
        if "say" not in data and not decision.rstrip().endswith("}"):
            raise DecodeError("cut off within the decision")  # "-10" must not become "-1"
        name = text_of(data, "state")
        if name not in procedure.states:
            raise DecodeError(f"unknown state {name!r}")
        form = _form(StateShape.of(name, procedure.states[name]), acts="act" in data)
        proposal = Proposal(**read(form, data))
        return replace(proposal, say=text_of(read_object(said), "say")) if said else proposal

    def encode(
        self,
        proposal: Proposal,
        procedure: Procedure,
        response: MerchantResponse | None = None,
        reports: bool = True,
    ) -> str:
        """The proposal: code can work out the rest again."""
        shape = StateShape.of(proposal.state, procedure.state(proposal.state))
        form = _form(shape, not self.speaks_after, proposal.act is not None)
        return to_json(write(form, vars(proposal)))


COMPACT = Compact("compact.jinja")
STEPWISE = Compact("stepwise.jinja", speaks_after=True)
ACTED = Compact("stepwise.jinja", speaks_after=True, acts=True)
decode_compact, encode_compact = COMPACT.decode, COMPACT.encode


def _payload(shape: StateShape, names: tuple[str, ...]) -> tuple[Part, ...]:
    """What an answer carries between its state and its line."""
    if shape.payload == "show":
        item = Label(names, "item", open=True)
        return (Field("show", Items(item, 1, MAX_SHOWN) if names else Items(Spoken(), 0, 0)),)
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
    listed = Label(names, "item", open=True)
    name = Either((listed, unlisted) if names else (unlisted,), "wanted")
    return Items(Row((name, of)), 0, MAX_LINES, rule)


@lru_cache(maxsize=512)
def _form(shape: StateShape, spoken: bool = True, acts: bool = False) -> Fields:
    """The answers in one state: what is read and written. Labels and goods are left open."""
    form = replace(COMPACT, speaks_after=not spoken, acts=acts)
    return form.tree(WireConstraint("compact", ("",), (shape,), ("",)))


def is_bid(text: str) -> bool:
    """Whether a text is a bid: `10%` or `-30` less, `30 each`."""
    return pattern(_OFFER).fullmatch(text) is not None
