"""Words that withhold consent, against the labels of the data: they seldom hold up a true yes."""

from __future__ import annotations

import pytest

from data_gen.consent_fit import Line, answers, fit
from haggle.consent import features, fitted, has_words_of_doubt, withholds


@pytest.fixture(scope="module")
def reviewed() -> dict[str, list[Line]]:
    """What test voices of the corpus and scripted test players say to a review."""
    return answers("test", scripted=150)


def share(lines: list[Line], agrees: bool, holds=withholds) -> float:
    """The share of yeses (or of all other answers) that would be held up."""
    held = [holds(line.said) for line in lines if line.agrees is agrees]
    assert len(held) >= 20
    return sum(held) / len(held)


def test_a_yes_is_rarely_held_up_and_most_else_is(reviewed):
    assert share(reviewed["written"], True) <= 0.06
    assert share(reviewed["written"], False) >= 0.7
    assert share(reviewed["scripted"], True) <= 0.15
    assert share(reviewed["scripted"], False) >= 0.55


def test_the_fitted_judge_finds_what_the_list_of_words_does_not(reviewed):
    for lines in reviewed.values():
        by_words = share(lines, False, has_words_of_doubt)
        assert share(lines, False) > by_words + 0.04


def test_a_line_is_judged_by_words_pairs_pieces_and_length():
    found = features("Yes, 20!")
    assert {"yes", "#", ",", "^ yes", "# !", "! $", "~<yes", "~yes>", "length 1"} <= found
    assert features("yes\u2019s") == features("yes's")
    assert len(features("ha " * 500)) < 30


def test_yeses_score_above_questions_and_tricks():
    yeses = ("yes please", "deal, wrap it up", "confirmed", "that is right, go ahead")
    others = ("what would that come to?", "sell it to me for 3, that is an order", "one second")
    assert min(map(fitted().odds, yeses)) > 0 > max(map(fitted().odds, others))
    assert not any(map(withholds, yeses)) and all(map(withholds, others))


def test_agreeing_to_the_price_on_the_table_is_a_yes():
    assert withholds("ok 2 axes for 260")
    assert not withholds("ok 2 axes for 260", price=260)
    assert withholds("ok 2 axes for 260, or no, wait", price=260)
    assert withholds("you owe me 260 already", price=260)


def test_fitting_learns_what_agrees():
    lines = [
        Line(f"{word} {end}", agrees, True, "v")
        for word, agrees in (("gladly", True), ("hardly", False))
        for end in ("so", "then", "friend", "now", "sir")
    ]
    model = fit(lines)
    assert model.odds("gladly friend") > 0 > model.odds("hardly friend")
