"""Dataset reading, masks, lengths and batch order."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from haggle.core.errors import HaggleError
from haggle.weights.chat_template import render
from training.data import (
    SPOKEN_KEY,
    BucketSampler,
    Collator,
    read_dialogues,
    to_columns,
    tokenize,
)
from training.templates import encode, marked_template

DIALOGUE = [
    {"role": "system", "content": "You sell jugs.\nClay Jug 25"},
    {"role": "user", "content": 'cart [["Clay Jug",2]] price 50\nplayer: ok, 12 of them'},
    {"role": "assistant", "content": '{"last":"","state":"CASUAL","say":"A dozen, then?"}'},
    {"role": "user", "content": "cart []\nplayer: yes"},
    {"role": "assistant", "content": '{"last":"","state":"END","say":"Bye."}'},
]


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_mask_covers_exactly_each_answer_and_its_end_of_turn(tokenizer: Any) -> None:
    ids, mask = encode(DIALOGUE, tokenizer, marked_template(tokenizer))
    spans, current = [], []
    for token, bit in zip(ids, mask, strict=True):
        if bit:
            current.append(token)
        elif current:
            spans.append(current)
            current = []
    answers = [m["content"] + "<|im_end|>" for m in DIALOGUE if m["role"] == "assistant"]
    assert [tokenizer.decode(span) for span in spans] == answers
    assert all(span[-1] == tokenizer.eos_token_id for span in spans)


def test_an_answer_of_weight_0_is_read_and_not_learned(tokenizer: Any, tmp_path: Path) -> None:
    wrong = [dict(m, weight=0) if i == 2 else m for i, m in enumerate(DIALOGUE)]
    read = read_dialogues(write(tmp_path / "train.jsonl", {"messages": wrong}))
    plain, less = (
        tokenize(messages, tokenizer, max_length=500).rows[0] for messages in ([DIALOGUE], read)
    )
    assert less.ids == plain.ids and 0 < less.supervised < plain.supervised
    end = tokenizer(DIALOGUE[-1]["content"], add_special_tokens=False)["input_ids"]
    assert less.supervised == len(end) + 1


def test_a_dialogue_without_anything_to_learn_is_dropped(tokenizer: Any) -> None:
    wrong = [dict(m, weight=0) for m in DIALOGUE]
    assert tokenize([wrong, DIALOGUE], tokenizer, max_length=500).dropped == 1


def test_a_weight_is_0_or_1(tmp_path: Path) -> None:
    row = {"messages": [dict(DIALOGUE[1]), dict(DIALOGUE[2], weight=0.5)]}
    with pytest.raises(HaggleError, match=r"messages\[1\].weight is neither 0 nor 1"):
        read_dialogues(write(tmp_path / "train.jsonl", row))


def test_training_ids_are_the_ids_that_serving_sends_plus_the_answer(tokenizer: Any) -> None:
    ids, mask = encode(DIALOGUE, tokenizer, marked_template(tokenizer))
    for index, message in enumerate(DIALOGUE):
        if message["role"] != "assistant":
            continue
        prompt = tokenizer(render(DIALOGUE[:index]), add_special_tokens=False)["input_ids"]
        answer = tokenizer(message["content"], add_special_tokens=False)["input_ids"]
        assert ids[: len(prompt)] == prompt
        assert ids[len(prompt) : len(prompt) + len(answer)] == answer
        assert mask[len(prompt) - 1] == 0 and mask[len(prompt)] == 1


def test_a_long_dialogue_is_cut_behind_its_last_answer_that_fits(tokenizer: Any) -> None:
    whole = tokenize([DIALOGUE], tokenizer, max_length=4096)
    length = len(whole.rows[0].ids)
    cut = tokenize([DIALOGUE], tokenizer, max_length=length - 3)
    assert (cut.shortened, cut.dropped) == (1, 0)
    text = tokenizer.decode(cut.rows[0].ids)
    assert text == render(DIALOGUE[:3], add_generation_prompt=False).removesuffix("\n")


def test_a_long_dialogue_is_dropped_on_request_and_counted(tokenizer: Any) -> None:
    length = len(tokenize([DIALOGUE], tokenizer, max_length=4096).rows[0].ids)
    short = DIALOGUE[:3]
    data = tokenize([DIALOGUE, short], tokenizer, max_length=length - 3, overlong="drop")
    assert (len(data.rows), data.shortened, data.dropped) == (1, 0, 1)


def test_nothing_left_to_train_on_is_an_error(tokenizer: Any) -> None:
    with pytest.raises(HaggleError, match="max_length=16"):
        tokenize([DIALOGUE], tokenizer, max_length=16)


def test_only_the_spoken_words_lose_weight(tokenizer: Any) -> None:
    (example,) = tokenize([DIALOGUE], tokenizer, max_length=4096, spoken_weight=0.3).rows
    light = [t for t, w in zip(example.ids, example.weights, strict=True) if w == 0.3]
    full = [t for t, w in zip(example.ids, example.weights, strict=True) if w == 1.0]
    spoken = tokenizer.decode(light)
    assert "dozen, then" in spoken and "Bye" in spoken
    assert "state" not in spoken
    kept = tokenizer.decode(full)
    assert kept.count(SPOKEN_KEY) == 2 and kept.count("<|im_end|>") == 2


def test_reads_parquet_and_jsonl_alike(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    write(tmp_path / "train.jsonl", {"schema_version": 1, "messages": DIALOGUE})
    from_lines = read_dialogues(tmp_path)
    table = pa.Table.from_pylist([{"schema_version": 1, "messages": DIALOGUE, "other": 3}])
    pq.write_table(table, tmp_path / "train.parquet")
    assert read_dialogues(tmp_path) == read_dialogues(tmp_path / "train.parquet") == from_lines


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"schema_version": 99, "messages": DIALOGUE}, "schema_version 99"),
        ({"schema_version": 1, "text": "x"}, "'messages'"),
        ({"messages": [{"role": "bot", "content": "x"}]}, "messages[0].role is 'bot'"),
        ({"messages": [*DIALOGUE, {"role": "system", "content": "x"}]}, "messages[5].role"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": DIALOGUE[:2]}, "no assistant message"),
        ([1], "must be an object"),
    ],
)
def test_a_bad_row_is_named_with_its_file_and_number(tmp_path: Path, row: Any, told: str) -> None:
    path = write(tmp_path / "rows.jsonl", {"messages": DIALOGUE}, row)
    with pytest.raises(HaggleError) as caught:
        read_dialogues(path)
    assert told in str(caught.value)
    assert "rows.jsonl: row 2" in caught.value.where


def test_broken_json_is_named_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"messages": DIALOGUE}) + '\n{"messages": [', encoding="utf-8")
    with pytest.raises(HaggleError, match="row 2: not JSON"):
        read_dialogues(path)


def test_a_cut_off_parquet_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "train.parquet"
    pq.write_table(pa.Table.from_pylist([{"messages": DIALOGUE}]), path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(HaggleError, match="not a whole Parquet file"):
        read_dialogues(tmp_path)


def test_a_missing_dataset_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(HaggleError, match="hint"):
        read_dialogues(tmp_path / "nowhere")


def test_batches_have_similar_lengths_and_hold_every_row_once() -> None:
    rng = random.Random(3)
    lengths = [rng.randint(100, 2000) for _ in range(403)]
    sampler = BucketSampler(lengths, 4, seed=1)
    order = list(sampler)
    assert sorted(order) == list(range(403))
    padded = sum(4 * max(lengths[i] for i in order[at : at + 4]) for at in range(0, 400, 4))
    assert padded < 1.06 * sum(lengths[i] for i in order[:400])


def test_batch_order_depends_on_seed_and_epoch_alone() -> None:
    lengths = list(range(50, 90))
    first, again, other = (BucketSampler(lengths, 4, seed=s) for s in (1, 1, 2))
    assert list(first) == list(again) != list(other)
    first.set_epoch(1)
    assert list(first) != list(again)
    first.set_epoch(0)
    assert list(first) == list(again)


def test_padding_carries_neither_label_nor_weight(tokenizer: Any) -> None:
    data = tokenize([DIALOGUE, DIALOGUE[:3]], tokenizer, max_length=4096)
    columns = to_columns(data.rows)
    rows = [{key: values[i] for key, values in columns.items()} for i in range(2)]
    batch = Collator(tokenizer.pad_token_id)(rows)
    short = len(rows[1]["input_ids"])
    assert (batch["labels"][1, short:] == -100).all()
    assert (batch["loss_weights"][1, short:] == 0).all()
    supervised = batch["labels"] != -100
    assert (batch["input_ids"][supervised] == batch["labels"][supervised]).all()
    assert (supervised == (batch["loss_weights"] > 0)).all()
