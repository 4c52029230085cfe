"""The JSON Schema for remote endpoints allows what the grammar allows, as far as a schema can."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from haggle.core.codec import fits, matches, to_schema
from haggle.grammar.json_text import to_json

CARTS = [
    [],
    [["Copper Kettle", 4]],
    [["Copper Kettle", "all"], ["?elven sword", 1], ["Sœur's Salve [x]", "half"]],
    [["Copper Kettle", "3*4"], ["Tin Whistle", "999*999"]],
]
CHANGES = [
    [],
    [["Copper Kettle", 0], ["?elven sword", 1]],
    [["Copper Kettle", "+12"], ["Tin Whistle", "-1"], ["Sœur's Salve [x]", "x2"]],
    [["Copper Kettle", "2*10"], ["Tin Whistle", "+3*4"], ["?elven sword", "-2*3"]],
]
BIDS = [None, 1, 9_999_999, "1%", "10%", "-30", "30 each"]
RIGHT = [
    {"last": "OFFER_SELL", "state": "CASUAL", "say": "Hello."},
    {"last": "OFFER_SELL", "state": "CASUAL", "cart": [], "say": "All put back."},
    {"last": "OFFER_SELL", "state": "SHOW_ITEMS", "show": ["Tin Whistle"], "say": "Look."},
    {"last": "OFFER_SELL", "state": "FINAL_CHECK", "say": "So __CART__?"},
    {"last": "OFFER_SELL", "state": "COMMIT_SALE", "say": "Yours."},
    *({"last": "OFFER_SELL", "state": "OFFER_SELL", "cart": c, "say": "Fine."} for c in CARTS),
    *({"last": "OFFER_SELL", "state": "OFFER_SELL", "change": c, "say": "Fine."} for c in CHANGES),
    *({"last": "OFFER_SELL", "state": "NEGOTIATE", "bid": b, "say": "Hm."} for b in BIDS),
]
WRONG = [
    {"last": "NEGOTIATE", "state": "END", "say": "Bye."},
    {"last": "OFFER_SELL", "state": "HAGGLE", "say": "Bye."},
    {"last": "OFFER_SELL", "state": "END"},
    {"last": "OFFER_SELL", "state": "END", "say": "Bye.", "mood": "sad"},
    {"last": "OFFER_SELL", "state": "END", "show": ["Tin Whistle"], "say": "Bye."},
    {"last": "OFFER_SELL", "state": "CASUAL", "cart": [["Copper Kettle", 1]], "say": "x"},
    {"last": "OFFER_SELL", "state": "SHOW_ITEMS", "show": ["Lute"], "say": "Look."},
    {"last": "OFFER_SELL", "state": "SHOW_ITEMS", "show": [], "say": "Look."},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "say": "Fine."},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "cart": [["Lute", 1]], "say": "Fine."},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "cart": [["?", 1]], "say": "Fine."},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "cart": [["Copper Kettle"]], "say": "Fine."},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "cart": [["Copper Kettle", 0]], "say": "x"},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "cart": [["Copper Kettle", "3"]], "say": "x"},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "change": [["Copper Kettle", "x1"]], "say": "x"},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "change": [["Lute", 0]], "say": "x"},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "cart": [["Copper Kettle", "+3"]], "say": "x"},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "cart": [["Copper Kettle", "+3*2"]], "say": "x"},
    {"last": "OFFER_SELL", "state": "OFFER_SELL", "cart": [["Copper Kettle", "3*0"]], "say": "x"},
    {"last": "OFFER_SELL", "state": "NEGOTIATE", "bid": "0%", "say": "Hm."},
    {"last": "OFFER_SELL", "state": "NEGOTIATE", "bid": "cheap", "say": "Hm."},
    {"last": "OFFER_SELL", "state": "NEGOTIATE", "bid": 0, "say": "Hm."},
]


@pytest.mark.parametrize("answer", RIGHT, ids=to_json)
def test_an_answer_of_the_grammar_keeps_the_schema(constrain, answer):
    assert matches(constrain(), to_json(answer))
    assert fits(constrain(), to_json(answer))
    assert fits(constrain(), json.dumps(answer, indent=2))


@pytest.mark.parametrize("answer", WRONG, ids=to_json)
def test_an_answer_outside_the_grammar_breaks_the_schema(constrain, answer):
    assert not matches(constrain(), to_json(answer))
    assert not fits(constrain(), to_json(answer))


def test_what_is_no_json_breaks_it_too(constrain):
    for text in ("", "Bye.", '{"last":"', "[" * 100_000, '```json\n{"last":""}\n```'):
        assert not fits(constrain("END"), text)


@pytest.mark.parametrize("wire", ["compact", "full"])
@pytest.mark.parametrize("names", [(), ("Copper Kettle",)])
def test_a_schema_is_valid_closed_and_requires_every_key_in_order(constrain, wire, names):
    schema = to_schema(constrain(wire=wire, item_names=names))
    Draft202012Validator.check_schema(schema)
    for answer in schema["anyOf"]:
        assert answer["required"] == list(answer["properties"])
        assert answer["additionalProperties"] is False


def test_one_state_needs_no_alternatives(constrain):
    assert to_schema(constrain("FINAL_CHECK"))["type"] == "object"


def test_an_empty_constraint_is_refused(constrain):
    with pytest.raises(ValueError, match="at least one state"):
        to_schema(constrain(states=()))


@pytest.mark.parametrize("wire", ["compact", "full"])
def test_llama_cpp_can_compile_the_schema(constrain, wire):
    xllamacpp = pytest.importorskip("xllamacpp")
    assert xllamacpp.json_schema_to_grammar(to_schema(constrain(wire=wire)))


def test_llguidance_can_compile_the_schema(constrain):
    llguidance = pytest.importorskip("llguidance")
    for wire in ("compact", "full"):
        grammar = llguidance.LLMatcher.grammar_from_json_schema(to_schema(constrain(wire=wire)))
        error = llguidance.LLMatcher.validate_grammar(grammar)
        assert not error
