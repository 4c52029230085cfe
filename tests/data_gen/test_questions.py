"""Questions about goods, typed by hand: every file is whole, none repeats a benchmark, bad ones are
named."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from data_gen import questions
from data_gen.corpus_io import CORPUS, CorpusFile, corpus_worlds
from data_gen.questions import QUESTIONS, all_questions, read_questions
from haggle.core.config import ROOT, load_config
from haggle.core.errors import HaggleError
from training.encoder import read_rows
from training.sentences import Shop

from .conftest import grams

SHOP = "m_nailbox"
WORLDS = corpus_worlds()
FILES = sorted(QUESTIONS.glob("*.tsv"))


def test_each_good_is_needed_and_most_of_its_sentences_are_asked_for():
    for shop in all_questions():
        needed = {good for asked in shop.asked if asked.need for good in asked.goods}
        asked = {line.sentence for line in shop.asked if line.sentence is not None}
        sold = [item for item in WORLDS[shop.shop].inventory if item.for_sale]
        assert len(needed) >= 0.8 * len(sold), shop.shop
        assert not shop.sentences or len(asked) >= 0.4 * len(shop.sentences), shop.shop
        for line in shop.asked:
            assert line.sentence is None or [shop.owners[line.sentence]] == line.goods


def test_no_question_shares_six_words_with_a_benchmark(benchmark_grams):
    benchmark = set(benchmark_grams)
    files = (("questions.jsonl", "line"), ("needs.jsonl", "player"))
    for name, (file, field) in product(("questions-dev", "questions-held"), files):
        path = ROOT / "eval" / "benchmarks" / name / file
        for row in path.read_text(encoding="utf-8").splitlines():
            benchmark |= grams(json.loads(row)[field])
    assert len(benchmark) > len(benchmark_grams) + 500
    for shop in all_questions():
        for asked in shop.asked:
            assert not grams(asked.line) & benchmark, f"{shop.shop}: {asked.line}"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("nail\t1", "line 2: 2 fields, not three"),
        ("nail\t1\t ", "line 2: an empty field"),
        ("gold\tneed\tsomething shiny", "line 2: 'gold' is not sold there"),
        ("{id}|gold\tneed\tsomething shiny", "line 2: 'gold' is not sold there"),
        ("{id}|{id}\tnone\tis it wet?", "line 2: 'none' of several goods"),
        ("{id}\t99\thow long is it?", "line 2: '99' is no sentence of"),
        ("{id}\tneeds\tI want to hang a door", "line 2: 'needs' is no sentence of"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, row: str, complaint: str):
    first = (QUESTIONS / f"{SHOP}.tsv").read_text(encoding="utf-8").splitlines()[0]
    path = tmp_path / f"{SHOP}.tsv"
    item = first.split("\t")[0]
    path.write_text(f"{first}\n{row.replace('{id}', item)}\n", encoding="utf-8")
    with pytest.raises(HaggleError, match=complaint):
        read_questions(path)


def test_a_shop_that_is_not_there_and_an_empty_folder_are_named(tmp_path: Path):
    with pytest.raises(HaggleError, match="no files of questions here"):
        list(all_questions(tmp_path))
    (tmp_path / "no_such_shop.tsv").write_text("a\t1\tb\n", encoding="utf-8")
    with pytest.raises(HaggleError, match="no_such_shop"):
        list(all_questions(tmp_path))


def test_what_is_written_can_be_learned_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "questions.jsonl"
    monkeypatch.setattr("sys.argv", ["questions", "--out", str(out)])
    assert questions.main() == 0
    shops = read_rows(out, Shop, "shop", "data_gen.questions")
    assert f"{len(shops)} shops" in capsys.readouterr().out and len(shops) > len(FILES)
    assert [shop.shop for shop in shops[: len(FILES)]] == [path.stem for path in FILES]
    assert sum(len(shop.answered()) for shop in shops) > 9000
    asked = [row for shop in shops for row in shop.asked]
    assert sum(row["goods"] == [] for row in asked) > 500
    held = {
        turn.player
        for path in sorted(CORPUS.glob("*.yaml"))
        if (file := load_config(path, CorpusFile)).split == "test"
        for dialogue in file.dialogues
        for turn in dialogue.turns
    }
    long = {line for line in held if len(line.split()) > 6}
    assert len(long) > 500
    assert not long & {row["line"] for row in asked}
