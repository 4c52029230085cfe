"""How far an answer agrees with the right one: labels compared, not words.

Both are texts of the compact format; nothing but the texts is needed, so the same score serves
training (held-out accuracy), evaluation over data sets and rewards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from haggle.core.domain import Verdict
from haggle.grammar.json_text import DecodeError, is_strict_json
from haggle.trade.edits import whole
from haggle.trade.procedure import Procedure, load_procedure
from haggle.trade.prompting import noted_cart
from haggle.trade.wire import UNLISTED, Proposal, Quantity, decode_compact
from haggle.trade.world import normalise

Lines = dict[str, Quantity]


@dataclass(frozen=True, slots=True)
class Agreement(Verdict):
    """What of an answer is right.

    `cart` and `bid` are None where the right answer carries none. `joint` is state and cart, the
    measure of joint accuracy: whatever the answer carries must be right, not only its state.
    """

    cart: bool | None
    bid: bool | None

    @property
    def joint(self) -> bool:
        """State right, and the cart where there is one."""
        return self.state and self.cart is not False


def agreement(right: str, answer: str, line: str, procedure: Procedure | None = None) -> Agreement:
    """Compare an answer with the right one. Raises DecodeError when the right one is unreadable.

    `line` is the user message that was answered: its ledger note says what a change starts from,
    so that a change and the whole cart it leads to are the same.
    """
    procedure = procedure or load_procedure()
    before = noted_cart(line)
    gold = _settled(decode_compact(right, procedure), before, procedure)
    carries_cart = gold.cart is not None
    carries_bid = procedure.state(gold.state).payload == "bid"
    try:
        given = _settled(decode_compact(answer, procedure), before, procedure)
    except DecodeError:
        return Agreement(
            False, False, False, False if carries_cart else None, False if carries_bid else None
        )
    state = given.state == gold.state
    cart: bool | None
    if carries_cart:
        cart = state and given.cart is not None and _lines(given) == _lines(gold)
    else:
        cart = None if given.cart is None else False  # it would empty the ledger
    return Agreement(
        valid=is_strict_json(answer),
        last=given.last == gold.last,
        state=state,
        cart=cart,
        bid=(state and given.bid == gold.bid) if carries_bid else None,
    )


def _settled(proposal: Proposal, before: Mapping[str, int], procedure: Procedure) -> Proposal:
    """The proposal with its cart whole, and in the state that code makes of it: a cart of nothing
    that is listed is no offer."""
    if procedure.state(proposal.state).payload != "cart":
        return proposal
    cart = whole(before, proposal)
    if cart and not before and all(name.startswith(UNLISTED) for name, _ in cart):
        return replace(proposal, state=procedure.fallback, cart=None, change=None)
    return replace(proposal, cart=cart, change=None)


def _lines(proposal: Proposal) -> Lines:
    """A cart as names and numbers; what is not listed counts as such, however it is worded."""
    lines: Lines = {}
    for name, quantity in proposal.cart or ():
        key = UNLISTED if name.startswith(UNLISTED) else normalise(name)
        lines[key] = 1 if key == UNLISTED else quantity
    return lines
