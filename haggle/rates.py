"""Rates with their intervals, as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Rate = dict[str, Any]
NEAR = 2.0  # per cent from none or all, within which a bound is told to a tenth


def rate(passed: int, total: int) -> Rate:
    """A proportion with its 95% Wilson interval: `value`, `n`, `passed`, `low`, `high`.

    Without observations the value and interval are None.
    """
    from scipy.stats import binomtest

    if total == 0:
        return {"value": None, "n": 0, "passed": 0, "low": None, "high": None}
    interval = binomtest(passed, total).proportion_ci(0.95, method="wilson")
    return {
        "value": passed / total,
        "n": total,
        "passed": passed,
        "low": float(interval.low),
        "high": float(interval.high),
    }


def rate_text(rate: Mapping[str, Any], missing: str = "n/a") -> str:
    """`82.7% (75 to 89)`, `99.9% (99.7 to 100)`: a rate with its interval, or `missing` where
    nothing was measured."""
    if rate["value"] is None:
        return missing
    return f"{100 * rate['value']:.1f}% ({_bound(rate['low'])} to {_bound(rate['high'])})"


def points_text(difference: Mapping[str, Any]) -> str:
    """`+1.5 (-0.3 to +3.2)`: a difference of two rates in points, with its interval."""
    low, value, high = (100 * difference[key] for key in ("low", "value", "high"))
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f})"


def _bound(share: float) -> str:
    percent = 100 * share
    near = NEAR > percent > 0 or 100 - NEAR < percent < 100
    text = f"{percent:.1f}" if near else f"{percent:.0f}"
    return text.removesuffix(".0")
