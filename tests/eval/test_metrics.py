"""The measures, on dialogues small enough to count by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from eval.metrics import (
    accuracy,
    agreed_to,
    price_accuracy,
    sirr,
    stcr,
    summarize,
    transition_counts,
)
from haggle.core.turn import Usage
from haggle.rates import percentiles, rate, spread
from haggle.trade.records import Dialogue, PlayedTurn, Truth
from haggle.trade.response import ContextDetails, ItemLine, MerchantResponse

ITEM = ItemLine(item_id="axe", item_name="Sharp Axe", quantity=1, price=130)
TRADES = {"SHOW_ITEMS", "OFFER_SELL", "NEGOTIATE", "FINAL_CHECK", "COMMIT_SALE"}


def turn(state: str, last: str = "", items: list[ItemLine] | None = None, **fields) -> PlayedTurn:
    details = None
    if state in TRADES:
        price = None if state == "SHOW_ITEMS" else 130.0
        details = ContextDetails(
            context_subtype=state, items=[ITEM] if items is None else items,
            original_price=price, sale_price=price,
        )  # fmt: skip
    kind = "TRADE" if details else state
    response = MerchantResponse(context_type=kind, context_details=details, npc_dialogue="x")
    meant = {key: fields.pop(f"goal_{key}") for key in ("state", "cart", "price")
             if f"goal_{key}" in fields}  # fmt: skip
    truth = Truth(act=fields.pop("act", "greet"), **meant) if "state" in meant else None
    given = {"proposed_state": state, "reported_last": last, "truth": truth} | fields
    return PlayedTurn(player="p", raw="{}", response=response, last=last, state=state, **given)


def dialogue(*turns: PlayedTurn) -> Dialogue:
    return Dialogue(
        id="d", seed=0, scenario="specific_items", world="w", method="m", engine="e", guard="off",
        player="p", turns=list(turns),
    )  # fmt: skip


REVIEWED = dialogue(
    turn("OFFER_SELL"), turn("FINAL_CHECK", "OFFER_SELL"), turn("COMMIT_SALE", "FINAL_CHECK")
)
SKIPPED = dialogue(turn("OFFER_SELL"), turn("COMMIT_SALE", "OFFER_SELL"))
CHATTED = dialogue(
    turn("OFFER_SELL"), turn("FINAL_CHECK", "OFFER_SELL"), turn("CASUAL", "FINAL_CHECK"),
    turn("COMMIT_SALE", "FINAL_CHECK"),
)  # fmt: skip
NO_SALE = dialogue(turn("OFFER_SELL"), turn("END", "OFFER_SELL"))


def test_a_skipped_review_counts_against_compliance_and_a_dialogue_without_sale_not_at_all():
    measured = stcr([REVIEWED, SKIPPED, NO_SALE])
    assert (measured["passed"], measured["n"], measured["value"]) == (1, 2, 0.5)


def test_a_sale_on_small_talk_was_not_agreed_to_though_the_states_are_right():
    meant = turn(
        "COMMIT_SALE", "FINAL_CHECK", goal_state="COMMIT_SALE", goal_cart={}, goal_price=None
    )
    chat = turn("COMMIT_SALE", "FINAL_CHECK", goal_state="CASUAL", goal_cart={}, goal_price=None)
    held = turn(
        "FINAL_CHECK", "FINAL_CHECK", goal_state="COMMIT_SALE", goal_cart={}, goal_price=None
    )
    measured = agreed_to([meant, chat, held, turn("COMMIT_SALE")])
    assert (measured["passed"], measured["n"]) == (1, 2)


def test_small_talk_between_review_and_sale_is_compliant():
    assert stcr([CHATTED])["value"] == 1.0


def test_one_skipped_review_among_two_sales_spoils_the_dialogue():
    twice = dialogue(*REVIEWED.turns, *SKIPPED.turns)
    assert stcr([twice])["value"] == 0.0


@pytest.mark.parametrize(("passed", "n"), [(86, 88), (0, 10), (10, 10), (1, 1), (150, 300)])
def test_intervals_are_wilsons(passed, n):
    z = 1.959963984540054
    p = passed / n
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    seen = rate(passed, n)
    assert (seen["low"], seen["high"]) == pytest.approx((middle - reach, middle + reach), abs=1e-9)
    assert 0 <= seen["low"] <= seen["value"] <= seen["high"] <= 1


def test_an_interval_by_heart():
    assert rate(10, 10)["low"] == pytest.approx(0.7225, abs=1e-4)


def test_without_observations_there_is_no_figure():
    assert rate(0, 0) == {"value": None, "n": 0, "passed": 0, "low": None, "high": None}
    assert stcr([NO_SALE])["value"] is None and stcr([])["n"] == 0
    assert percentiles([]) == {"p50": None, "p95": None}
    assert spread([]) == {"mean": None, "sd": None}
    summary = summarize([])
    assert summary["accuracy"]["joint"]["value"] is None and summary["by_act"] == {}


def test_price_accuracy_tells_offers_from_the_rest_and_leaves_talk_out():
    turns = [
        turn("OFFER_SELL"),
        turn("OFFER_SELL", failed=["price"]),
        turn("NEGOTIATE", "OFFER_SELL", failed=["numbers"]),
        turn("FINAL_CHECK", "NEGOTIATE"),
        turn("COMMIT_SALE", "FINAL_CHECK", failed=["transition", "stock"]),
        turn("CASUAL", failed=["numbers"]),
        turn("SHOW_ITEMS", failed=["numbers"]),
    ]
    measured = price_accuracy(turns)
    assert (measured["offer"]["passed"], measured["offer"]["n"]) == (1, 2)
    assert (measured["others"]["passed"], measured["others"]["n"]) == (2, 3)


def test_an_offer_that_states_no_total_is_not_accurate():
    bare = turn("OFFER_SELL")
    details = bare.response.context_details
    assert details is not None
    silent = details.model_copy(update={"original_price": None})
    bare = bare.model_copy(
        update={"response": bare.response.model_copy(update={"context_details": silent})}
    )
    assert price_accuracy([bare])["offer"]["value"] == 0.0


def test_sirr_fails_an_unsold_item_and_an_answer_without_items_and_skips_talk():
    turns = [
        turn("SHOW_ITEMS"),
        turn("OFFER_SELL", failed=["sellable"]),
        turn("FINAL_CHECK", items=[]),
        turn("CASUAL"),
        turn("END"),
    ]
    measured = sirr(turns)
    assert (measured["passed"], measured["n"]) == (1, 3)


def test_accuracy_compares_state_and_ledger_with_what_the_player_meant():
    turns = [
        turn("OFFER_SELL", cart={"axe": 1}, goal_state="OFFER_SELL", goal_cart={"axe": 1}),
        turn("OFFER_SELL", cart={"axe": 1}, goal_state="OFFER_SELL", goal_cart={"axe": 2}),
        turn("FINAL_CHECK", cart={"axe": 1}, goal_state="NEGOTIATE", goal_cart={"axe": 1}),
        turn("CASUAL", goal_state="CASUAL", goal_cart={}),
        turn("CASUAL"),  # a person: nobody knows what was meant
    ]
    measured = accuracy(turns)
    counts = {name: (r["passed"], r["n"]) for name, r in measured.items()}
    assert counts == {"state": (3, 4), "cart": (2, 3), "joint": (2, 4), "price_goal": (0, 1)}


def test_the_price_haggled_to_is_measured_apart_where_the_player_haggles():
    def haggled(state: str = "NEGOTIATE", **fields) -> PlayedTurn:
        return turn(state, cart={"axe": 1}, goal_cart={"axe": 1}, **fields)

    turns = [
        haggled(goal_state="NEGOTIATE", goal_price=130.0),
        haggled(goal_state="NEGOTIATE", goal_price=130.004),
        haggled(goal_state="NEGOTIATE", goal_price=120.0),  # another bid understood
        haggled("OFFER_SELL", goal_state="NEGOTIATE", goal_price=130.0),  # no haggling at all
        haggled("CASUAL", goal_state="NEGOTIATE", goal_price=130.0),  # no price
        haggled("FINAL_CHECK", goal_state="FINAL_CHECK", goal_price=120.0),  # not asked here
        haggled(),  # a person: nobody knows what was meant
    ]
    measured = accuracy(turns)
    assert (measured["price_goal"]["passed"], measured["price_goal"]["n"]) == (2, 5)
    assert (measured["joint"]["passed"], measured["joint"]["n"]) == (4, 6)
    assert accuracy([turn("CASUAL", goal_state="CASUAL", goal_cart={})])["price_goal"]["n"] == 0


def test_transitions_are_counted_from_start_for_every_pair_of_states():
    counts = transition_counts([REVIEWED, CHATTED])
    assert counts["Start"]["OFFER_SELL"] == 2
    assert counts["FINAL_CHECK"] == dict.fromkeys(counts["FINAL_CHECK"], 0) | {
        "COMMIT_SALE": 1,
        "CASUAL": 1,
    }
    assert counts["CASUAL"]["COMMIT_SALE"] == 1
    assert sum(map(sum, (row.values() for row in counts.values()))) == 7
    assert "Start" not in counts["Start"] and len(counts) == 8


def test_percentiles_and_spread_are_those_of_numpy():
    import numpy as np

    values = [0.3, 0.1, 0.2, 0.9, 0.4, 0.35]
    assert percentiles(values) == pytest.approx(
        {"p50": np.percentile(values, 50), "p95": np.percentile(values, 95)}
    )
    assert percentiles(values, (10, 99)) == pytest.approx(
        {"p10": np.percentile(values, 10), "p99": np.percentile(values, 99)}
    )
    assert spread(values) == pytest.approx({"mean": np.mean(values), "sd": np.std(values, ddof=1)})
    assert spread([2.0]) == {"mean": 2.0, "sd": 0.0}


def test_an_unreadable_answer_infers_no_last_state():
    turns = [turn("CASUAL"), turn("CASUAL", proposed_state="", valid_json=False)]
    measured = summarize([dialogue(*turns)])
    assert measured["inference_consistency"]["value"] == 0.5
    assert measured["valid_json"]["value"] == 0.5


def test_a_summary_counts_turns_with_failures_and_what_code_did():
    turns = [
        turn("CASUAL", proposed_failed=["format"], interventions=["unreadable", "degraded"], act="greet",
             goal_state="CASUAL", goal_cart={}, usage=Usage(completion_tokens=10), latency_s=1.0),
        turn("OFFER_SELL", proposed_failed=["numbers"], failed=["numbers"], act="create",
             goal_state="CASUAL", goal_cart={}, usage=Usage(completion_tokens=30), latency_s=3.0),
    ]  # fmt: skip
    summary = summarize([dialogue(*turns)])
    assert summary["proposed_failed"] == {"format": 1, "numbers": 1}
    assert summary["failed"] == {"format": 0, "numbers": 1}
    assert summary["interventions"] == {"unreadable": 1, "degraded": 1}
    assert {act: r["value"] for act, r in summary["by_act"].items()} == {
        "create": 0.0,
        "greet": 1.0,
    }
    assert summary["completion_tokens"]["mean"] == 20 and summary["latency_s"]["p50"] == 2.0
    assert (summary["dialogues"], summary["turns"], summary["rounds"]["mean"]) == (1, 2, 2.0)
    assert summary["reached_commit"]["value"] == 0.0


def test_a_review_that_is_renewed_is_counted_apart_and_is_no_mistake():
    meant: dict[str, Any] = {"goal_state": "COMMIT_SALE", "goal_cart": {}}
    turns = [
        turn("FINAL_CHECK", "CASUAL", cart={"axe": 1}, withheld="renewed", **meant),
        turn("FINAL_CHECK", "FINAL_CHECK", cart={"axe": 1}, withheld="number", **meant),
        turn("COMMIT_SALE", "FINAL_CHECK", **meant),
    ]
    summary = summarize([dialogue(*turns[:2]), dialogue(turns[2])])
    assert summary["renewals"] == 1
    joint = summary["accuracy"]["joint"]
    assert (joint["passed"], joint["n"]) == (1, 2)
    assert summarize([dialogue(*turns[1:])])["renewals"] == 0
