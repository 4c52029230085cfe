"""Turns of a data set answered with their true history."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data_gen.corpus_io import CORPUS, corpus_rows
from eval.turns import run_turns, sample_turns, turns_of
from haggle.core.errors import HaggleError
from haggle.trade.session import MAX_EXCHANGES, Session
from haggle.trade.world_io import named_world

VOICE = CORPUS / "businesslike.yaml"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "test.jsonl"
    rows = [row for _, row in zip(range(12), corpus_rows(files=[VOICE]), strict=False)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_model_that_knows_every_answer_has_full_marks(memory, dataset, tmp_path):
    metrics = run_turns(dataset, memory(dataset), tmp_path, n=40, progress=False)
    for measure in ("valid_json", "last", "state", "cart", "bid", "joint"):
        assert metrics[measure]["value"] == 1, measure
    assert metrics["n"] == 40 and set(metrics["by"]["teacher"]) == {"corpus"}
    assert sum(part["n"] for part in metrics["by"]["goal_state"].values()) == 40
    assert (tmp_path / "predictions.jsonl").read_text(encoding="utf-8").count("\n") == 40


def test_goods_called_by_another_name_are_a_group_of_their_own(tmp_path):
    order = '{"last":"","state":"OFFER_SELL","cart":[["Hat",1],["?moon",1]],"say":"a"}'
    change = '{"last":"OFFER_SELL","state":"OFFER_SELL","change":[["Hat",0]],"say":"a"}'
    talk = '{"last":"OFFER_SELL","state":"CASUAL","say":"a"}'
    said = [
        ("cart []\nplayer: a hat {Hat} and a moon", order, "yes"),
        ("cart []\nplayer: a lid and a moon", order, "no"),
        ('cart [["Hat",1]] price 5\nplayer: no lid', change, "yes"),
        ("cart []\nplayer: hello", talk, "none"),
    ]
    messages = [{"role": "system", "content": "s"}]
    for line, answer, _ in said:
        messages += [{"role": "user", "content": line}, {"role": "assistant", "content": answer}]
    turns = [{"player": line, "act": "", "state": "CASUAL"} for line, _, _ in said]
    row = {"id": "d", "scenario": "specific_items", "messages": messages, "turns": turns}
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert [turn["linked"] for turn in turns_of(path, "test")] == [kind for _, _, kind in said]


def test_of_a_long_dialogue_the_oldest_rounds_are_left_out_as_in_serving(tmp_path):
    talk = '{"last":"CASUAL","state":"CASUAL","say":"a"}'
    rounds = MAX_EXCHANGES + 3
    messages = [{"role": "system", "content": "s"}]
    for number in range(rounds):
        messages += [
            {"role": "user", "content": f"cart []\nplayer: {number}"},
            {"role": "assistant", "content": talk},
        ]
    turns = [{"player": str(n), "act": "", "state": "CASUAL"} for n in range(rounds)]
    row = {"id": "d", "scenario": "specific_items", "messages": messages, "turns": turns}
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    session = Session(named_world("frontier_shop"))
    for turn in turns_of(path, "test"):
        asked = [message["content"] for message in turn["messages"]]
        sent = session.messages(turn["player"])
        assert len(asked) == len(sent) and asked[0] == "s"
        assert [text.rpartition(" ")[2] for text in asked[1::2]] == [
            message.content.rpartition(" ")[2] for message in sent[1::2]
        ]
        session.record("cart []", turn["player"], talk)


def test_wrong_answers_are_counted(memory, dataset, tmp_path):
    metrics = run_turns(dataset, memory(dataset, worse=4), tmp_path, n=40, progress=False)
    assert metrics["joint"]["passed"] == metrics["valid_json"]["passed"] == 30


def test_an_interrupted_run_goes_on_where_it_stopped(memory, dataset, tmp_path):
    class Dying(memory):  # type: ignore[misc, valid-type]
        def generate(self, requests):
            if self.asked >= 16:
                raise KeyboardInterrupt
            return super().generate(requests)

    with pytest.raises(KeyboardInterrupt):
        run_turns(dataset, Dying(dataset), tmp_path, n=40, progress=False)
    engine = memory(dataset)
    assert run_turns(dataset, engine, tmp_path, n=40, progress=False)["joint"]["value"] == 1
    assert engine.asked == 24


def test_answers_of_another_model_are_not_taken_for_this_ones(memory, dataset, tmp_path):
    run_turns(dataset, memory(dataset, worse=2), tmp_path, n=10, progress=False)
    engine = memory(dataset)
    run_turns(dataset, engine, tmp_path, n=10, progress=False)
    assert engine.asked == 10


def test_the_sample_is_the_seeds_and_has_no_turn_twice(dataset):
    one, two = (sample_turns(dataset, "test", 30, seed) for seed in (1, 2))
    assert one == sample_turns(dataset, "test", 30, 1) and one != two
    assert len({turn["id"] for turn in one}) == 30
    everything = list(turns_of(dataset, "test"))
    assert sample_turns(dataset, "test", 10_000, 0) == everything


def test_a_data_set_without_turns_is_an_error(tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text("", encoding="utf-8")
    with pytest.raises(HaggleError):
        sample_turns(path, "test", 5, 0)
