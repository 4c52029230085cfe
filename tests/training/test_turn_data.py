"""Turns of dialogues: the prompts that serving sends, and what makes a data set unusable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from haggle.core.errors import HaggleError
from training.templates import encode, marked_template
from training.turn_data import read_turns, to_turn_columns, tokenize_turns

PLAYER = {"role": "user", "content": "cart []\nplayer: hi"}


def write(folder: Path, *messages: dict[str, str]) -> Path:
    row = {"schema_version": 1, "messages": list(messages)}
    (folder / "train.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return folder


def test_prompts_are_the_beginning_of_what_training_writes(
    tiny_dataset: Path, tokenizer: Any
) -> None:
    turns = read_turns(tiny_dataset)
    data = tokenize_turns(turns, tokenizer, max_length=1024, max_completion_length=100)
    assert len(data.rows) == len(turns) > 24 and data.shortened == data.dropped == 0
    template = marked_template(tokenizer)
    for text, turn in zip(turns, data.rows, strict=True):
        said = [*text.prompt, {"role": "assistant", "content": text.right}]
        ids, _ = encode(said, tokenizer, template)
        whole = turn.prompt + turn.answer
        assert ids[: len(whole)] == whole
        goods = text.prompt[0]["content"].splitlines()[1:]
        assert turn.names == [line.rsplit(" ", 1)[0] for line in goods]
    columns = to_turn_columns(data.rows)
    assert columns["prompt"][0] == data.rows[0].text and len(columns["right"]) == len(turns)
    assert data.facts()["tokens"] == sum(len(turn.prompt) for turn in data.rows)


def test_every_answer_behind_a_players_line_is_a_turn(tiny_dataset: Path) -> None:
    turns = read_turns(tiny_dataset)
    assert all(turn.prompt[-1]["role"] == "user" for turn in turns)
    rows = [json.loads(line) for line in (tiny_dataset / "train.jsonl").open(encoding="utf-8")]
    answers = [m["content"] for row in rows for m in row["messages"] if m["role"] == "assistant"]
    assert [turn.right for turn in turns] == answers


def test_turns_are_drawn_from_all_of_the_data_and_the_same_each_time(tiny_dataset: Path) -> None:
    whole = read_turns(tiny_dataset)
    drawn = read_turns(tiny_dataset, 12, seed=1)
    assert drawn == read_turns(tiny_dataset, 12, seed=1) != read_turns(tiny_dataset, 12, seed=2)
    places = [whole.index(turn) for turn in drawn]
    assert len(places) == 12 and min(places) < len(whole) / 2 < max(places)
    assert read_turns(tiny_dataset, 10_000) == whole


def test_a_long_history_loses_its_oldest_rounds(tiny_dataset: Path, tokenizer: Any) -> None:
    turns = read_turns(tiny_dataset)
    whole = tokenize_turns(turns, tokenizer, max_length=1024, max_completion_length=100)
    firsts = [t for t, text in zip(whole.rows, turns, strict=True) if len(text.prompt) == 2]
    limit = max(len(turn.prompt) for turn in firsts) + 100
    cut = tokenize_turns(turns, tokenizer, max_length=limit, max_completion_length=100)
    over = sum(len(turn.prompt) + 100 > limit for turn in whole.rows)
    assert 0 < over == cut.shortened + cut.dropped
    assert all(len(turn.prompt) + 100 <= limit for turn in cut.rows)
    assert all("For sale:" in turn.text for turn in cut.rows)
    assert f"{cut.shortened} without their oldest rounds" in cut.describe()
    assert cut.sha256 != whole.sha256


def test_data_without_a_turn_is_refused(tmp_path: Path) -> None:
    data = write(tmp_path, {"role": "system", "content": "For sale:\nClay Jug 25"}, PLAYER)
    with pytest.raises(HaggleError, match="holds no turn") as caught:
        read_turns(data)
    assert "haggle generate" in caught.value.hint


@pytest.mark.parametrize("text", ["Hello!", '{"last":"","state":"WAIT","say":"Hm."}'])
def test_an_answer_of_another_format_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    data = write(tmp_path, PLAYER, {"role": "assistant", "content": text})
    with pytest.raises(HaggleError, match=r"messages\[1\] is no answer of the compact") as caught:
        read_turns(data)
    assert "row 1" in caught.value.where and "astp-compact" in caught.value.hint


def test_answers_longer_than_an_answer_may_be_are_dropped_or_refused(
    tiny_dataset: Path, tokenizer: Any
) -> None:
    turns = read_turns(tiny_dataset)
    sizes = sorted(
        len(turn.answer)
        for turn in tokenize_turns(
            turns, tokenizer, max_length=1024, max_completion_length=100
        ).rows
    )
    limit = sizes[0]
    data = tokenize_turns(turns, tokenizer, max_length=1024, max_completion_length=limit)
    assert len(data.rows) == sizes.count(limit) and data.dropped == len(turns) - len(data.rows)
    with pytest.raises(HaggleError, match=f"longest right answer has {sizes[-1]} tokens"):
        tokenize_turns(turns, tokenizer, max_length=1024, max_completion_length=limit - 1)
