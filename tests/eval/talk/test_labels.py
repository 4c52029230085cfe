"""Conversations become training data once a person has labelled them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from data_gen import corpus_io
from eval.talk.conversation import Table, load_table
from eval.talk.labels import write_corpus, write_draft
from haggle.core.errors import HaggleError
from haggle.trade.world_io import load_world


@pytest.fixture
def table(played) -> Table:
    return load_table(played()[0].out)


@pytest.fixture
def draft(table: Table, tmp_path: Path) -> Path:
    path = tmp_path / "draft.yaml"
    assert write_draft(table, path) == 5
    return path


def labelled(path: Path, **rights: object) -> Path:
    """The draft with a label for each turn: yes where nothing else is said."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    for dialogue in data["dialogues"]:
        for number, turn in enumerate(dialogue["turns"], start=1):
            turn["right"] = rights.get(f"{dialogue['id']}{number}", "yes")
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


def test_a_draft_says_what_was_said_and_done(draft):
    talk, *_ = yaml.safe_load(draft.read_text(encoding="utf-8"))["dialogues"]
    first = talk["turns"][0]
    assert (first["player"], first["cart"], first["right"]) == ("an axe please", "cart []", "?")
    assert first["did"]["cart"] == {"Sharp Axe": 1} and first["did"]["state"] == "OFFER_SELL"


def test_a_labelled_draft_becomes_a_corpus_file_that_plays(
    draft, tmp_path, monkeypatch, goals_file
):
    right = {"state": "CASUAL", "say": "No wands here."}
    corpus = tmp_path / "voice.yaml"
    assert write_corpus(labelled(draft, ask1="drop", none1=right), corpus) == (2, 4)
    worlds = {"stall": load_world(goals_file.with_name("stall.yaml"))}
    monkeypatch.setattr(corpus_io, "corpus_worlds", lambda: worlds)
    rows = list(corpus_io.corpus_rows(files=[corpus]))
    assert [len(row["turns"]) for row in rows] == [3, 1]


def test_a_turn_without_a_label_is_named(draft, tmp_path):
    with pytest.raises(HaggleError, match="is not labelled yet") as refused:
        write_corpus(draft, tmp_path / "voice.yaml")
    assert "axe, turn 1" in str(refused.value) and not (tmp_path / "voice.yaml").exists()


def test_a_draft_is_never_written_over(draft, table):
    with pytest.raises(HaggleError, match="is there already"):
        write_draft(table, draft)
