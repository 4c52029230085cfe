"""The wire formats: what is written can be read, what cannot be read is refused cleanly."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haggle.grammar.json_text import LIMIT, DecodeError, is_strict_json, to_json
from haggle.trade.papers import decode_full
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import (
    Proposal,
    Quantity,
    codec,
    decode_compact,
    encode_compact,
)

PROCEDURE = load_procedure()
LASTS = st.sampled_from(["", *PROCEDURE.tracked])
WORDS = st.text(st.characters(exclude_categories=["Cs"]))
QUANTITIES: st.SearchStrategy[Quantity] = st.one_of(
    st.integers(-9, 10**9), st.sampled_from(["all", "half"])
)
LINES = st.lists(st.tuples(WORDS, QUANTITIES)).map(tuple)
STEPS = QUANTITIES | st.sampled_from(["+2", "-15", "x2", "x9"])
CHANGES = st.lists(st.tuples(WORDS, STEPS)).map(tuple)
BIDS = st.one_of(
    st.none(),
    st.integers(-(10**9), 10**9),
    st.integers(1, 99).map(lambda n: f"{n}%"),
    st.integers(1, 999_999).map(lambda n: f"-{n}"),
    st.integers(1, 999_999).map(lambda n: f"{n} each"),
)


@st.composite
def proposals(draw: st.DrawFn) -> Proposal:
    name = draw(st.sampled_from(sorted(PROCEDURE.states)))
    state = PROCEDURE.states[name]
    changed = state.payload == "cart" and draw(st.booleans())
    cart = draw(LINES) if state.payload == "cart" and not changed else None
    if state.may_clear and draw(st.booleans()):
        cart = ()
    return Proposal(
        last=draw(LASTS), state=name, say=draw(WORDS), cart=cart,
        change=draw(CHANGES) if changed else None,
        show=draw(st.lists(WORDS).map(tuple)) if state.payload == "show" else None,
        bid=draw(BIDS) if state.payload == "bid" else None,
    )  # fmt: skip


@given(proposals())
def test_what_is_encoded_decodes_to_the_same(proposal):
    text = encode_compact(proposal, PROCEDURE)
    assert decode_compact(text, PROCEDURE) == proposal
    assert is_strict_json(text)


@given(proposals())
def test_keys_stand_in_one_order_and_say_comes_last(proposal):
    keys = list(json.loads(encode_compact(proposal, PROCEDURE)))
    assert keys[:2] == ["last", "state"] and keys[-1] == "say" and len(keys) <= 4


@given(proposals(), st.data())
def test_a_text_cut_off_is_salvaged_in_its_last_string_or_refused(proposal, data):
    text = encode_compact(proposal, PROCEDURE)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    try:
        salvaged = decode_compact(cut, PROCEDURE)
    except DecodeError:
        return
    # Nothing but the spoken line may differ from what was meant.
    assert replace(salvaged, say="") == replace(proposal, say="")
    assert proposal.say.startswith(salvaged.say.removesuffix("�")) and not is_strict_json(cut)


def test_a_bid_cut_off_is_no_bid():
    with pytest.raises(DecodeError, match="cut off"):
        decode_compact('{"last":"OFFER_SELL","state":"NEGOTIATE","bid":"-1', PROCEDURE)


def test_a_line_cut_off_by_the_token_limit_is_still_an_answer():
    cut = '{"last":"","state":"CASUAL","say":"Well, let me te'
    assert decode_compact(cut, PROCEDURE).say == "Well, let me te"
    assert not is_strict_json(cut)


@given(st.text())
def test_any_text_at_all_is_read_or_refused(text):
    for wire in ("compact", "full"):
        try:
            codec(wire).decode(text, PROCEDURE)
        except DecodeError as error:
            assert str(error)


def test_text_around_the_object_is_ignored_but_is_no_valid_json():
    text = 'Sure! {"last":"","state":"CASUAL","say":"hi"} Anything else?'
    assert decode_compact(text, PROCEDURE).say == "hi"
    assert not is_strict_json(text)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"state": "BUY"}, "unknown state 'BUY'"),
        ({"mood": "good"}, "unknown field 'mood'"),
        ({"state": "OFFER_SELL"}, "needs the list 'cart'"),
        ({"state": "OFFER_SELL", "cart": [["Axe", "two"]]}, "'two' is no whole number"),
        ({"state": "OFFER_SELL", "cart": [["Axe", True]]}, "is no whole number"),
        ({"state": "OFFER_SELL", "cart": [["Axe"]]}, "is not [item name, quantity]"),
        ({"state": "OFFER_SELL", "change": "Axe"}, "needs the list 'change'"),
        ({"state": "OFFER_SELL", "change": [["Axe"]]}, "is not [item name, what becomes of it]"),
        ({"state": "OFFER_SELL", "change": [["Axe", "x1"]]}, "'x1' is no whole number"),
        ({"state": "OFFER_SELL", "change": [["Axe", "+0"]]}, "'+0' is no whole number"),
        ({"state": "SHOW_ITEMS", "show": [1]}, "must list item names"),
        ({"state": "NEGOTIATE", "bid": "cheap"}, "bid 'cheap' is none of"),
        ({"state": "NEGOTIATE", "bid": [1]}, "is no number"),
        ({"state": "NEGOTIATE", "bid": False}, "is no number"),
        ({"say": 4}, "'say' must be a string"),
        ({"last": None}, "'last' must be a string"),
    ],
)
def test_a_refusal_says_what_is_wrong(fields, complaint):
    record = {"last": "", "state": "CASUAL", "say": "x"} | fields
    with pytest.raises(DecodeError) as refused:
        decode_compact(to_json(record), PROCEDURE)
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("wire", "complaint"),
    [("compact", "unknown field 'act'"), ("stepwise", "unknown field 'act'"),
     ("full", "field 'context_type' must be a string")],
)  # fmt: skip
def test_an_action_of_another_domain_is_no_proposal(wire, complaint):
    step = '{"user":"Greeting","act":"AskName","say":"Your name?"}'
    with pytest.raises(DecodeError, match=complaint):
        codec(wire).decode(step, PROCEDURE)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(number):
    text = f'{{"last":"","state":"NEGOTIATE","bid":{number},"say":"x"}}'
    with pytest.raises(DecodeError, match="is no number"):
        decode_compact(text, PROCEDURE)
    assert not is_strict_json(text)


@pytest.mark.parametrize("number", ["1e999", "9" * 5000, "123456789012345678901"])
def test_a_number_beyond_all_measure_is_bounded(number):
    text = f'{{"last":"","state":"NEGOTIATE","bid":{number},"say":"x"}}'
    assert decode_compact(text, PROCEDURE).bid == LIMIT
    assert decode_compact(text.replace(number, f"-{number}"), PROCEDURE).bid == -LIMIT


def test_quantities_as_small_models_write_them_are_understood():
    record = {
        "last": "",
        "state": "OFFER_SELL",
        "cart": [["A", "3"], ["B", 2.0], ["C", "all"]],
        "say": "",
    }
    assert decode_compact(to_json(record), PROCEDURE).cart == (("A", 3), ("B", 2), ("C", "all"))


def full(kind: str = "TRADE", last: str = "", **details: object) -> str:
    record: dict[str, object] = {
        "last_trade_context": last,
        "context_type": kind,
        "npc_dialogue": "Well.",
    }
    if details:
        record["context_details"] = details
    return to_json(record)


AXES = [{"item_id": "axe", "item_name": "Sharp Axe", "quantity": 2, "price": 130}]


def test_the_papers_json_carries_items_and_the_totals_the_model_stated():
    text = full(
        context_subtype="OFFER_SELL", items=AXES, original_price="__PRICE__", sale_price="1,260"
    )
    proposal = decode_full(text, PROCEDURE)
    assert (proposal.state, proposal.cart, proposal.unit_prices) == (
        "OFFER_SELL",
        (("Sharp Axe", 2),),
        (130.0,),
    )
    assert (proposal.stated_original, proposal.stated_sale) == ("__PRICE__", 1260.0)
    shown = decode_full(full(context_subtype="SHOW_ITEMS", items=AXES), PROCEDURE)
    assert shown.show == ("Sharp Axe",) and shown.cart is None


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("SHOW_INVENTORY", "SHOW_ITEMS"), ("NEGOTIATE_PRICE", "NEGOTIATE"),
     ("CHECK_CONFIRMATION", "FINAL_CHECK"), ("CONFIRM_SELL", "COMMIT_SALE")],
)  # fmt: skip
def test_the_labels_of_the_sibp_paper_mean_the_same_states(theirs, ours):
    proposal = decode_full(full(last=theirs, context_subtype=theirs, items=AXES), PROCEDURE)
    assert (proposal.last, proposal.state) == (ours, ours)


def test_the_sibp_paper_ends_and_chats_under_other_names():
    assert decode_full(full("NONE"), PROCEDURE).state == "CASUAL"
    assert decode_full(full("END_CONVERSATION"), PROCEDURE).state == "END"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (full("TRADE"), "needs the object 'context_details'"),
        (full("TRADE", context_subtype="BUY"), "unknown state 'BUY'"),
        (full("TRADE", context_subtype="CASUAL"), "unknown state 'CASUAL'"),
        (full("OFFER_SELL"), "unknown state"),
        (full("TRADE", context_subtype="OFFER_SELL", items=[3]), "list of objects"),
        (full("TRADE", context_subtype="OFFER_SELL", items=[{"quantity": "x"}]), "no whole number"),
    ],
)
def test_the_papers_json_is_refused_with_a_reason(text, complaint):
    with pytest.raises(DecodeError) as refused:
        decode_full(text, PROCEDURE)
    assert complaint in str(refused.value)


@pytest.mark.parametrize("stated", ["inf", "nan", "1e999"])
def test_a_total_that_is_no_amount_is_none(stated):
    text = full(context_subtype="OFFER_SELL", items=AXES, original_price=stated, sale_price=stated)
    proposal = decode_full(text, PROCEDURE)
    assert proposal.stated_original is None and proposal.stated_sale is None
