"""Rates as people read them."""

from __future__ import annotations

import pytest

from haggle.rates import points_text, rate, rate_text


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


@pytest.mark.parametrize("n", [1, 7, 110, 1000])
def test_an_interval_is_scipys_wilson_interval(n):
    binomtest = pytest.importorskip("scipy.stats").binomtest
    for passed in {0, 1, n // 3, n - 1, n}:
        expected = binomtest(passed, n).proportion_ci(0.95, method="wilson")
        found = rate(passed, n)
        assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high))
