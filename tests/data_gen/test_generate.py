"""Data sets: the same bytes for the same seed, whatever happened on the way."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from data_gen import generate as room
from data_gen.generate import DataConfig, generate, load_data_config, override
from haggle.config import CONFIGS, ROOT
from haggle.errors import HaggleError
from haggle.storage import read_jsonl

SMALL = DataConfig(train=12, test=5, seed=3)


def digests(out: Path) -> dict[str, str]:
    names = ("train.jsonl", "test.jsonl", "train.parquet", "test.parquet")
    return {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}


@pytest.fixture(autouse=True)
def parts_of_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PART", 4)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    generate(SMALL, tmp_path / "whole", progress=False)
    return tmp_path / "whole"


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(whole, tmp_path):
    generate(SMALL, tmp_path / "again", progress=False)
    generate(SMALL.model_copy(update={"seed": 4}), tmp_path / "other", progress=False)
    assert digests(whole) == digests(tmp_path / "again")
    assert not set(digests(whole).values()) & set(digests(tmp_path / "other").values())


def test_the_bytes_do_not_depend_on_the_process(whole):
    code = (
        "import sys, json; from data_gen.generate import DataConfig, make_dialogue, to_row;"
        "from haggle.storage import dumps;"
        "c = DataConfig(train=12, test=5, seed=3);"
        "sys.stdout.buffer.write(''.join(dumps(to_row(*make_dialogue(c, 'train', i))) + '\\n'"
        " for i in range(12)).encode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout == (whole / "train.jsonl").read_bytes()


def test_rows_are_chats_with_labels_beside_them(whole):
    rows = read_jsonl(whole / "train.jsonl")
    assert len(rows) == 12 and len({row["id"] for row in rows}) == 12
    for row in rows:
        roles = [m["role"] for m in row["messages"]]
        assert roles == ["system", *["user", "assistant"] * len(row["turns"])]
        for turn, text in zip(row["turns"], row["messages"][2::2], strict=True):
            answer = json.loads(text["content"])
            assert (answer["last"], answer["state"]) == (turn["last"], turn["state"])
            assert isinstance(json.loads(turn["cart"]), dict)
        for turn, text in zip(row["turns"], row["messages"][1::2], strict=True):
            assert text["content"].endswith(f"player: {turn['player']}")


def test_parquet_and_jsonl_hold_the_same_rows(whole):
    for split in ("train", "test"):
        assert pq.read_table(whole / f"{split}.parquet").to_pylist() == read_jsonl(
            whole / f"{split}.jsonl"
        )


def test_train_and_test_share_no_shop_and_no_line_of_a_player(tmp_path):
    generate(DataConfig(train=60, test=60), tmp_path, progress=False)
    train, test = (read_jsonl(tmp_path / f"{split}.jsonl") for split in ("train", "test"))
    genre = [{row["world"].rsplit("_", 1)[0] for row in rows} for rows in (train, test)]
    assert not genre[0] & genre[1]
    lines = [
        {t["player"].casefold() for row in rows for t in row["turns"]} for rows in (train, test)
    ]
    assert not lines[0] & lines[1]


def test_the_summary_counts_what_was_written(whole):
    summary = json.loads((whole / "summary.json").read_text(encoding="utf-8"))
    assert summary["splits"]["train"]["dialogues"] == 12 == summary["made_now"] - 5
    turns = sum(len(row["turns"]) for row in read_jsonl(whole / "train.jsonl"))
    assert summary["splits"]["train"]["turns"] == turns
    assert summary["config"] == SMALL.model_dump(mode="json")
    assert not (whole / "parts").exists()


@pytest.mark.parametrize("killed_at", [0, 5, 11, 14])
def test_a_killed_run_goes_on_where_it_stopped(whole, tmp_path, monkeypatch, killed_at):
    made: list[int] = []
    make = room.make_dialogue

    def mortal(config, split, index):
        if len(made) == killed_at:
            raise KeyboardInterrupt
        made.append(index)
        return make(config, split, index)

    out = tmp_path / "torn"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(room, "make_dialogue", mortal)
        generate(SMALL, out, progress=False)
    assert not any(p.name.endswith(".part") for p in out.rglob("*"))
    summary = generate(SMALL, out, progress=False)
    assert digests(out) == digests(whole)
    assert summary["made_now"] == 17 - killed_at // 4 * 4


def test_a_finished_data_set_is_not_made_again(whole):
    before = digests(whole)
    assert generate(SMALL, whole, progress=False)["made_now"] == 0
    assert digests(whole) == before


def test_a_larger_data_set_begins_with_the_smaller_one(whole, tmp_path):
    generate(SMALL.model_copy(update={"train": 15}), tmp_path / "more", progress=False)
    more = (tmp_path / "more" / "train.jsonl").read_bytes()
    assert more.startswith((whole / "train.jsonl").read_bytes())


def test_another_config_in_the_same_directory_is_refused(whole):
    before = digests(whole)
    with pytest.raises(HaggleError, match="another config"):
        generate(SMALL.model_copy(update={"train": 13}), whole, progress=False)
    assert digests(whole) == before


def test_nothing_to_generate_is_an_error(tmp_path):
    with pytest.raises(HaggleError, match="nothing to generate"):
        generate(DataConfig(train=0, test=0), tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


def test_one_split_alone_is_possible(tmp_path):
    summary = generate(DataConfig(train=0, test=2), tmp_path, progress=False)
    assert set(summary["splits"]) == {"test"} and not (tmp_path / "train.jsonl").exists()


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "out").write_text("x", encoding="utf-8")
    with pytest.raises(HaggleError, match="not a directory"):
        generate(SMALL, tmp_path / "out", progress=False)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("trian: 5\n", "did you mean 'train'"),
        ("train: -1\n", "train"),
        ("train: many\n", "train"),
        ("invented: 2\n", "invented"),
        ("items: [1, 2, 3]\n", "items"),
    ],
)
def test_a_mistake_in_a_config_is_named(tmp_path, text, complaint):
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(HaggleError) as refused:
        load_data_config(tmp_path / "mine.yaml")
    assert complaint in str(refused.value) and "mine.yaml" in str(refused.value)


@pytest.mark.parametrize("items", [(5, 3), (0, 3)])
def test_a_range_of_items_that_is_none_is_refused(tmp_path, items):
    with pytest.raises(HaggleError, match="items"):
        generate(DataConfig(items=items), tmp_path, progress=False)


def test_the_shipped_configs_load_and_options_go_before_them():
    for path in sorted((CONFIGS / "data").glob("*.yaml")):
        config = load_data_config(path)
        assert config.train > 0
        assert override(path, train=7, seed=None) == config.model_copy(update={"train": 7})
