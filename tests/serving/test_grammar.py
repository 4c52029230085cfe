"""The grammar allows exactly the answers of a turn, in every notation."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haggle.core.codec import matches, to_gbnf, to_lark, to_regex, to_schema
from haggle.grammar.json_text import to_json
from haggle.grammar.nodes import pattern
from haggle.grammar.values import read
from haggle.trade.formula import FORMULA, Formula
from haggle.trade.papers import PAPERS
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import (
    MAX_LINES,
    MAX_SHOWN,
    Proposal,
    StateShape,
    WireConstraint,
    decode_compact,
    encode_compact,
)

PROCEDURE = load_procedure()
FREE = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters='"\\'), min_size=1)
NAME_LISTS = st.lists(FREE.filter(lambda n: len(n) <= 40), min_size=1, max_size=6, unique=True)


def shape(name: str) -> StateShape:
    state = PROCEDURE.state(name)
    return StateShape(name, state.payload, state.may_clear, state.payload == "cart")


def shop(names: list[str], last: str = "") -> WireConstraint:
    states = tuple(shape(name) for name in PROCEDURE.states)
    return WireConstraint("compact", (last,), states, tuple(names))


@st.composite
def turns(draw: st.DrawFn) -> tuple[WireConstraint, Proposal]:
    """A shop and an answer it allows."""
    names = draw(NAME_LISTS)
    last = draw(st.sampled_from(["", *PROCEDURE.tracked]))
    name = draw(st.sampled_from(list(PROCEDURE.states)))
    fields: dict[str, Any] = {}
    listed = st.sampled_from(names)
    payload = PROCEDURE.state(name).payload
    if payload == "show":
        fields["show"] = tuple(draw(st.lists(listed, min_size=1, max_size=MAX_SHOWN)))
    elif payload == "cart":
        wanted = listed | FREE.filter(lambda t: len(t) <= 60).map("?".__add__)
        quantity = st.integers(1, 9999) | st.sampled_from(["all", "half"])
        quantity |= st.from_regex(pattern(FORMULA), fullmatch=True).map(Formula)
        steps = quantity | st.sampled_from(
            [0, "+1", "-12", "+9999", "+3*4", "-99*9", "+2*5+1", "-2+3+4", "x2", "x9"]
        )
        key, number = draw(st.sampled_from([("cart", quantity), ("change", steps)]))
        fields[key] = tuple(draw(st.lists(st.tuples(wanted, number), max_size=MAX_LINES)))
    elif payload == "bid":
        each = st.integers(1, 999_999)
        bids = st.none() | st.integers(1, 9_999_999) | st.integers(1, 99).map("{}%".format)
        fields["bid"] = draw(bids | each.map("-{}".format) | each.map("{} each".format))
    if PROCEDURE.state(name).may_clear and draw(st.booleans()):
        fields["cart"] = ()
    return shop(names, last), Proposal(last=last, state=name, say=draw(FREE), **fields)


@given(turns())
@settings(deadline=None)
def test_whatever_the_encoder_writes_is_in_the_language(turn):
    constraint, proposal = turn
    assert matches(constraint, encode_compact(proposal, PROCEDURE))


@given(turns())
@settings(deadline=None)
def test_the_tree_of_legal_answers_reads_what_the_decoder_reads(turn):
    constraint, proposal = turn
    text = encode_compact(proposal, PROCEDURE)
    found = read(constraint.tree(), json.loads(text), order=list)
    assert found.items() <= vars(proposal).items() and list(found) == list(json.loads(text))


@given(turns(), st.data())
@settings(deadline=None)
def test_a_text_with_one_character_too_many_is_not_json_or_still_an_answer(turn, data):
    constraint, proposal = turn
    text = encode_compact(proposal, PROCEDURE)
    at = data.draw(st.integers(0, len(text)))
    changed = text[:at] + data.draw(st.sampled_from(' \n"\\}]0x')) + text[at:]
    if matches(constraint, changed):
        decoded = decode_compact(changed, PROCEDURE)
        assert encode_compact(decoded, PROCEDURE) == changed


def answer(body: str, last: str = "OFFER_SELL") -> str:
    return f'{{"last":{json.dumps(last)},{body}}}'


GOOD = (
    '"state":"END","say":"Bye."',
    '"state":"CASUAL","cart":[],"say":"Never mind then."',
    '"state":"SHOW_ITEMS","show":["Copper Kettle"],"say":"__PRICES__"',
    '"state":"OFFER_SELL","cart":[],"say":"Nothing at all?"',
    '"state":"OFFER_SELL","cart":[["Waxed Rope (10 m)",9999],["?a moon",1]],"say":"Ü"',
    '"state":"OFFER_SELL","cart":[["?odd name","half"]],"say":"x"',
    '"state":"OFFER_SELL","change":[],"say":"x"',
    '"state":"OFFER_SELL","change":[["Tin Whistle","+2"],["Copper Kettle",0],["?a moon",1]],"say":"x"',
    '"state":"OFFER_SELL","change":[["Tin Whistle","x2"],["Copper Kettle","half"]],"say":"x"',
    '"state":"NEGOTIATE","bid":null,"say":"x"',
    '"state":"NEGOTIATE","bid":"5%","say":"x"',
    '"state":"NEGOTIATE","bid":"-30","say":"x"',
    '"state":"NEGOTIATE","bid":"30 each","say":"x"',
    '"state":"NEGOTIATE","bid":9999999,"say":"x"',
)
BAD = (
    '"state":"COMMIT_SALE","say":"Sold!"',  # not legal here
    '"state":"BUY","say":"x"',
    '"state":"END","say":""',
    '"state":"END","say":"x","say":"y"',
    '"state":"END", "say":"x"',
    '"say":"x","state":"END"',
    '"state":"END","cart":[],"say":"x"',
    '"state":"END","say":"a \\"quote\\""',
    '"state":"END","say":"two\nlines"',
    '"state":"SHOW_ITEMS","show":[],"say":"x"',
    '"state":"SHOW_ITEMS","show":["Copper kettle"],"say":"x"',
    '"state":"SHOW_ITEMS","show":["?odd"],"say":"x"',
    '"state":"SHOW_ITEMS","say":"x"',
    f'"state":"SHOW_ITEMS","show":[{",".join(["<Tin Whistle>"] * (MAX_SHOWN + 1))}],"say":"x"'.replace("<", '"').replace(">", '"'),
    '"state":"OFFER_SELL","cart":[["Moon",1]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["Tin Whistle",0]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["Tin Whistle",01]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["Tin Whistle",10000]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["Tin Whistle",-1]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["Tin Whistle","1"]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["Tin Whistle"]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["?",1]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["?' + "a" * 61 + '",1]],"say":"x"',
    '"state":"OFFER_SELL","change":[["Moon",0]],"say":"x"',
    '"state":"OFFER_SELL","change":[["Tin Whistle","+0"]],"say":"x"',
    '"state":"OFFER_SELL","change":[["Tin Whistle","x1"]],"say":"x"',
    '"state":"OFFER_SELL","change":[["Tin Whistle","x2*3"]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["Tin Whistle","0*3"]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["Tin Whistle","1000*2"]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["Tin Whistle","+2*3"]],"say":"x"',
    '"state":"OFFER_SELL","change":[["Tin Whistle",-1]],"say":"x"',
    '"state":"OFFER_SELL","cart":[["Tin Whistle","+2"]],"say":"x"',
    '"state":"OFFER_SELL","cart":[],"change":[],"say":"x"',
    '"state":"CASUAL","change":[],"say":"x"',
    '"state":"NEGOTIATE","bid":0,"say":"x"',
    '"state":"NEGOTIATE","bid":1.5,"say":"x"',
    '"state":"NEGOTIATE","bid":"100%","say":"x"',
    '"state":"NEGOTIATE","bid":"cheap","say":"x"',
    '"state":"NEGOTIATE","say":"x"',
)  # fmt: skip
LEGAL = ("CASUAL", "END", "SHOW_ITEMS", "OFFER_SELL", "NEGOTIATE", "FINAL_CHECK")


@cache
def byte_tokenizer() -> Any:
    return pytest.importorskip("llguidance").LLTokenizer("byte")


def accepted(notation: str, grammar: str, text: str) -> bool:
    """Whether llguidance, reading that notation, accepts the whole text byte by byte."""
    import llguidance

    matcher = llguidance.LLMatcher(
        byte_tokenizer(), llguidance.grammar_from(notation, grammar), log_level=0
    )
    assert not matcher.get_error(), matcher.get_error()
    data = list(text.encode())
    return bool(matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting())


@pytest.mark.parametrize("body", GOOD)
def test_every_notation_accepts_a_legal_answer(constrain, body):
    constraint = constrain(*LEGAL)
    assert matches(constraint, answer(body))
    assert matches(constraint, answer(body), bounded=False)
    assert accepted("regex", to_regex(constraint), answer(body))
    assert accepted("gbnf", to_gbnf(constraint), answer(body))
    assert accepted("lark", to_lark(constraint), answer(body))


@pytest.mark.parametrize("body", BAD)
def test_every_notation_refuses_an_illegal_answer(constrain, body):
    constraint = constrain(*LEGAL)
    assert not matches(constraint, answer(body))
    assert not accepted("regex", to_regex(constraint), answer(body))
    assert not accepted("gbnf", to_gbnf(constraint), answer(body))
    assert not accepted("lark", to_lark(constraint), answer(body))


@pytest.mark.parametrize("text", ["{0} ", " {0}", "{0}\n", "{0}{0}", "{0}x", "```{0}```", ""])
def test_nothing_may_stand_around_the_answer(constrain, text):
    constraint = constrain(*LEGAL)
    assert not matches(constraint, text.replace("{0}", answer(GOOD[0])))


def test_another_last_label_than_the_true_one_is_refused(constrain):
    assert not matches(constrain("END"), answer(GOOD[0], last="FINAL_CHECK"))
    free = constrain("END", last=("", "OFFER_SELL"))
    assert matches(free, answer(GOOD[0], last=""))


@given(turns())
@settings(deadline=None, max_examples=25)
def test_the_notations_agree_on_random_shops(turn):
    constraint, proposal = turn
    text = encode_compact(proposal, PROCEDURE)
    assert accepted("gbnf", to_gbnf(constraint), text)
    assert accepted("lark", to_lark(constraint), text)
    other = replace(constraint, states=tuple(s for s in constraint.states if s.name != "END"))
    assert accepted("gbnf", to_gbnf(other), text) == (proposal.state != "END")


def test_the_unbounded_language_holds_the_bounded_one_and_longer_lists(constrain):
    constraint = constrain(*LEGAL)
    shown = ",".join(['"Tin Whistle"'] * (MAX_SHOWN + 1))
    long = answer(f'"state":"SHOW_ITEMS","show":[{shown}],"say":"x"')
    assert matches(constraint, long, bounded=False)
    assert not matches(constraint, long)


def test_a_shop_sold_out_can_still_talk(constrain):
    constraint = constrain("OFFER_SELL", "END", item_names=())
    assert matches(constraint, answer(GOOD[0]))
    assert matches(constraint, answer('"state":"OFFER_SELL","cart":[["?a moon",1]],"say":"x"'))
    assert not matches(constraint, answer('"state":"OFFER_SELL","cart":[["Moon",1]],"say":"x"'))


def test_a_constraint_without_states_is_a_mistake(constrain):
    with pytest.raises(ValueError, match="at least one state"):
        to_regex(replace(constrain("END"), states=()))
    with pytest.raises(ValueError, match="compact"):
        to_gbnf(constrain("END", wire="full"))


def test_the_regex_stays_in_the_dialect_rust_and_python_share(constrain):
    pattern = to_regex(constrain(*LEGAL))
    assert re.compile(pattern).groups == 0
    assert not re.search(r"\\[dwsbDWSB]|\(\?[^:]|\\ ", pattern)


TRADE = {
    "last_trade_context": "OFFER_SELL",
    "context_reason": 'wants "it"',
    "context_type": "TRADE",
    "context_details": {
        "context_subtype": "NEGOTIATE",
        "items": [{"item_id": "a", "item_name": "Tin Whistle", "quantity": 3, "price": 1.5}],
        "original_price": "__PRICE__",
        "sale_price": 4,
    },
    "npc_thoughts": "",
    "npc_action": "I nod.",
    "npc_dialogue": "Four it is.",
}
CASUAL = {key: TRADE[key] for key in TRADE if key != "context_details"} | {"context_type": "CASUAL"}


def test_full_answers_have_details_for_trade_only(constrain):
    constraint = constrain(*LEGAL, wire="full")
    assert matches(constraint, to_json(TRADE))
    assert matches(constraint, json.dumps(CASUAL, indent=1))
    assert PAPERS.decode(to_json(TRADE), PROCEDURE).state == "NEGOTIATE"
    assert not matches(constraint, to_json(TRADE | {"context_type": "CASUAL"}))
    assert not matches(constraint, to_json(CASUAL | {"context_type": "TRADE"}))


@pytest.mark.parametrize(
    "change",
    [
        {"context_subtype": "COMMIT_SALE"},
        {"items": [TRADE["context_details"]["items"][0] | {"item_name": "Moon"}]},  # type: ignore[index]
        {"items": [TRADE["context_details"]["items"][0] | {"quantity": 0}]},  # type: ignore[index]
        {"items": [{"item_name": "Tin Whistle"}]},
        {"original_price": "cheap"},
        {"tip": 3},
    ],
)
def test_full_answers_keep_to_state_inventory_and_fields(constrain, change):
    constraint = constrain(*LEGAL, wire="full")
    details = TRADE["context_details"] | change  # type: ignore[operator]
    assert not matches(constraint, to_json(TRADE | {"context_details": details}))


def test_full_answers_report_the_last_state_only_with_element_4(constrain):
    constraint = constrain(*LEGAL, wire="full", element4=False)
    without = {key: value for key, value in TRADE.items() if key != "last_trade_context"}
    assert matches(constraint, to_json(without))
    assert not matches(constraint, to_json(TRADE))


def test_full_keys_come_in_the_papers_order(constrain):
    constraint = constrain(*LEGAL, wire="full")
    assert not matches(constraint, to_json(dict(reversed(TRADE.items()))))
    assert not accepted("lark", to_lark(constraint), to_json(dict(reversed(TRADE.items()))))


def test_every_backend_reads_the_schema(constrain):
    constraint = constrain(*LEGAL, wire="full")
    assert accepted("lark", to_lark(constraint), to_json(TRADE))
    core = pytest.importorskip("outlines_core.json_schema")
    pattern = core.build_regex_from_schema(json.dumps(to_schema(constraint)))
    assert re.fullmatch(pattern, to_json(TRADE))
    assert re.fullmatch(pattern, to_json(CASUAL))
    assert not re.fullmatch(pattern, to_json(TRADE | {"context_type": "CASUAL"}))
