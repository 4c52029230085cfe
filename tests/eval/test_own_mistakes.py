"""Preference pairs from a model's own wrong answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from data_gen.corpus_io import corpus_rows
from data_gen.language.phrasebook import Split
from eval.own_mistakes import make_own_pairs
from eval.turns import run_turns, turns_of
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import decode_compact
from training.pairs import read_pairs


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    counts: dict[Split, int] = {"train": 12, "test": 4}
    for split, count in counts.items():
        rows = [row for _, row in zip(range(count), corpus_rows(split), strict=False)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{split}.jsonl").write_text(text, encoding="utf-8")
    return folder


def mistaken(right: str) -> str:
    """Offers get another cart and another line, reviews another state, bids are passed over."""
    answer = json.loads(right)
    if "cart" in answer or "change" in answer:
        answer.pop("change", None)
        answer["cart"] = [["?moon", 1], *answer.get("cart", [])[1:]]
        answer["say"] = "So be it: __CART__."
    elif answer["state"] == "FINAL_CHECK":
        answer["state"] = "CASUAL"
    return json.dumps(answer, separators=(",", ":"))


@pytest.fixture(scope="module")
def answered(memory, dataset, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("answers")
    engine = memory(dataset, split="train", spoil=mistaken)
    run_turns(dataset, engine, out, split="train", n=60, progress=False)
    return out


def test_each_wrong_answer_makes_a_pair_that_training_takes(dataset, answered, tmp_path):
    summary = make_own_pairs(answered, dataset, tmp_path)
    lines = (answered / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    wrong = [r for r in map(json.loads, lines) if not r["joint"] or r["bid"] is False]
    pairs = read_pairs(tmp_path)
    assert len(pairs) == len(wrong) == summary["splits"]["train"]["pairs"] > 10
    assert [pair.chosen for pair in pairs] == [record["right"] for record in wrong]
    assert {"state", "cart"} <= set(summary["splits"]["train"]["variants"])
    turns = {(turn["right"], str(turn["messages"])) for turn in turns_of(dataset, "train")}
    assert all((pair.chosen, str(pair.prompt)) in turns for pair in pairs)


def test_where_only_the_cart_is_wrong_both_answers_say_the_same(dataset, answered, tmp_path):
    make_own_pairs(answered, dataset, tmp_path)
    procedure = load_procedure()
    seen = set()
    for pair in read_pairs(tmp_path):
        right, wrong = (decode_compact(t, procedure) for t in (pair.chosen, pair.rejected))
        seen.add(right.state == wrong.state)
        if right.state == wrong.state:
            assert right.say == wrong.say and right != wrong
    assert seen == {True, False}


def test_an_answer_that_is_no_json_stays_as_it_is(memory, dataset, tmp_path):
    engine = memory(dataset, split="train", spoil=lambda text: text + " and then")
    run_turns(dataset, engine, tmp_path / "a", split="train", n=10, progress=False)
    make_own_pairs(tmp_path / "a", dataset, tmp_path / "out")
    pairs = read_pairs(tmp_path / "out")
    assert len(pairs) == 10 and all(p.rejected == p.chosen + " and then" for p in pairs)


def test_pairs_of_earlier_answers_are_not_taken_for_later_ones(memory, dataset, tmp_path):
    answers, out = tmp_path / "a", tmp_path / "out"
    for spoil in (mistaken, lambda text: "oops"):
        engine = memory(dataset, split="train", spoil=spoil)
        engine.model = repr(spoil)
        run_turns(dataset, engine, answers, split="train", n=20, progress=False)
        if spoil is mistaken:
            first = make_own_pairs(answers, dataset, out)
            assert make_own_pairs(answers, dataset, out) == first
    with pytest.raises(HaggleError, match="other answers"):
        make_own_pairs(answers, dataset, out)


def test_a_model_without_mistakes_gives_no_pairs(memory, dataset, tmp_path):
    engine = memory(dataset, split="train")
    run_turns(dataset, engine, tmp_path / "a", split="train", n=10, progress=False)
    with pytest.raises(HaggleError, match="nothing to learn from"):
        make_own_pairs(tmp_path / "a", dataset, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_answers_to_test_turns_are_refused(memory, dataset, tmp_path):
    engine = memory(dataset, spoil=mistaken)
    run_turns(dataset, engine, tmp_path / "a", split="test", n=10, progress=False)
    with pytest.raises(HaggleError, match="other turns") as told:
        make_own_pairs(tmp_path / "a", dataset, tmp_path / "out")
    assert "--split train" in str(told.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--answers", "{answered}"], "--dataset"),
        (["--answers", "{answered}", "--dataset", "{dataset}", "--n", "5"], "--n"),
        (["--answers", "{dataset}", "--dataset", "{dataset}"], "predictions.jsonl"),
        (["--answers", "{answered}", "--dataset", "{answered}"], "train"),
    ],
)
def test_the_command_says_what_it_lacks(options, told, dataset, answered, tmp_path):
    given = [option.format(answered=answered, dataset=dataset) for option in options]
    result = CliRunner().invoke(app, ["preferences", *given, "--out", str(tmp_path / "out")])
    assert result.exit_code != 0
    assert told in str(result.exception or result.output)
    assert not (tmp_path / "out").exists()
