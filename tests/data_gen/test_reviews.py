"""Answers to reviews, typed by hand: every file is whole, none repeats a benchmark, bad ones are
named."""

from __future__ import annotations

from pathlib import Path

import pytest

from data_gen import reviews
from data_gen.reviews import REVIEWS, all_answers, read_answers, read_reviews
from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from training.consent import Row
from training.encoder import read_rows

from .conftest import grams

WRITERS = sorted(path.stem for path in REVIEWS.glob("*.tsv"))


def test_every_review_is_agreed_to_and_not_agreed_to_by_its_writer():
    found = list(all_answers())
    assert {one.review for one in found} == read_reviews().keys()
    assert {one.writer for one in found} == set(WRITERS)
    for agrees in (True, False):
        said = {one.review for one in found if one.agrees is agrees}
        assert said == read_reviews().keys()
    assert all(one.review[0] == one.writer[0] for one in found)
    labels = {(one.again, one.review, one.line.casefold()): one.agrees for one in found}
    assert len(labels) == len(found)


def test_no_answer_shares_six_words_with_a_benchmark(benchmark_grams):
    for one in all_answers():
        assert not grams(one.line) & benchmark_grams.keys(), f"{one.writer}: {one.line}"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("a1\tyes", "line 2: 2 fields, not three"),
        ("a1\tyes\t ", "line 2: an empty field"),
        ("zz\tyes\tdone", "line 2: no review 'zz'"),
        ("a1\tmaybe\tdone", "line 2: 'maybe' is no label"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, row: str, complaint: str):
    path = tmp_path / "a.tsv"
    path.write_text(f"a1\tyes\tdone\n{row}\n", encoding="utf-8")
    with pytest.raises(HaggleError, match=complaint):
        list(read_answers(path, read_reviews()))


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ("{world: m_nailbox, cart: {Gold Bar: 1}, price: 9}", "not sold there: Gold Bar"),
        ("{world: m_nailbox, cart: {}, price: 9}", "the cart is empty"),
        ("{world: m_nailbox, cart: {}}", "price"),
        ("{world: no_such_shop, cart: {Rope: 1}, price: 9}", "no_such_shop"),
    ],
)
def test_a_wrong_review_and_an_empty_folder_are_named(tmp_path: Path, told: str, complaint: str):
    (tmp_path / "carts.yaml").write_text(f"a1: {told}\n", encoding="utf-8")
    with pytest.raises(HaggleError, match=complaint):
        read_reviews(tmp_path)
    (tmp_path / "carts.yaml").write_text("{}\n", encoding="utf-8")
    with pytest.raises(HaggleError, match=r"no files of answers here|empty"):
        list(all_answers(tmp_path))


def test_what_is_written_can_be_learned_from_and_names_no_goods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "reviews.jsonl"
    monkeypatch.setattr("sys.argv", ["reviews", "--out", str(out)])
    assert reviews.main() == 0
    rows = read_rows(out, Row, "answer", "data_gen.reviews")
    assert f"{sum(row.agrees for row in rows)} lines that agree" in capsys.readouterr().out
    assert {row.writer for row in rows} == set(WRITERS)
    told = {row.line: row.text for row in rows}
    assert told["Aye, that's the lot. Four ladders."] == "Aye, that's the lot. the goods."


def test_no_answer_shares_six_words_with_the_second_answers_held_out():
    held = set()
    for path in (ROOT / "tests/haggle/language/reviews").glob("again_held_*.txt"):
        for row in path.read_text(encoding="utf-8").splitlines():
            held |= grams(row.partition("\t")[2])
    assert len(held) > 500
    for one in all_answers():
        assert not grams(one.line) & held, f"{one.writer}: {one.line}"
