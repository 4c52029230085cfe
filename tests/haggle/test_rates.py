"""Rates as people read them."""

from __future__ import annotations

import pytest

from haggle.rates import (
    clustered_difference,
    clustered_mean,
    clustered_rate,
    cohens_kappa,
    points_text,
    rate,
    rate_text,
    share,
)


@pytest.mark.parametrize(
    ("value", "low", "high", "told"),
    [
        (0.8273, 0.7459, 0.8865, "82.7% (75 to 89)"),
        (0.9989, 0.9968, 0.9996, "99.9% (99.7 to 100)"),
        (1.0, 0.9918, 1.0, "100.0% (99.2 to 100)"),
        (0.0091, 0.0016, 0.0497, "0.9% (0.2 to 5)"),
        (0.0, 0.0, 0.034, "0.0% (0 to 3)"),
    ],
)
def test_a_bound_near_all_or_nothing_is_told_to_a_tenth(value, low, high, told):
    assert rate_text({"value": value, "low": low, "high": high}) == told


def test_what_was_not_measured_says_so():
    nothing = {"value": None, "low": None, "high": None}
    assert rate_text(nothing) == "n/a" and rate_text(nothing, "not measured") == "not measured"


def test_a_difference_has_its_sign():
    assert points_text({"value": -0.04, "low": -0.068, "high": 0.013}) == "-4.0 (-6.8 to +1.3)"


def test_a_rate_of_groups_is_wider_than_one_of_single_turns():
    groups = [[True] * 10, [True] * 10, [False] * 10, [True] * 10, [False] * 10, [True] * 10]
    told, single = clustered_rate(groups), share(turn for group in groups for turn in group)
    assert (told["value"], told["n"], told["passed"]) == (single["value"], 60, 40)
    assert told["low"] < single["low"] and told["high"] > single["high"]
    assert clustered_rate(groups) == told, "the draws are fixed"


def test_none_of_all_turns_keeps_a_width_by_the_number_of_groups():
    told = clustered_rate([[False] * 9] * 12)
    assert (told["value"], told["low"]) == (0, 0) and told["high"] == share([False] * 12)["high"]
    assert clustered_rate([[], []])["value"] is None


def test_means_and_differences_of_groups():
    told = clustered_mean([[1, 3], [2], [8, 8, 8]])
    assert told["value"] == 5 and told["low"] < 5 < told["high"]
    assert clustered_mean([[2, 4]]) == {"value": 3, "n": 2, "low": None, "high": None}
    good, bad = [[True] * 4, [True] * 4, [True, False]], [[False] * 4, [True] * 4, [False] * 2]
    difference = clustered_difference(good, bad)
    assert difference["value"] == pytest.approx(0.5)
    assert difference["low"] < 0.5 < difference["high"]
    same = clustered_difference(good, good)
    assert same["value"] == 0 and same["low"] < 0 < same["high"]


def test_kappa_is_that_of_the_textbook():
    pairs = [("a", "a")] * 20 + [("a", "b")] * 5 + [("b", "a")] * 10 + [("b", "b")] * 15
    told = cohens_kappa([pair] for pair in pairs)
    assert told["value"] == pytest.approx(0.4) and told["agreed"] == 0.7 and told["n"] == 50
    assert told["low"] < 0.4 < told["high"]
    assert cohens_kappa([[("a", "a")] * 5])["value"] is None
    assert cohens_kappa([])["agreed"] is None


@pytest.mark.parametrize("n", [1, 7, 110, 1000])
def test_an_interval_is_scipys_wilson_interval(n):
    binomtest = pytest.importorskip("scipy.stats").binomtest
    for passed in {0, 1, n // 3, n - 1, n}:
        expected = binomtest(passed, n).proportion_ci(0.95, method="wilson")
        found = rate(passed, n)
        assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high))
