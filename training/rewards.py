"""Verifiable rewards of one answer: what the right answer's labels and the procedure say of it.

No model judges anything. Each reward looks at one thing and is logged by itself; the sum that a
turn is trained on weighs them (`RewardWeights`). An answer that agrees with the right one in all
that is looked at has the highest sum there is, and any other a lower one, whatever the weights,
as long as they are above 0.

    name    value          what is looked at
    format  0, 1           the whole text is one answer of the compact format, written as it is
                           written there: strict JSON, these keys in this order, nothing else
    last    0, 1           the reported previous state is the true one (ASTP, Property 1.3)
    state   0, 1           the right state
    cart    0, 1           state right, and the cart: written where one is due, else left alone
    bid     0, 1, None     the player's number; None where the right answer has no bid
    spoken  0, 1           amounts by placeholder alone, and those that the state calls for
    sale    -1, -0.5, 0    -1 for a critical state that the procedure forbids behind the true last
                           one: an unconfirmed sale, whatever the answer reports as last (ASTP,
                           Property 1.2); -0.5 for one that it allows and the player did not ask for
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import Field

from haggle.core.config import Record
from haggle.grammar.json_text import DecodeError
from haggle.language.english.numbers import numbers_in
from haggle.trade.agreement import Agreement, agreement
from haggle.trade.placeholders import ALL, ITEMS, PRICE, PRICES, used
from haggle.trade.procedure import Procedure, load_procedure
from haggle.trade.wire import Proposal, decode_compact, encode_compact

_NAMED = re.compile(r"__[A-Z_]+?__")


class RewardWeights(Record):
    """What each reward counts in the sum; 0 leaves one out of it, and in the metrics."""

    format: float = Field(0.5, ge=0)
    last: float = Field(0.5, ge=0)
    state: float = Field(1.0, ge=0)
    cart: float = Field(1.0, ge=0)
    bid: float = Field(0.5, ge=0)
    spoken: float = Field(0.5, ge=0)
    sale: float = Field(2.0, ge=0)


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer beside the right one. `given` is None when it cannot be read."""

    text: str
    right: Proposal
    given: Proposal | None
    agrees: Agreement
    names: tuple[str, ...]
    procedure: Procedure


def judge(answer: str, right: str, names: Sequence[str] = (), line: str = "") -> Judged:
    """Read an answer of the compact format against the right one.

    `names` are those of the shop's items, which may be spoken although they hold digits; `line` is
    the user message, which says what a change of the cart starts from. Raises DecodeError when the
    right answer is unreadable.
    """
    return _judge(answer, right, tuple(names), line)


@lru_cache(maxsize=4096)  # each reward asks for the same one
def _judge(answer: str, right: str, names: tuple[str, ...], line: str) -> Judged:
    procedure = load_procedure()
    given: Proposal | None
    try:
        given = decode_compact(answer, procedure)
    except (DecodeError, RecursionError):
        given = None
    gold = decode_compact(right, procedure)
    if given is None:
        agrees = Agreement(valid=False, last=False, state=False, cart=False, bid=False)
    else:
        agrees = agreement(right, answer, line, procedure)
    return Judged(answer, gold, given, agrees, names, procedure)


def _format(judged: Judged) -> float:
    given = judged.given
    written = None if given is None else encode_compact(given, judged.procedure)
    return float(judged.agrees.valid and written == judged.text)


def _last(judged: Judged) -> float:
    return float(judged.agrees.last)


def _state(judged: Judged) -> float:
    return float(judged.agrees.state)


def _cart(judged: Judged) -> float:
    return float(judged.agrees.joint)


def _bid(judged: Judged) -> float | None:
    if judged.procedure.state(judged.right.state).payload != "bid":
        return None
    return float(bool(judged.agrees.bid))


def _spoken(judged: Judged) -> float:
    given = judged.given
    if given is None or not given.say.strip():
        return 0.0
    state = judged.procedure.state(given.state)
    stated = used(given.say)
    # A sale that is done may be closed without its price.
    due = {PRICE} if state.priced and not state.clears else set()
    shown = state.payload != "show" or stated & {ITEMS, PRICES}
    known = set(_NAMED.findall(given.say)) <= set(ALL)
    line = given.say.casefold()
    for name in sorted(judged.names, key=len, reverse=True):
        line = line.replace(name.casefold(), " ")
    return float(due <= stated and bool(shown) and known and not numbers_in(line))


def _sale(judged: Judged) -> float:
    given, procedure = judged.given, judged.procedure
    if given is None or judged.agrees.state:
        return 0.0
    if procedure.breaks_critical(judged.right.last, given.state):
        return -1.0
    critical = any(rule.state == given.state for rule in procedure.critical)
    return -0.5 if critical else 0.0


REWARDS: dict[str, Callable[[Judged], float | None]] = {
    "format": _format,
    "last": _last,
    "state": _state,
    "cart": _cart,
    "bid": _bid,
    "spoken": _spoken,
    "sale": _sale,
}


def rewards(
    answer: str, right: str, names: Sequence[str] = (), line: str = ""
) -> dict[str, float | None]:
    """Each reward of an answer by its name; None where it has nothing to look at."""
    judged = judge(answer, right, names, line)
    return {name: reward(judged) for name, reward in REWARDS.items()}


def total(
    answer: str,
    right: str,
    names: Sequence[str] = (),
    weights: RewardWeights | None = None,
    line: str = "",
) -> float:
    """The weighed sum of an answer's rewards, as the trainer takes it."""
    counts = (weights or RewardWeights()).model_dump()
    found = rewards(answer, right, names, line)
    return sum(counts[name] * value for name, value in found.items() if value is not None)


def reward_functions() -> list[Callable[..., list[float | None]]]:
    """The rewards as TRL calls them: on all answers of a batch, with the columns of their turns."""
    return [_for_batches(name) for name in REWARDS]


def _for_batches(name: str) -> Callable[..., list[float | None]]:
    def function(
        completions: list[str],
        right: list[str],
        names: list[list[str]],
        line: list[str],
        **_: Any,
    ) -> list[float | None]:
        rows = zip(completions, right, names, line, strict=True)
        return [REWARDS[name](judge(*row)) for row in rows]

    function.__name__ = name  # TRL logs it under this name
    return function
