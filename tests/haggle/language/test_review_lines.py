"""Answers to reviews by twelve writers who knew no rules, and two who knew them: no line that does not agree closes a sale.

Each file of `reviews/` has carts (`# 2 lanterns, 1 rope = 410 gold | Haman`) and lines said to them:
`Y` agrees to exactly the terms, `N` does not. `pytest -rP` on this file prints how many close.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from haggle.language.evidence import read_answer
from haggle.language.terms import Good, Terms

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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_answer_that_does_not_agree_closes_a_sale(path: Path) -> None:
    closed = {True: 0, False: 0}
    wrongful, of = [], dict(closed)
    for terms, agrees, line in answers(path):
        of[agrees] += 1
        if read_answer(line, terms).verdict == "affirms":
            closed[agrees] += 1
            if not agrees:
                wrongful.append(line)
    print(f"{path.stem}: asked once more {of[True] - closed[True]} of {of[True]} yeses")
    assert wrongful == []
    assert of[False] > 100
