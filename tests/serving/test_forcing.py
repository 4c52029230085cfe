"""Forced text ends where a token ends, and the model decides as it did token by token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

import pytest

from haggle.core.codec import matches, to_node
from haggle.core.config import ROOT
from haggle.grammar.forced import DONE, after
from haggle.grammar.nodes import OneOf, Text, joined
from serving.engines import load_engine, method_of, read_engine_config
from serving.engines.forcing import next_open
from serving.engines.gguf import Vocabulary

WORDS = Vocabulary(["St", "urdy", " ", " R", "Ro", "ope", '"', '":', ":", '":"', "a", "b"])


def test_forced_text_ends_where_no_token_goes_on():
    names = joined("Sturdy ", OneOf((Text("Rope"), Text("Axe"))))
    assert next_open(WORDS, names).text == "Sturdy"  # " R" begins before the choice
    assert next_open(Vocabulary(["Sturdy ", "Rope"]), names).text == "Sturdy "


def test_a_token_that_the_grammar_forbids_does_not_matter():
    key = joined('say":', OneOf((Text("a"), Text("b"))))
    assert next_open(WORDS, key).text == 'say":'  # after `:` no quote may come
    key = joined('say":', OneOf((Text('"a'), Text("b"))))
    assert next_open(WORDS, key).text == "say"


def test_the_end_of_an_answer_is_forced_whole():
    span = next_open(WORDS, Text('":"'))
    assert (span.text, span.grammar) == ('":"', DONE)


def test_tokens_are_counted_by_the_longest_that_fits():
    assert WORDS.count('Sturdy Rope":"') == 5


@pytest.fixture(scope="module")
def engine() -> Iterator:
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    engine = load_engine(read_engine_config("llamacpp"))
    yield engine
    engine.close()


def test_every_token_of_an_answer_stays_whole(engine, constrain):
    grammar = to_node(constrain())
    said = '{"last":"OFFER_SELL","state":"'
    assert next_open(engine.vocabulary, grammar).text == said
    left = after(grammar, said + 'OFFER_SELL","cart":[["Co')
    assert next_open(engine.vocabulary, left).text == "pper Kettle"  # `",` may be one token


@pytest.mark.slow
def test_the_merchant_decides_as_it_did_token_by_token(engine):
    """Of the spoken words nothing is claimed: several are nearly as likely as the first, and
    llama.cpp computes tokens that are read together a little differently (docs/log.md)."""
    from eval.cases import _session, load_cases
    from haggle.trade.merchant import Merchant
    from haggle.trade.world_io import load_worlds

    benchmarks = ROOT / "eval" / "benchmarks"
    worlds = load_worlds(benchmarks / "worlds")
    cases = load_cases(benchmarks / "dev.jsonl", worlds)[::16]
    merchant, method = Merchant(engine, "state"), method_of("llamacpp")
    requests = [
        replace(merchant.request(_session(c, worlds, method, c.id), c.player), scored=True)
        for c in cases
    ]
    filled = engine.generate(requests)
    vocabulary, engine.vocabulary = engine.vocabulary, None
    try:
        written = engine.generate(requests)
    finally:
        engine.vocabulary = vocabulary
    below = read_engine_config("llamacpp").ask_below
    for request, one, other in zip(requests, filled, written, strict=True):
        assert request.constraint is not None
        assert matches(request.constraint, one.text)
        assert one.text.split(',"say":')[0] == other.text.split(',"say":')[0]
        assert abs(one.prompt_tokens - other.prompt_tokens) <= 2
        assert one.probability is not None and other.probability is not None
        assert 0 < one.probability <= 1
        assert (one.probability < below) == (other.probability < below)  # asked about alike
