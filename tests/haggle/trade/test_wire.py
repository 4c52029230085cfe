"""The wire formats: what is written can be read, what cannot be read is refused cleanly."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haggle.core.codec import fits, matches
from haggle.grammar.json_text import LIMIT, DecodeError, is_strict_json, to_json
from haggle.trade.merchant import constraint_for
from haggle.trade.papers import EXTRAS, PAPERS
from haggle.trade.procedure import load_procedure
from haggle.trade.response import ContextDetails, ItemLine, MerchantResponse
from haggle.trade.session import Session
from haggle.trade.wire import (
    MAX_LINES,
    Proposal,
    Quantity,
    StateShape,
    WireConstraint,
    codec,
    decode_compact,
    encode_compact,
)
from haggle.trade.world_io import named_world

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
        ({"state": "OFFER_SELL"}, "'cart' must be a list"),
        (
            {"state": "OFFER_SELL", "cart": [["Axe", "two"]]},
            "must be a whole number or 'all' or 'half' or '3*4', '2+3', not 'two'",
        ),
        ({"state": "OFFER_SELL", "cart": [["Axe", True]]}, "a whole number or 'all' or 'half'"),
        (
            {"state": "OFFER_SELL", "cart": [["Axe"]]},
            "'cart', entry 1 must be [a string, a whole number",
        ),
        ({"state": "OFFER_SELL", "change": "Axe"}, "'change' must be a list"),
        ({"state": "OFFER_SELL", "change": [["Axe"]]}, "'change', entry 1 must be [a string"),
        ({"state": "OFFER_SELL", "change": [["Axe", "x1"]]}, "or '+2', '-2', 'x2', not 'x1'"),
        ({"state": "OFFER_SELL", "change": [["Axe", "+0"]]}, "not '+0'"),
        ({"state": "SHOW_ITEMS", "show": [1]}, "'show', entry 1 must be a string, not 1"),
        (
            {"state": "NEGOTIATE", "bid": "cheap"},
            "'bid' must be null or a whole number or '10%', '-30', '30 each'",
        ),
        ({"state": "NEGOTIATE", "bid": [1]}, "not [1]"),
        ({"state": "NEGOTIATE", "bid": False}, "not False"),
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
    [("compact", "unknown field 'user'"), ("stepwise", "unknown field 'user'"),
     ("full", "field 'context_type' is missing")],
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
    proposal = PAPERS.decode(text, PROCEDURE)
    assert (proposal.state, proposal.cart, proposal.unit_prices) == (
        "OFFER_SELL",
        (("Sharp Axe", 2),),
        (130.0,),
    )
    assert (proposal.stated_original, proposal.stated_sale) == ("__PRICE__", 1260.0)
    shown = PAPERS.decode(full(context_subtype="SHOW_ITEMS", items=AXES), PROCEDURE)
    assert shown.show == ("Sharp Axe",) and shown.cart is None


@st.composite
def responses(draw: st.DrawFn) -> MerchantResponse:
    """A finished answer in any state."""
    name = draw(st.sampled_from(sorted(PROCEDURE.states)))
    state, amounts = PROCEDURE.states[name], st.floats(0, 1e9).map(lambda x: round(x, 2))
    item = st.builds(
        ItemLine, item_id=WORDS, item_name=st.sampled_from(["Axe", "Rope"]),
        quantity=st.integers(1, 9999), price=amounts,
    )  # fmt: skip
    total = st.none() if state.payload == "show" else amounts
    details = st.builds(
        ContextDetails, context_subtype=st.just(name), items=st.lists(item, max_size=MAX_LINES),
        original_price=total, sale_price=total,
    )  # fmt: skip
    return MerchantResponse(
        last_trade_context=draw(LASTS), context_type=state.context,
        context_details=draw(details) if state.context == "TRADE" else None,
        **{key: draw(WORDS) for key in (*EXTRAS, "npc_dialogue")},
    )  # fmt: skip


@given(responses())
def test_what_the_papers_encoder_writes_is_in_its_tree_and_read_again(response):
    text = PAPERS.encode(Proposal("", response.state, ""), PROCEDURE, response)
    shape = StateShape.of(response.state, PROCEDURE.states[response.state])
    context = (response.state, response.context_type)
    last = (response.last_trade_context,)
    assert matches(WireConstraint("full", last, (shape,), ("Axe", "Rope"), (context,)), text)
    details = response.context_details or ContextDetails(context_subtype="")
    shown = shape.payload == "show"
    assert PAPERS.decode(text, PROCEDURE) == Proposal(
        response.last_trade_context, response.state, response.npc_dialogue,
        show=tuple(i.item_name for i in details.items) if shown else None,
        cart=tuple((i.item_name, i.quantity) for i in details.items)
        if response.context_details and not shown else None,
        stated_original=details.original_price, stated_sale=details.sale_price,
        unit_prices=tuple(i.price for i in details.items),
        extras={key: getattr(response, key) for key in EXTRAS},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("SHOW_INVENTORY", "SHOW_ITEMS"), ("NEGOTIATE_PRICE", "NEGOTIATE"),
     ("CHECK_CONFIRMATION", "FINAL_CHECK"), ("CONFIRM_SELL", "COMMIT_SALE")],
)  # fmt: skip
def test_the_labels_of_the_sibp_paper_mean_the_same_states(theirs, ours):
    proposal = PAPERS.decode(full(last=theirs, context_subtype=theirs, items=AXES), PROCEDURE)
    assert (proposal.last, proposal.state) == (ours, ours)


def test_the_sibp_paper_ends_and_chats_under_other_names():
    assert PAPERS.decode(full("NONE"), PROCEDURE).state == "CASUAL"
    assert PAPERS.decode(full("END_CONVERSATION"), PROCEDURE).state == "END"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (full("TRADE"), "needs the object 'context_details'"),
        (full("TRADE", context_subtype="BUY"), "unknown state 'BUY'"),
        (full("TRADE", context_subtype="CASUAL"), "unknown state 'CASUAL'"),
        (full("OFFER_SELL"), "unknown state"),
        (full("TRADE", context_subtype="OFFER_SELL", items=[3]), "list of objects"),
        (
            full("TRADE", context_subtype="OFFER_SELL", items=[{"quantity": "x"}]),
            "'quantity' must be a",
        ),
    ],
)
def test_the_papers_json_is_refused_with_a_reason(text, complaint):
    with pytest.raises(DecodeError) as refused:
        PAPERS.decode(text, PROCEDURE)
    assert complaint in str(refused.value)


@pytest.mark.parametrize("stated", ["inf", "nan", "1e999"])
def test_a_total_that_is_no_amount_is_none(stated):
    text = full(context_subtype="OFFER_SELL", items=AXES, original_price=stated, sale_price=stated)
    proposal = PAPERS.decode(text, PROCEDURE)
    assert proposal.stated_original is None and proposal.stated_sale is None


def test_a_number_that_has_no_end_is_outside_the_language():
    constraint = constraint_for(Session(named_world("frontier_shop")), "schema")
    text = '{"last":"","state":"NEGOTIATE","bid":12,"say":"x"}'
    assert constraint is not None and fits(constraint, text)
    assert not fits(constraint, text.replace("12", "1e999"))
