"""Preference pairs: balanced, repeatable, whole on disk, about the turns of their data set."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from data_gen.config import DataConfig
from data_gen.dataset import preferences as room
from data_gen.dataset.corruptions import (
    KINDS,
    VARIANTS,
)
from data_gen.dataset.preferences import (
    PreferenceConfig,
    Tally,
    load_preference_config,
    make_preferences,
    pairs,
)
from data_gen.dataset.replayed import generated, moments
from data_gen.generate import generate
from haggle.core.config import CONFIGS, ROOT
from haggle.core.errors import HaggleError
from haggle.dataset import dataset_files, iter_rows

SMALL = PreferenceConfig(train=24, test=0, seed=1, data=DataConfig(seed=5, items=(4, 9)))


def digests(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("*.parquet"))
    }


def test_kinds_come_in_the_shares_asked_for():
    config = SMALL.model_copy(update={"kinds": {"wrong_cart": 3, "wrong_last": 1, "arithmetic": 0}})
    assert config.quotas(40) == {"wrong_cart": 30, "wrong_last": 10, "arithmetic": 0}
    assert sum(config.quotas(41).values()) == 41
    tally = Tally()
    rows = list(pairs(config, "train", 40, tally))
    assert Counter(row["kind"] for row in rows) == {"wrong_cart": 30, "wrong_last": 10}
    variants = Counter(row["variant"] for row in rows if row["kind"] == "wrong_cart")
    assert variants == dict.fromkeys(VARIANTS["wrong_cart"], 5)
    assert tally.summary(config.quotas(40))["short"] == {}


def test_no_dialogue_gives_more_than_its_share_and_no_pair_comes_twice():
    config = SMALL.model_copy(update={"per_dialogue": 2})
    rows = list(pairs(config, "train", 24))
    assert len({row["id"] for row in rows}) == len(rows) == 24
    assert max(Counter(row["id"].split("/")[0] for row in rows).values()) == 2


def test_a_row_is_a_conversation_with_two_endings():
    for row in pairs(SMALL, "train", 24):
        roles = [message["role"] for message in row["prompt"]]
        assert roles == ["system", *["user", "assistant"] * (len(roles) // 2 - 1), "user"]
        for side in ("chosen", "rejected"):
            ((role, content),) = [(m["role"], m["content"]) for m in row[side]]
            assert role == "assistant" and json.loads(content)["state"]
        assert row["chosen"] != row["rejected"]
        assert row["kind"] in KINDS and row["faults"]


def test_the_prompt_is_the_dialogue_up_to_the_players_line():
    told = {
        told.id: told for told, _ in zip(generated(SMALL.data, "train"), range(60), strict=False)
    }
    checked = 0
    for row in pairs(SMALL, "train", 24):
        dialogue, turn, _ = row["id"].split("/")
        messages = told[dialogue].row["messages"]
        end = 2 * int(turn) + 2
        assert row["prompt"] == messages[:end]
        assert row["chosen"] == [messages[end]]
        checked += 1
    assert checked == 24


def test_the_same_config_gives_the_same_bytes_in_any_process(tmp_path):
    make_preferences(SMALL, tmp_path / "one", progress=False)
    code = (
        "import sys; from pathlib import Path; from data_gen.dataset.preferences import *;"
        f"make_preferences(PreferenceConfig.model_validate_json({SMALL.model_dump_json()!r}),"
        "Path(sys.argv[1]), progress=False)"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "two")], cwd=ROOT, check=True,
        env=os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    other = SMALL.model_copy(update={"seed": 2})
    make_preferences(other, tmp_path / "other", progress=False)
    assert digests(tmp_path / "one") != digests(tmp_path / "other")


def test_pairs_are_written_in_shards_of_the_size_asked_for(tmp_path):
    config = SMALL.model_copy(update={"shard": 10, "test": 6})
    summary = make_preferences(config, tmp_path, progress=False)
    assert [pq.read_metadata(p).num_rows for p in dataset_files(tmp_path)] == [10, 10, 4]
    rows = list(iter_rows(tmp_path))
    assert rows == list(pairs(config, "train", 24))
    assert summary["splits"]["train"]["pairs"] == 24 and summary["splits"]["test"]["pairs"] == 6
    train, test = (
        {json.dumps(r["prompt"]) for r in iter_rows(tmp_path, s)} for s in ("train", "test")
    )
    assert not train & test
    assert not (tmp_path / "unfinished").exists()


def test_a_finished_set_is_not_made_again_and_another_config_is_refused(tmp_path, monkeypatch):
    first = make_preferences(SMALL, tmp_path, progress=False)
    with monkeypatch.context() as patch:
        patch.setattr(room, "pairs", lambda *_: pytest.fail("made again"))
        assert make_preferences(SMALL, tmp_path, progress=False) == first
    with pytest.raises(HaggleError, match="another config"):
        make_preferences(SMALL.model_copy(update={"seed": 9}), tmp_path, progress=False)


@pytest.mark.parametrize("killed_at", [0, 11, 23])
def test_a_killed_run_leaves_no_half_set_and_comes_out_the_same(tmp_path, monkeypatch, killed_at):
    config = SMALL.model_copy(update={"shard": 8})
    make_preferences(config, tmp_path / "whole", progress=False)
    real = room.pairs

    def mortal(*args: Any) -> Iterator[dict[str, Any]]:
        for number, row in enumerate(real(*args)):
            if number == killed_at:
                raise KeyboardInterrupt
            yield row

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(room, "pairs", mortal)
        make_preferences(config, tmp_path / "torn", progress=False)
    assert not digests(tmp_path / "torn")
    make_preferences(config, tmp_path / "torn", progress=False)
    assert digests(tmp_path / "torn") == digests(tmp_path / "whole")


def test_a_full_disk_is_told_and_leaves_nothing_half_written(tmp_path, monkeypatch):
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", full)
        with pytest.raises(HaggleError, match="No space left"):
            make_preferences(SMALL, tmp_path, progress=False)
    assert not list(tmp_path.rglob("*.part")) and not list(tmp_path.rglob("*.parquet"))
    make_preferences(SMALL, tmp_path, progress=False)
    assert len(list(iter_rows(tmp_path))) == 24


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("data") / "set"
    generate(DataConfig(train=30, test=0, seed=8, corpus=1), out, progress=False)
    return out


def test_pairs_from_a_data_set_are_about_its_turns(dataset):
    config = PreferenceConfig(train=120, test=0, dataset=dataset)
    tally = Tally()
    rows = list(pairs(config, "train", 120, tally))
    stored = {row["id"]: row["messages"] for row in iter_rows(dataset)}
    for row in rows:
        dialogue, turn, _ = row["id"].rsplit("/", 2)
        end = 2 * int(turn) + 2
        assert row["prompt"] == stored[dialogue][:end] and row["chosen"] == [stored[dialogue][end]]
    assert any(row["id"].startswith("corpus-") for row in rows)
    assert any(row["id"].startswith("train-") for row in rows)
    assert tally.unfit == 0


def test_a_data_set_too_small_for_a_kind_says_how_short_it_falls(dataset, tmp_path):
    config = PreferenceConfig(train=3000, test=0, dataset=dataset, kinds={"obeyed_attack": 1})
    summary = make_preferences(config, tmp_path, progress=False)
    counts = summary["splits"]["train"]
    assert 0 < counts["pairs"] < 3000
    assert counts["short"] == {"obeyed_attack": 3000 - counts["pairs"]}


def test_a_data_set_whose_shops_cannot_be_made_again_is_refused(dataset, tmp_path):
    folder = tmp_path / "moved"
    folder.mkdir()
    config = (dataset / "config.resolved.yaml").read_text(encoding="utf-8")
    (folder / "config.resolved.yaml").write_text(
        config.replace("seed: 8", "seed: 9"), encoding="utf-8"
    )
    for path in dataset_files(dataset):
        (folder / path.name).write_bytes(path.read_bytes())
    with pytest.raises(HaggleError, match="cannot be made again") as refused:
        list(pairs(PreferenceConfig(dataset=folder), "train", 5))
    assert "row 1" in refused.value.where


def test_a_dialogue_that_was_tampered_with_is_refused():
    told = next(generated(SMALL.data, "train"))
    messages = [dict(message) for message in told.row["messages"]]
    messages[1]["content"] += " and throw in a horse"
    with pytest.raises(HaggleError, match="played again"):
        list(moments(replace(told, row=told.row | {"messages": messages})))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"train": 0, "test": 0}, "nothing to make"),
        ({"data": DataConfig(method="astp")}, "compact format"),
        ({"data": DataConfig(items=(9, 4))}, "is no range"),
        ({"dataset": Path("nowhere")}, "no such dataset"),
    ],
)
def test_what_no_pair_can_be_made_from_is_an_error(tmp_path, changes, told):
    with pytest.raises(HaggleError, match=told):
        make_preferences(SMALL.model_copy(update=changes), tmp_path / "out", progress=False)
    assert not list(tmp_path.iterdir())


def test_a_model_as_teacher_has_to_have_written_its_data_set_first(tmp_path):
    from data_gen.teachers.config import TeacherConfig

    data = DataConfig(teacher=TeacherConfig(engine="llamacpp"))
    with pytest.raises(HaggleError, match="finished data set"):
        make_preferences(SMALL.model_copy(update={"data": data}), tmp_path, progress=False)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kinds: {wrong_carts: 1}\n", "wrong_carts"),
        ("kinds: {wrong_cart: 0}\n", "share above 0"),
        ("per_dialog: 2\n", "did you mean 'per_dialogue'"),
        ("data: {itmes: [4, 9]}\n", "itmes"),
    ],
)
def test_a_mistake_in_a_config_is_named(tmp_path, text, complaint):
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(HaggleError) as refused:
        load_preference_config(tmp_path / "mine.yaml")
    assert complaint in str(refused.value)


def test_the_shipped_config_loads_and_options_go_before_it():
    path = CONFIGS / "data" / "preferences.yaml"
    config = load_preference_config(path)
    assert set(config.kinds) == set(KINDS) and config.train > 0
    changed = load_preference_config(path, train=7, seed=None)
    assert changed == config.model_copy(update={"train": 7})


def test_the_command_writes_pairs(tmp_path):
    from typer.testing import CliRunner

    from haggle.cli import app

    result = CliRunner().invoke(
        app, ["preferences", "--n", "9", "--out", str(tmp_path / "out"), "--quiet"]
    )
    assert result.exit_code == 0, result.output
    assert "wrong_cart" in result.output
    assert len(list(iter_rows(tmp_path / "out"))) == 9
