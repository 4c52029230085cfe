"""A merchant that errs on purpose, and players that put it right."""

from __future__ import annotations

from typing import Any

import pytest

from data_gen.config import DataConfig
from data_gen.dataset.replayed import generated, moments
from data_gen.sources import make_dialogue, to_row
from haggle.dataset import decisions

CONFIG = DataConfig(seed=5, slips=0.3, questions=0.3, method="astp-stepwise")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return [to_row(*make_dialogue(CONFIG, "train", index)) for index in range(60)]


def weights(row: dict[str, Any]) -> list[int]:
    return [m.get("weight", 1) for m in row["messages"] if m["role"] == "assistant"]


def test_wrong_answers_stay_in_the_dialogue_and_are_not_learned(rows):
    share = sum(weights(row).count(0) for row in rows) / sum(len(weights(row)) for row in rows)
    assert 0.1 < share < 0.35
    for row in rows:
        assert len(decisions(row["messages"])) == len(row["turns"])


def test_players_put_right_what_went_wrong_in_every_way(rows):
    acts = {turn["act"] for row in rows for turn in row["turns"]}
    righting = {"right_number", "right_item", "right_missing", "right_extra", "right_all"}
    assert righting | {"right_again", "right_question"} <= acts


def test_putting_right_changes_the_order(rows):
    acts = {"right_number", "right_item", "right_missing", "right_extra"}
    seen = [
        row["messages"][place + 1]["content"]
        for row in rows
        for place, turn in zip(decisions(row["messages"]), row["turns"], strict=True)
        if turn["act"] in acts and turn["state"] == "OFFER_SELL"
    ]
    assert len(seen) > 10 and not any("cart as before" in outcome for outcome in seen)


def test_questions_are_asked_about_goods_and_answered_by_showing_them(rows):
    asked = [t for row in rows for t in row["turns"] if t["act"] in {"ask_nature", "ask_nature_it"}]
    assert len(asked) > 10 and {turn["state"] for turn in asked} == {"SHOW_ITEMS"}


def test_without_slips_nothing_differs():
    plain = DataConfig(seed=5)
    for index in range(5):
        row = to_row(*make_dialogue(plain, "train", index))
        assert all("weight" not in message for message in row["messages"])


def test_dialogues_with_slips_give_no_moments():
    told = next(t for t in generated(CONFIG, "train") if 0 in weights(t.row))
    assert list(moments(told)) == []


def test_merchants_who_see_the_outcome_tell_it(rows):
    said = [m["content"] for row in rows for m in row["messages"] if m["role"] == "assistant"]
    seen = [m["content"] for row in rows for m in row["messages"] if m["role"] == "user"]
    assert any("price stays" in text for text in seen) and any(" to " in text for text in seen)
    assert len(set(said)) > len(said) / 2
