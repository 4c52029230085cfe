"""Answers to reviews by writers who knew no rules, and by some who knew them: no line that does not agree closes a sale.

Each file of `reviews/` has carts (`# 2 lanterns, 1 rope = 410 gold | Haman`) and lines said to them:
`Y` agrees to exactly the terms, `N` does not. `pytest -rP` on this file prints how many close.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval.cases import Case, load_cases
from haggle.core.config import ROOT
from haggle.language.english.linker import English
from haggle.language.evidence import Consent, Judge, read_answer
from haggle.language.judge import load_judge
from haggle.language.terms import Good, Terms
from haggle.trade.replay import replay
from haggle.trade.review import terms_of
from haggle.trade.session import Session
from haggle.trade.world_io import load_worlds

SECOND = {  # said to a second question
    "again_attacked", "again_held_one", "again_held_three", "again_held_two", "asked_again", "judge_attacked_again", "second_held",
    "second_question",
}  # fmt: skip
# How many lines that do not agree a judge lets pass, of 6,519 in all: known, not mended.
LEAKS = {
    "again_attacked": 2,
    "judge_attacked": 1,
    "judge_attacked_again": 1,
    "yes_sayers": 1,
}
FILES = sorted((Path(__file__).parent / "reviews").glob("*.txt"))


def review(header: str) -> Terms:
    """The terms that a header states."""
    order, _, merchant = header.partition(" | ")
    goods, _, money = order.rpartition(" = ")
    price = re.search(r"[\d,.]*\d", money)
    assert price is not None
    found = [re.match(r"(\d+) (.+)", good) for good in goods.split(", ")]
    return Terms(
        tuple(Good(m[2], (m[2],), int(m[1])) for m in found if m is not None),
        float(price[0].replace(",", "")),
        (money[: price.start()] + money[price.end() :]).strip(),
        merchant,
    )


def answers(path: Path) -> Iterator[tuple[Terms, bool, str]]:
    """The lines of a file: the terms, whether the line agrees, and the line."""
    terms = None
    for text in path.read_text(encoding="utf-8").splitlines():
        if text.startswith("# "):
            terms = review(text[2:])
        elif text:
            label, _, line = text.partition("\t")
            assert label in ("Y", "N") and line and terms is not None
            yield terms, label == "Y", line


def closed(path: Path, judge: Judge | None) -> dict[bool, list[str]]:
    """The lines of a file that close a sale, by whether they should."""
    again = judge is not None and path.stem in SECOND
    found: dict[bool, list[str]] = {True: [], False: []}
    of = {True: 0, False: 0}
    for terms, agrees, line in answers(path):
        of[agrees] += 1
        if read_answer(line, terms, judge, again=again).verdict == "affirms":
            found[agrees].append(line)
    held = of[True] - len(found[True])
    print(f"{path.stem}: asked once more {held} of {of[True]} yeses, "
          f"{len(found[False])} of {of[False]} others close")  # fmt: skip
    assert of[False] > 100
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_answer_that_does_not_agree_closes_a_sale(path: Path) -> None:
    assert closed(path, None)[False] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_with_a_judge_hardly_another_one_does(path: Path) -> None:
    judge = load_judge("auto")
    if judge is None:
        pytest.skip("the extra `embeddings` is not installed")
    wrong = closed(path, judge)[False]
    assert len(wrong) <= LEAKS.get(path.stem, 0), wrong


def development(judged: bool) -> Iterator[tuple[Case, Terms, Consent]]:
    """The development set: each case, the terms that were reviewed, and its line to be read."""
    judge = load_judge("auto") if judged else None
    if judged and judge is None:
        pytest.skip("the extra `embeddings` is not installed")
    worlds = load_worlds(ROOT / "eval/benchmarks/worlds")
    for case in load_cases(ROOT / "eval/benchmarks/review-dev.jsonl", worlds):
        session = Session(worlds[case.world], linker=English(None, judge))
        for exchange in case.history:
            replay(session, exchange)
        terms = terms_of(session.world, session.cart, session.sale_price)
        consent = session.read(case.player).consent
        assert terms is not None and consent is not None
        yield case, terms, consent


@pytest.mark.parametrize(("judged", "most_held"), [(False, 0.35), (True, 0.25)])
def test_no_line_of_the_development_set_that_is_no_agreement_is_read_as_one(judged, most_held):
    """With the guard at `state` no other line can close a sale, with a judge and without."""
    held = yes = 0
    for case, terms, consent in development(judged):
        agrees = consent.answer(terms).verdict == "affirms"
        if "no" in case.tags:
            assert not agrees, case.player
        else:
            yes += 1
            held += not agrees
    assert held / yes <= most_held


@pytest.mark.parametrize("judged", [False, True], ids=["alone", "judged"])
def test_a_line_is_read_in_a_millisecond_and_with_a_judge_in_twenty(judged):
    """Half the lines alone, 95% of them with a judge. `pytest -rP` prints median and 95%."""
    took = []
    for _, terms, consent in development(judged):
        began = time.process_time()
        consent.answer(terms)
        took.append(1000 * (time.process_time() - began))
    median, most = statistics.median(took), statistics.quantiles(took, n=20)[-1]
    print(f"{len(took)} lines, median {median:.2f} ms, 95% within {most:.2f} ms")
    assert len(took) > 600
    if judged:
        assert most < 20.0
    else:
        assert median < 1.5, "1 ms on a quiet machine; a busy one gets half as much again"
