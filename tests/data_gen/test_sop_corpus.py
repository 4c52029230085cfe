"""The hand-written dialogues with characters that keep to a procedure."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from data_gen.config import DataConfig
from data_gen.dataset.shards import plan
from data_gen.sop.corpus import CORPUS, corpus_rows
from data_gen.sop.facts import numbers, unknown_numbers
from haggle.core.errors import HaggleError
from haggle.sop.domain import Talk
from haggle.sop.task import load_task

TURNS = [
    {"player": "hi", "user": "Greeting", "act": "AskName", "say": "Who are you?"},
    {"player": "I am Pip Sorrel.", "user": "GivesName", "act": "AskPass", "say": "Your pass?"},
    {"player": "Here is my pass.", "user": "ShowsPass", "act": "AskErrand", "say": "Why?"},
]
GATE = {"task": "gatekeeper", "profile": {"Name": "Pip Sorrel"}, "turns": TURNS}


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return list(corpus_rows())  # raises, naming file, dialogue and turn


def test_there_are_enough_dialogues_with_every_task_in_many_voices(rows):
    learnt = [row for row in rows if row["id"].startswith("corpus-train-")]
    held = [row for row in rows if row["id"].startswith("corpus-test-")]
    assert len(learnt) >= 150 and len({row["player"] for row in learnt}) >= 14
    assert len(held) >= 20 and len(rows) == len({row["id"] for row in rows})
    for part, split in ((learnt, "train"), (held, "test")):
        tasks = {row["world"] for row in part}
        assert len(tasks) == 10 and {load_task(name).split for name in tasks} == {split}
    assert all(3 <= len(row["turns"]) <= 10 for row in rows)


def test_few_lines_are_said_twice(rows):
    lines = [turn["player"].casefold() for row in rows for turn in row["turns"]]
    assert len(set(lines)) > 0.9 * len(lines)


def test_no_line_stands_in_both_splits_but_what_the_task_makes_one_say(rows):
    said: dict[str, set[str]] = {"train": set(), "test": set()}
    for row in rows:
        said[row["id"].split("-")[1]] |= {t["player"].casefold() for t in row["turns"]}
    assert not said["train"] & said["test"]


def test_the_corpus_goes_into_the_data_set_by_split_and_character():
    shards = plan(DataConfig(character="all", train=3, test=0, corpus=2))
    assert [(s.split, s.corpus) for s in shards] == [
        ("train", False), ("train", True), ("train", True), ("test", True), ("test", True)
    ]  # fmt: skip
    own = list(corpus_rows("train", "gatekeeper"))
    assert own and {row["world"] for row in own} == {"gatekeeper"}
    assert not list(corpus_rows("test", "gatekeeper"))


def write(path: Path, *dialogues: dict, split: str = "train") -> Path:
    data = {"voice": "odd", "split": split, "dialogues": list(dialogues)}
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("turn", "change", "words"),
    [
        (1, {"user": "GivesNam"}, "no user state 'GivesNam' after AskName"),
        (1, {"act": "AskErrand"}, "no step 'AskErrand' after AskName"),
        (1, {"player": "Pip Sorrel sent me."}, "is no evidence of 'GivesName'"),
        (1, {"user": "HidesName", "act": "AskName"}, "is no evidence of 'HidesName'"),
        (2, {"say": "The toll is 7 gold. Why?"}, "nobody told the number 7"),
        (2, {"say": 'He said "no".'}, "cannot be decoded"),
    ],
)
def test_a_mistake_is_told_with_file_dialogue_and_turn(tmp_path, turn, change, words):
    turns = [t | (change if n == turn else {}) for n, t in enumerate(TURNS)]
    file = write(tmp_path / "odd.yaml", GATE, GATE | {"turns": turns})
    with pytest.raises(HaggleError) as error:
        list(corpus_rows(files=[file]))
    assert words in str(error.value)
    assert f"odd.yaml: dialogue 2, turn {turn + 1}" in str(error.value)


@pytest.mark.parametrize(
    ("dialogue", "split", "words"),
    [
        (GATE | {"profile": {"Nam": "x"}}, "train", "profile: unknown key 'Nam'"),
        (GATE | {"task": "gatekeper"}, "train", "'gatekeper'"),
        (GATE, "test", "'gatekeeper' is a train task"),
    ],
)
def test_a_dialogue_of_another_kind_is_told(tmp_path, dialogue, split, words):
    file = write(tmp_path / "odd.yaml", dialogue, split=split)
    with pytest.raises(HaggleError) as error:
        list(corpus_rows(files=[file]))
    assert words in str(error.value) and "odd.yaml: dialogue 1" in str(error.value)


def test_nothing_is_said_after_the_end(tmp_path):
    bye = {"player": "bye", "user": "Other", "act": "Farewell", "say": "Farewell."}
    leave = {"player": "no", "user": "HidesName", "act": "TurnAway", "say": "Then go."}
    file = write(tmp_path / "odd.yaml", GATE | {"turns": [TURNS[0], leave, bye, bye]})
    with pytest.raises(HaggleError, match="has ended"):
        list(corpus_rows(files=[file]))


def test_numbers_come_from_the_task_or_the_talk():
    talk = Talk(load_task("ferryman"))
    assert numbers("Three silver, or 12.") == {"3", "12"}
    assert unknown_numbers("That is three silver.", talk) == set()
    assert unknown_numbers("That is 4 silver.", talk) == {"4"}
    assert unknown_numbers("Four heads, then.", talk, "We are 4.") == set()


def test_the_files_are_where_the_package_looks():
    assert len(list(CORPUS.glob("*.yaml"))) >= 16
