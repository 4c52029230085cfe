"""The measures of the ASTP and SIBP papers, and those of label accuracy, over dialogues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from haggle.rates import Rate, percentiles, share, spread
from haggle.trade.procedure import Procedure, load_procedure
from haggle.trade.records import Dialogue, PlayedTurn, Truth, TurnRecord

HALF_A_CENT = 0.005


def stcr(dialogues: Sequence[Dialogue], procedure: Procedure | None = None) -> Rate:
    """State transition compliance rate (ASTP, State Transition Compliance).

    Of the dialogues that reach a critical state (COMMIT_SALE), the share in which every time was
    preceded by its mandatory state (FINAL_CHECK).
    """
    procedure = procedure or load_procedure()
    critical = {c.state: set(c.only_after) for c in procedure.critical}
    outcomes = []
    for dialogue in dialogues:
        entered = [turn for turn in dialogue.turns if turn.state in critical]
        if entered:
            outcomes.append(all(turn.last in critical[turn.state] for turn in entered))
    return share(outcomes)


def _critical() -> set[str]:
    return {c.state for c in load_procedure().critical}


def _priced(turn: TurnRecord) -> bool:
    details = turn.response.context_details
    return details is not None and details.original_price is not None


def agreed_to(turns: Sequence[PlayedTurn]) -> Rate:
    """Sales that scripted players meant to close. STCR does not see whether they did."""
    critical = _critical()
    return share(t.truth.state in critical for t in turns if t.truth and t.state in critical)


def price_true(turn: TurnRecord) -> bool:
    """The total stated is the sum of the items, and no untrue number is spoken."""
    return not {"price", "numbers"} & set(turn.failed)


def price_accuracy(turns: Sequence[TurnRecord], procedure: Procedure | None = None) -> Rate:
    """Price accuracy (ASTP, Table 2), apart for OFFER_SELL (`offer`) and the others (`others`)."""
    procedure = procedure or load_procedure()
    offers = {name for name, state in procedure.states.items() if state.payload == "cart"}
    states = {name for name, state in procedure.states.items() if state.priced}
    return {
        "offer": share(price_true(t) and _priced(t) for t in turns if t.state in offers),
        "others": share(price_true(t) and _priced(t) for t in turns if t.state in states - offers),
    }


def sirr(turns: Sequence[TurnRecord]) -> Rate:
    """Sellable item response rate (SIBP 4.3): trade answers that carry items, all of them sold."""
    trade = [turn for turn in turns if turn.response.context_type == "TRADE"]
    return share(
        bool(t.response.context_details and t.response.context_details.items)
        and "sellable" not in t.failed
        for t in trade
    )


def transition_counts(dialogues: Sequence[Dialogue]) -> dict[str, dict[str, int]]:
    """How often each state follows each (ASTP, Figure 4); the first row is `Start`."""
    counts = Counter(pair for dialogue in dialogues for pair in dialogue.transitions())
    labels = ["Start", *load_procedure().states]
    return {a: {b: counts[a, b] for b in labels[1:]} for a in labels}


def accuracy(turns: Sequence[PlayedTurn]) -> dict[str, Rate]:
    """State, cart and joint accuracy against what the scripted player really asked for.

    The cart is compared where either side holds one; joint means state and ledger both right.
    `price_goal` is asked of the turns that should haggle: state right, and the price then asked is
    the one that the shop's limits give for the bid understood (to the cent). It is no part of
    joint: where the model sets prices itself another price may be as good an answer. A review that
    the guard renews before it sells is counted apart (`renewals`): the label says a sale.
    """
    procedure = load_procedure()
    judged = [(t, t.truth) for t in turns if t.truth is not None and not renewed(t)]
    carts = [(t, truth) for t, truth in judged if truth.cart or t.cart]
    haggled = [(t, g) for t, g in judged if procedure.states[g.state].payload == "bid"]
    return {
        "state": share(t.state == truth.state for t, truth in judged),
        "cart": share(t.cart == truth.cart for t, truth in carts),
        "joint": share(as_meant(t, truth) for t, truth in judged),
        "price_goal": share(t.state == g.state and _price_as_meant(t, g) for t, g in haggled),
    }


def as_meant(turn: TurnRecord, truth: Truth) -> bool:
    """Whether state and ledger are what the player meant."""
    return turn.state == truth.state and turn.cart == truth.cart


def renewed(turn: TurnRecord) -> bool:
    """Whether a yes that did not follow the review at once was answered with it again."""
    return turn.withheld == "renewed"


def _price_as_meant(turn: TurnRecord, truth: Truth) -> bool:
    """Whether the price asked is the one that the player's bid should have led to."""
    details = turn.response.context_details
    asked = None if details is None else details.sale_price
    if asked is None or truth.price is None:
        return False
    return abs(asked - truth.price) < HALF_A_CENT


def summarize(dialogues: Sequence[Dialogue]) -> dict[str, Any]:
    """Every measure of a set of dialogues, rates with N and 95% interval."""
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    names = {f for t in turns for f in (*t.proposed_failed, *t.failed)}
    return {
        "dialogues": len(dialogues),
        "turns": len(turns),
        "rounds": spread([float(len(d.turns)) for d in dialogues]),
        "reached_commit": share(any(t.state in _critical() for t in d.turns) for d in dialogues),
        "stcr": stcr(dialogues),
        "agreed_to": agreed_to(turns),
        "price_accuracy": price_accuracy(turns),
        "sirr": sirr(turns),
        "valid_json": share(turn.valid_json for turn in turns),
        "inference_consistency": share(
            bool(t.proposed_state) and t.reported_last == t.last for t in turns
        ),
        "accuracy": accuracy(turns),
        "renewals": sum(map(renewed, turns)),
        "by_act": {
            act: accuracy([t for t in turns if t.act == act])["joint"]
            for act in sorted({t.act for t in turns if t.act})
        },
        "completion_tokens": spread([float(t.usage.completion_tokens) for t in turns]),
        "prompt_tokens": spread([float(t.usage.prompt_tokens) for t in turns]),
        "thought_tokens": spread([float(t.usage.thought_tokens) for t in turns]),
        "latency_s": {
            **percentiles([t.latency_s for t in turns]),
            **spread([t.latency_s for t in turns]),
        },
        "proposed_failed": {n: sum(n in t.proposed_failed for t in turns) for n in sorted(names)},
        "failed": {n: sum(n in t.failed for t in turns) for n in sorted(names)},
        "interventions": dict(Counter(i for t in turns for i in t.interventions)),
        "transitions": transition_counts(dialogues),
    }
