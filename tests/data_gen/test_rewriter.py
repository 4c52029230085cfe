"""A model rephrases scripted lines: what they mean survives, or the original stands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

from data_gen.config import DataConfig
from data_gen.sources import make_dialogue, to_row
from data_gen.teachers.source import LlmSource
from haggle.core.config import parse
from haggle.core.engine import Generation, GenerationRequest
from haggle.core.errors import HaggleError
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import decode_compact

PROCEDURE = load_procedure()
NUMBER = 8


class Model:
    """An engine that rephrases as a test says."""

    name, model = "stub", "stub-1"

    def __init__(self, answer: Callable[[GenerationRequest], str | Generation]) -> None:
        self.answer = answer
        self.batches: list[list[GenerationRequest]] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        self.batches.append(list(requests))
        answers = (self.answer(request) for request in requests)
        return [a if isinstance(a, Generation) else Generation(a, 10, 4) for a in answers]

    def stream(self, request: GenerationRequest):
        raise NotImplementedError

    def close(self) -> None:
        pass


def source_of(model: Model, noise: float = 0.0, **rewriter: Any) -> LlmSource:
    data = {
        "train": NUMBER, "test": 0, "noise": noise,
        "teacher": {"concurrency": 3, "rewriter": {"engine": "model", "max_attempts": 2} | rewriter},
    }  # fmt: skip
    return LlmSource(parse(data, DataConfig, "test"), lambda name: model)


@cache
def originals() -> tuple[dict[str, Any], ...]:
    config = DataConfig(train=NUMBER, test=0, noise=0.0)
    return tuple(to_row(*make_dialogue(config, "train", i)) for i in range(NUMBER))


def longer(request: GenerationRequest) -> str:
    """The line with a word before it."""
    return f"Well, {request.messages[1].content}"


def labels(row: dict[str, Any]) -> list[tuple[str, ...]]:
    return [(t["act"], t["last"], t["state"], t["cart"]) for t in row["turns"]]


def says(row: dict[str, Any]) -> list[str]:
    texts = [m["content"] for m in row["messages"] if m["role"] == "assistant"]
    return [decode_compact(text, PROCEDURE).say for text in texts]


def test_lines_change_and_everything_else_stays():
    source = source_of(Model(longer))
    rows = list(source.rows("train", range(NUMBER)))
    changed = 0
    for row, before in zip(rows, originals(), strict=True):
        assert labels(row) == labels(before) and row["id"] == before["id"]
        assert row["teacher"] == "rewriter:stub" and row["player"] == before["player"]
        for new, old in zip(says(row), says(before), strict=True):
            assert new in {old, f"Well, {old}"}
        for turn, old_turn in zip(row["turns"], before["turns"], strict=True):
            changed += turn["player"] == f"Well, {old_turn['player']}"
            assert turn["player"] in {old_turn["player"], f"Well, {old_turn['player']}"}
            assert "__" not in turn["npc_dialogue"]
        assert [m["content"] for m in row["messages"][1::2]] == [
            m["content"].replace("player: ", "player: Well, ")
            if t["player"].startswith("Well, ") and not o["player"].startswith("Well, ")
            else m["content"]
            for m, t, o in zip(before["messages"][1::2], row["turns"], before["turns"], strict=True)
        ]
    report = source.report()["rewriter"]
    assert changed > 20 and report["accepted"] > 0.9 * report["turns"]


def test_all_lines_of_the_dialogues_under_way_are_asked_for_at_once():
    model = Model(longer)
    list(source_of(model).rows("train", range(3)))
    lines = 2 * sum(len(row["turns"]) for row in originals()[:3])
    assert lines * 0.8 < len(model.batches[0]) <= lines


def test_a_rejected_line_is_asked_again_with_the_reason_then_the_original_stands():
    def numerous(request: GenerationRequest) -> str:
        return f"{longer(request)} 77 times"

    model = Model(numerous)
    source = source_of(model, max_attempts=3)
    rows = list(source.rows("train", range(3)))
    for row, before in zip(rows, originals(), strict=False):
        assert {**row, "teacher": ""} == {**before, "teacher": ""}
        assert row["teacher"] == "oracle"
    report = source.report()["rewriter"]
    assert report["given_up"] == {"original": report["turns"]}
    assert sum(report["rejected"].values()) == report["answers"] == 3 * report["turns"]
    assert report["rejected"]["number"] > report["turns"]
    again = [r for batch in model.batches[1:] for r in batch if len(r.messages) == 4]
    assert again and all("cannot be used" in request.messages[-1].content for request in again)
    assert all(request.messages[2].content.endswith("77 times") for request in again)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (Generation("so then I", finish_reason="length"), "truncated"),
        ("one\ntwo", "lines"),
        ('{"line": "x"}', "markup"),
        ("The line stays a customer's line to a merchant.", "echo"),
    ],
)
def test_unusable_phrasings_are_counted_by_reason(answer, reason):
    source = source_of(Model(lambda request: answer), max_attempts=1)
    rows = list(source.rows("train", [0]))
    assert labels(rows[0]) == labels(originals()[0])
    assert source.report()["rewriter"]["rejected"][reason] > 0


@pytest.mark.parametrize(("player", "merchant"), [(True, False), (False, True)])
def test_one_side_alone_may_be_rewritten(player, merchant):
    rows = list(source_of(Model(longer), player=player, merchant=merchant).rows("train", range(4)))
    for row, before in zip(rows, originals(), strict=False):
        assert (says(row) != says(before)) == merchant
        lines = [[t["player"] for t in r["turns"]] for r in (row, before)]
        assert (lines[0] != lines[1]) == player


def test_a_share_of_the_lines_is_asked_for():
    half, whole = (source_of(Model(longer), share=share) for share in (0.5, 1.0))
    for source in (half, whole):
        list(source.rows("train", range(NUMBER)))
    turns = [s.report()["rewriter"]["turns"] for s in (half, whole)]
    assert 0.3 * turns[1] < turns[0] < 0.7 * turns[1]


def test_typing_noise_is_laid_over_the_rewritten_lines():
    calm, noisy = (
        list(source_of(Model(longer), noise).rows("train", range(NUMBER))) for noise in (0.0, 3.0)
    )
    pairs = [
        (a["player"], b["player"])
        for one, other in zip(calm, noisy, strict=True)
        for a, b in zip(one["turns"], other["turns"], strict=True)
    ]
    assert [labels(row) for row in calm] == [labels(row) for row in noisy]
    changed = sum(a != b for a, b in pairs)
    assert 0.2 * len(pairs) < changed < len(pairs)
    assert all(re.findall(r"\d+", a) == re.findall(r"\d+", b) for a, b in pairs)


def test_forged_texts_and_insults_are_left_as_they_are():
    model = Model(longer)
    source = source_of(model, merchant=False)
    rows = list(source.rows("train", range(40)))
    before = (to_row(*make_dialogue(DataConfig(noise=0.0), "train", i)) for i in range(40))
    kept = 0
    for row, old in zip(rows, before, strict=True):
        for turn, was in zip(row["turns"], old["turns"], strict=True):
            if turn["act"].startswith(("attack", "insult", "silence")):
                kept += 1
                assert turn["player"] == was["player"]
    assert kept > 2


def test_a_rewritten_player_may_stand_before_a_model_as_merchant():
    def both(request: GenerationRequest) -> str:
        return "garbage" if len(request.messages[0].content) > 2000 else longer(request)

    data = {
        "train": 2, "test": 0, "noise": 0,
        "teacher": {"engine": "model", "max_attempts": 1, "rewriter": {"engine": "model"}},
    }  # fmt: skip
    source = LlmSource(parse(data, DataConfig, "test"), lambda name: Model(both))
    rows = list(source.rows("train", range(2)))
    assert {row["teacher"] for row in rows} == {"rewriter:stub"}  # no answer of it was of use
    assert [labels(row) for row in rows] == [labels(row) for row in originals()[:2]]
    assert any(turn["player"].startswith("Well, ") for row in rows for turn in row["turns"])
    assert json.dumps(source.report())


def test_an_engine_that_gives_up_ends_the_run():
    def fails(request: GenerationRequest) -> str:
        raise HaggleError("no answer in 6 attempts: 500", where="stub")

    with pytest.raises(HaggleError, match="500"):
        list(source_of(Model(fails)).rows("train", range(2)))


def test_a_rewriter_without_work_is_an_error():
    with pytest.raises(HaggleError, match="nobody's lines"):
        source_of(Model(longer), player=False, merchant=False)
