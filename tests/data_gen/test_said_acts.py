"""What a player does, said in front of the decision by the format `acted`."""

import json

import pytest

from data_gen.config import DataConfig
from data_gen.corpus_io import CORPUS, corpus_rows
from data_gen.sources import make_dialogue, to_row
from haggle.core.codec import fits
from haggle.dataset import decisions
from haggle.trade.merchant import constraint_for
from haggle.trade.methods import get_method
from haggle.trade.replay import PastExchange, replay
from haggle.trade.session import Session
from haggle.trade.wire import ACTS
from haggle.trade.world_io import named_world


def told(row):
    """Act and decision of each answer of a row."""
    found = [json.loads(row["messages"][at]["content"]) for at in decisions(row["messages"])]
    assert all(list(answer)[:3] == ["last", "act", "state"] for answer in found)
    return [(answer["act"], answer["state"]) for answer in found]


def test_scripted_players_say_what_they_mean():
    config = DataConfig(seed=3, method="astp-acted", slips=0.3, questions=0.3)
    rows = [to_row(*make_dialogue(config, "train", number)) for number in range(12)]
    found = {pair for row in rows for pair in told(row)}
    assert {("order", "OFFER_SELL"), ("agree", "FINAL_CHECK"), ("ask", "SHOW_ITEMS")} <= found
    assert {act.removesuffix("+ask") for act, _ in found} <= set(ACTS)


def test_of_typed_lines_the_right_decision_says_it():
    rows = corpus_rows(files=[CORPUS / "walk_in_c.yaml"], method="astp-acted")
    found = {pair for row in rows for pair in told(row)}
    assert ("change", "OFFER_SELL") in found and ("agree", "COMMIT_SALE") in found
    assert ("look", "SHOW_ITEMS") in found and ("bid", "NEGOTIATE") in found


def test_other_formats_do_not_say_it():
    row = next(corpus_rows(files=[CORPUS / "walk_in_c.yaml"], method="astp-stepwise"))
    assert not any('"act"' in message["content"] for message in row["messages"])


@pytest.mark.parametrize(("name", "legal"), [("astp-acted", True), ("astp-stepwise", False)])
def test_the_act_must_be_decoded_where_the_format_has_it(name, legal):
    session = Session(named_world("frontier_shop"), method=get_method(name))
    constraint = constraint_for(session, "state")
    assert constraint is not None
    assert fits(constraint, '{"last":"","act":"talk","state":"CASUAL"}') is legal
    assert fits(constraint, '{"last":"","state":"CASUAL"}') is not legal
    assert not fits(constraint, '{"last":"","act":"dance","state":"CASUAL"}')


def test_an_earlier_conversation_that_is_taken_over_says_it_too():
    session = Session(named_world("frontier_shop"), method=get_method("astp-acted"))
    told = {"npc_dialogue": "Good day.", "context_type": "CASUAL"}
    replay(session, PastExchange.model_validate({"player": "hello there", "npc": told}))
    assert json.loads(session.exchanges[0].answer)["act"] == "talk"
