"""Rates, differences of rates and quantiles, with their intervals; and as people read them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Rate = dict[str, Any]
Z = statistics.NormalDist().inv_cdf(0.975)
NEAR = 2.0  # per cent from none or all, within which a bound is told to a tenth


def rate(passed: int, total: int) -> Rate:
    """A proportion with its 95% Wilson interval: `value`, `n`, `passed`, `low`, `high`.

    Without observations the value and interval are None.
    """
    if total == 0:
        return {"value": None, "n": 0, "passed": 0, "low": None, "high": None}
    value, spread = passed / total, Z * Z / total
    middle = (value + spread / 2) / (1 + spread)
    reach = math.sqrt(value * (1 - value) * spread + spread * spread / 4) / (1 + spread)
    return {
        "value": value,
        "n": total,
        "passed": passed,
        "low": max(0.0, middle - reach) if passed else 0.0,
        "high": min(1.0, middle + reach) if passed < total else 1.0,
    }


def share(outcomes: Iterable[bool]) -> Rate:
    """The rate of true outcomes."""
    values = list(outcomes)
    return rate(sum(values), len(values))


def paired_difference(mine: Sequence[bool], reference: Sequence[bool]) -> Rate:
    """Difference of two shares measured on the same turns, `mine` minus `reference`, with its 95%
    interval: Newcombe's method 10 (Statistics in Medicine 17, 1998, 2635-2650).

    It combines the Wilson intervals of both shares by how far the outcomes go together, so it keeps
    a width where a bootstrap has none (no turn differs). Also `gained` and `lost` turns.
    """
    n = len(mine)
    pairs = list(zip(mine, reference, strict=True))
    gained = sum(a and not b for a, b in pairs)
    lost = sum(b and not a for a, b in pairs)
    both = sum(a and b for a, b in pairs)
    neither = n - both - gained - lost
    if not n:
        return {"value": None, "n": 0, "low": None, "high": None, "gained": 0, "lost": 0}
    one, two = share(mine), share(reference)
    phi = _phi(both, gained, lost, neither)
    difference = (gained - lost) / n

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(0.0, a * a - 2 * phi * a * b + b * b))

    down = reach(one["value"] - one["low"], two["high"] - two["value"])
    up = reach(one["high"] - one["value"], two["value"] - two["low"])
    return {
        "value": difference,
        "n": n,
        "low": max(-1.0, difference - down),
        "high": min(1.0, difference + up),
        "gained": gained,
        "lost": lost,
    }


def independent_difference(mine: Rate, reference: Rate) -> Rate:
    """Difference of two rates measured on different turns, with its 95% interval: Newcombe's method
    10 for independent samples (Statistics in Medicine 17, 1998, 873-890)."""
    a, b = mine, reference
    down = math.hypot(a["value"] - a["low"], b["high"] - b["value"])
    up = math.hypot(a["high"] - a["value"], b["value"] - b["low"])
    difference = a["value"] - b["value"]
    return {
        "value": difference,
        "n": min(a["n"], b["n"]),
        "low": max(-1.0, difference - down),
        "high": min(1.0, difference + up),
    }


def _phi(both: int, gained: int, lost: int, neither: int) -> float:
    """Correlation of the two outcomes, with Newcombe's correction for continuity."""
    margins = (both + gained) * (lost + neither) * (both + lost) * (gained + neither)
    if not margins:
        return 0.0
    product: float = both * neither - gained * lost
    if product > 0:
        product = max(product - (both + gained + lost + neither) / 2, 0)
    return product / math.sqrt(margins)


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """`p50` and `p95` by linear interpolation; None without values."""
    if not values:
        return {"p50": None, "p95": None}
    ordered = sorted(values)

    def at(q: float) -> float:
        position = q * (len(ordered) - 1)
        low = int(position)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (position - low)

    return {"p50": at(0.5), "p95": at(0.95)}


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and standard deviation, as the papers give tokens and time."""
    if not values:
        return {"mean": None, "sd": None}
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"mean": statistics.fmean(values), "sd": sd}


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
