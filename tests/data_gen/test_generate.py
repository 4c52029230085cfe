"""Data sets: what is in them, and the same bytes for the same seed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from data_gen import sources
from data_gen.bank import split_genres
from data_gen.dataset.shards import schema
from data_gen.generate import (
    DataConfig,
    generate,
    load_data_config,
    make_dialogue,
    override,
    to_row,
)
from data_gen.language.phrasebook import PHRASES, SPLITS, Split, load_phrasebook
from haggle.core.config import CONFIGS, ROOT
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, read_jsonl
from haggle.core.text import clean_utterance
from haggle.dataset import dataset_files, iter_rows
from haggle.grammar.json_text import to_json
from haggle.language.reading import without_marks
from haggle.trade.records import Truth

SMALL = DataConfig(train=12, test=5, seed=3, shard=4)


make = partial(generate, progress=False)


def rows(out: Path, split: str = "train") -> list[dict[str, Any]]:
    return list(iter_rows(out, split))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    make(SMALL, out, jsonl=True)
    return out


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(contents, whole, tmp_path):
    make(SMALL, tmp_path / "again", jsonl=True)
    make(SMALL.model_copy(update={"seed": 4}), tmp_path / "other", jsonl=True)
    again, other = contents(tmp_path / "again"), contents(tmp_path / "other")
    assert contents(whole) == again and again.keys() == other.keys()
    assert not set(again.values()) & set(other.values())


@pytest.mark.parametrize("hash_seed", ["1", "77"])
def test_rows_do_not_depend_on_the_process_or_its_hash_seed(hash_seed):
    code = (
        "import sys; from data_gen.generate import DataConfig, make_dialogue, to_row;"
        "from haggle.grammar.json_text import to_json; c = DataConfig(seed=3);"
        "sys.stdout.buffer.write(''.join(to_json(to_row(*make_dialogue(c, split, i))) + '\\n'"
        " for split in ('train', 'test') for i in range(120)).encode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True,
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    config = DataConfig(seed=3)
    here = [
        to_json(to_row(*make_dialogue(config, split, index)))
        for split in ("train", "test")
        for index in range(120)
    ]
    assert done.stdout.decode().split("\n")[:-1] == here


def test_rows_are_chats_with_labels_beside_them(whole):
    found = rows(whole)
    assert len(found) == 12 and len({row["id"] for row in found}) == 12
    for row in found:
        roles = [m["role"] for m in row["messages"]]
        assert roles == ["system", *["user", "assistant"] * len(row["turns"])]
        for turn, text in zip(row["turns"], row["messages"][2::2], strict=True):
            answer = json.loads(text["content"])
            assert (answer["last"], answer["state"]) == (turn["last"], turn["state"])
            assert isinstance(json.loads(turn["cart"]), dict)
        for turn, text in zip(row["turns"], row["messages"][1::2], strict=True):
            said = re.sub(r" \{[^}]*\}", "", text["content"])  # without the marks of names
            assert said.endswith("\nplayer: " + without_marks(clean_utterance(turn["player"])))


def test_a_row_says_who_shopped_who_answered_and_what_number_it_has(whole):
    for split, number in (("train", 12), ("test", 5)):
        found = rows(whole, split)
        assert [row["id"].split("-")[:2] for row in found] == [
            [split, str(n)] for n in range(number)
        ]
        for row in found:
            assert row["player"].startswith(f"scripted-{split}-") and row["teacher"] == "oracle"


def test_shards_hold_ranges_of_numbers_as_zstd_with_few_rows_at_once(whole):
    assert [pq.read_metadata(file).num_rows for file in dataset_files(whole)] == [4, 4, 4]
    assert [pq.read_metadata(file).num_rows for file in dataset_files(whole, "test")] == [4, 1]
    metadata = pq.read_metadata(dataset_files(whole)[0])
    assert {metadata.row_group(0).column(i).compression for i in range(9)} == {"ZSTD"}
    assert pq.read_schema(dataset_files(whole)[0]).names == schema().names


def test_parquet_and_jsonl_hold_the_same_rows(whole):
    for split in ("train", "test"):
        for file in dataset_files(whole, split):
            assert list(iter_rows(file)) == read_jsonl(file.with_suffix(".jsonl"))


def test_jsonl_can_be_had_later_without_making_anything_anew(contents, whole, tmp_path):
    make(SMALL, tmp_path)
    assert not list(tmp_path.glob("*.jsonl"))
    assert make(SMALL, tmp_path, jsonl=True)["made_now"] == 0
    assert contents(tmp_path) == contents(whole)


def test_train_and_test_share_no_shop_and_no_line_of_a_player(tmp_path):
    make(DataConfig(train=60, test=60), tmp_path)
    train, test = rows(tmp_path), rows(tmp_path, "test")
    genre = [{row["world"].rsplit("_", 1)[0] for row in found} for found in (train, test)]
    assert not genre[0] & genre[1]
    lines = [
        {t["player"].casefold() for row in found for t in row["turns"]} for found in (train, test)
    ]
    assert not lines[0] & lines[1]


def test_the_summary_counts_what_was_written_and_names_no_place(whole):
    summary = read_json(whole / "summary.json")
    turns = sum(len(row["turns"]) for row in rows(whole))
    assert summary["splits"]["train"] == {"dialogues": 12, "turns": turns, "shards": 3}
    assert summary["splits"]["test"]["dialogues"] == 5 and summary["made_now"] == 17
    assert summary["config"] == SMALL.model_dump(mode="json")
    assert summary["dialogues_per_second"] > 0 and summary["versions"]["pyarrow"]
    for path in whole.iterdir():
        data = path.read_bytes()
        assert str(whole).encode() not in data and str(ROOT).encode() not in data, path.name
    assert not (whole / "unfinished").exists()


@pytest.mark.parametrize("killed_at", [0, 5, 11, 14])
def test_an_interrupted_run_goes_on_where_it_stopped(
    contents, whole, tmp_path, monkeypatch, killed_at
):
    made: list[int] = []
    draw = sources.make_dialogue

    def mortal(config, split, index, redrawn):
        if len(made) == killed_at:
            raise KeyboardInterrupt
        made.append(index)
        return draw(config, split, index, redrawn)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sources, "make_dialogue", mortal)
        make(SMALL, tmp_path, jsonl=True)
    assert not any(p.name.endswith(".part") for p in tmp_path.iterdir())
    finished = {0: 0, 5: 4, 11: 8, 14: 12}[killed_at]
    assert make(SMALL, tmp_path, jsonl=True)["made_now"] == 17 - finished
    assert contents(tmp_path) == contents(whole)


def test_a_finished_data_set_is_not_made_again(contents, tmp_path):
    make(SMALL, tmp_path)
    before = contents(tmp_path)
    summary = make(SMALL, tmp_path)
    assert summary["made_now"] == 0 and summary["dialogues_per_second"] is None
    assert contents(tmp_path) == before


def test_a_larger_data_set_begins_with_the_smaller_one(whole, tmp_path):
    make(SMALL.model_copy(update={"train": 15, "shard": 5}), tmp_path)
    assert rows(tmp_path)[:12] == rows(whole)


def test_the_corpus_goes_in_as_shards_of_its_own_as_often_as_asked(tmp_path):
    config = DataConfig(train=3, test=0, corpus=2, shard=4)
    summary = make(config, tmp_path)
    found = rows(tmp_path)
    assert summary["splits"]["train"]["shards"] == 3 and summary["splits"]["test"]["shards"] == 2
    written = [row for row in found if row["teacher"] == "corpus"]
    assert len(found) == 3 + len(written) and len({row["id"] for row in found}) == len(found)
    copies = [[r | {"id": ""} for r in written if r["id"].endswith(f"-{n}")] for n in (0, 1)]
    assert copies[0] == copies[1] and len(copies[0]) > 100
    assert all(row["player"].startswith("corpus-") and row["turns"] for row in written)
    voices = {row["player"] for row in rows(tmp_path, "test")}
    assert voices and not voices & {row["player"] for row in written}


def test_of_the_corpus_only_the_voices_named_go_in(tmp_path):
    make(DataConfig(train=2, test=0, corpus=1, voices=("terse", "gamer")), tmp_path)
    assert {row["player"] for row in rows(tmp_path)[2:]} == {"corpus-gamer", "corpus-terse"}
    assert not list(tmp_path.glob("test-*"))  # both are voices of the training split


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (DataConfig(corpus=1, voices=("tersee",)), "did you mean 'terse'"),
        (DataConfig(corpus=0, voices=("terse",)), "set corpus: 1"),
    ],
)
def test_voices_that_cannot_go_in_are_told_before_anything_is_made(config, told, tmp_path):
    with pytest.raises(HaggleError, match=told):
        make(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("change", [{"train": 13}, {"shard": 5}, {"noise": 0.0}])
def test_another_config_in_the_same_directory_is_refused(contents, whole, change):
    before = contents(whole)
    with pytest.raises(HaggleError, match="another config"):
        make(SMALL.model_copy(update=change), whole)
    assert contents(whole) == before


def test_nothing_to_generate_is_an_error(tmp_path):
    with pytest.raises(HaggleError, match="nothing to generate"):
        make(DataConfig(train=0, test=0), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_one_split_alone_is_possible(contents, tmp_path):
    summary = make(DataConfig(train=0, test=2), tmp_path)
    assert set(summary["splits"]) == {"test"} and list(contents(tmp_path)) == [
        "test-00000-of-00001.parquet"
    ]


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "out").write_text("x", encoding="utf-8")
    with pytest.raises(HaggleError, match="not a directory"):
        make(SMALL, tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("trian: 5\n", "did you mean 'train'"),
        ("train: -1\n", "train"),
        ("train: many\n", "train"),
        ("shard: 0\n", "shard"),
        ("invented: 2\n", "invented"),
        ("noise: -1\n", "noise"),
        ("items: [1, 2, 3]\n", "items"),
        ("player: {engin: llamacpp}\n", "did you mean 'engine'"),
    ],
)
def test_a_mistake_in_a_config_is_named(tmp_path, text, complaint):
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(HaggleError) as refused:
        load_data_config(tmp_path / "mine.yaml")
    assert complaint in str(refused.value) and "mine.yaml" in str(refused.value)


@pytest.mark.parametrize("items", [(5, 3), (0, 3)])
def test_a_range_of_items_that_is_none_is_refused(tmp_path, items):
    with pytest.raises(HaggleError, match="is no range"):
        make(DataConfig(items=items), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_shop_too_small_for_a_recommendation_is_told_before_anything_is_written(tmp_path):
    with pytest.raises(HaggleError, match="1 item is too small for a recommendation") as refused:
        make(DataConfig(items=(1, 1)), tmp_path / "out")
    assert "items: [2, 2], or recommendation: 0" in refused.value.hint
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("items", "recommendation"), [((1, 1), 0.0), ((2, 2), 1.0), ((40, 40), 0.5)]
)
def test_the_smallest_and_the_largest_shops_trade(items, recommendation):
    config = DataConfig(items=items, recommendation=recommendation)
    acts: Counter[str] = Counter()
    for split in ("train", "test"):
        for index in range(60):
            play, dialogue = make_dialogue(config, split, index)
            assert items[0] <= len(play.player.shop.world.inventory) <= items[1]
            acts.update(turn.state for turn in dialogue.turns)
    assert acts["COMMIT_SALE"] > 20


def test_a_dialogue_the_checks_object_to_is_drawn_anew_and_counted(whole, tmp_path, monkeypatch):
    play = sources.play_oracle

    def spoilt(started):
        """As the real one, but the first draw of dialogue 5 is wrong."""
        dialogue = play(started)
        if dialogue.id.startswith("train-5-") and not spoils:
            spoils.append(dialogue.id)
            turn = dialogue.turns[0].model_copy(
                update={"failed": ["price"], "truth": Truth(act="greet", state="CASUAL")}
            )
            dialogue.turns[0] = turn
        return dialogue

    spoils: list[str] = []
    monkeypatch.setattr(sources, "play_oracle", spoilt)
    summary = make(SMALL, tmp_path)
    assert summary["report"] == {"redrawn": {"greet": 1}}
    found, usual = rows(tmp_path), rows(whole)
    assert [n for n in range(12) if found[n] != usual[n]] == [5]
    assert make(SMALL, tmp_path)["report"] == summary["report"], "kept by a run that adds nothing"


def test_a_generator_that_is_broken_is_told(monkeypatch):
    monkeypatch.setattr(sources, "_is_wrong", lambda turn: True)
    with pytest.raises(AssertionError, match=r"train-0-.*oracle fails"):
        make_dialogue(SMALL, "train", 0)


def test_few_dialogues_are_drawn_anew():
    redrawn: Counter[str] = Counter()
    for index in range(300):
        make_dialogue(DataConfig(seed=1), "train", index, redrawn)
    assert redrawn.total() <= 3, redrawn


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("  greet:", "  greeet:", "unknown act 'greeet'\n  hint: did you mean 'greet'?"),
        ('- "hi"', '- "hi {merchnt}"', "unknown slot 'merchnt'"),
    ],
)
def test_an_unknown_act_or_slot_in_the_phrasebook_is_named(tmp_path, old, new, complaint):
    shutil.copytree(PHRASES, tmp_path / "phrases")
    path = tmp_path / "phrases" / "player" / "social.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(HaggleError) as refused:
        load_phrasebook(tmp_path / "phrases")
    assert complaint in str(refused.value) and "social.yaml" in refused.value.where


def test_an_act_without_phrases_is_named(tmp_path):
    shutil.copytree(PHRASES, tmp_path / "phrases")
    (tmp_path / "phrases" / "player" / "social.yaml").unlink()
    with pytest.raises(HaggleError, match="no phrases for attack_authority, attack_forged"):
        load_phrasebook(tmp_path / "phrases")


def test_the_shipped_configs_load_and_options_go_before_them():
    for path in sorted((CONFIGS / "data").glob("*.yaml")):
        if path.stem == "preferences":  # pairs, not dialogues
            continue
        config = load_data_config(path)
        assert config.train + config.test + config.corpus > 0
        assert override(config, train=7, seed=None) == config.model_copy(update={"train": 7})


def test_shops_can_be_of_the_other_splits_genres():
    goods = {
        split: {item.name for _, genre in split_genres(split) for item in genre.items}
        for split in SPLITS
    }
    config = DataConfig(seed=6, invented=0)
    expectations: tuple[tuple[str, Split, Split], ...] = (
        ("own", "test", "train"),
        ("train", "train", "test"),
        ("test", "test", "train"),
    )
    for genres, expected, other in expectations:
        sold = set()
        for number in range(10):
            changed = config.model_copy(update={"genres": genres})
            play, _ = make_dialogue(changed, "test", number)
            sold |= set(play.session.world.sellable_names)
        assert sold & goods[expected]
        assert not sold & (goods[other] - goods[expected])
