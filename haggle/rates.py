"""Rates, differences of rates and quantiles, with their intervals; and as people read them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Rate = dict[str, Any]
Z = statistics.NormalDist().inv_cdf(0.975)
NEAR = 2.0  # per cent from none or all, within which a bound is told to a tenth
DRAWS = 2000  # of a bootstrap


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


def percentiles(
    values: Sequence[float], shares: Sequence[int] = (50, 95)
) -> dict[str, float | None]:
    """`p50`, `p95`: the values below which such shares (in per cent) lie, by linear interpolation;
    None without values."""
    ordered = sorted(values)

    def at(share: int) -> float | None:
        if not ordered:
            return None
        position = share / 100 * (len(ordered) - 1)
        low = int(position)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (position - low)

    return {f"p{share}": at(share) for share in shares}


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and standard deviation, as the papers give tokens and time."""
    if not values:
        return {"mean": None, "sd": None}
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"mean": statistics.fmean(values), "sd": sd}


def rate_text(rate: Mapping[str, Any], missing: str = "n/a") -> str:
    """`82.7% (75 to 89)`, `99.9% (99.7 to 100)`: a rate with its interval where it has one, or
    `missing` where nothing was measured."""
    if rate["value"] is None:
        return missing
    if rate["low"] is None:  # a single group tells nothing of others
        return f"{100 * rate['value']:.1f}%"
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


def clustered_rate(groups: Iterable[Sequence[bool]]) -> Rate:
    """A proportion whose observations come in groups (the turns of a conversation), with its 95%
    interval from a bootstrap over groups.

    Where the draws do not differ (none or all passed), the interval is Wilson's with one
    observation a group: a bootstrap would have no width. `passed` is beside the keys of `rate`.
    """
    outcomes = [list(group) for group in groups if len(group)]
    if not outcomes:
        return rate(0, 0)
    counts = [(float(sum(group)), float(len(group))) for group in outcomes]
    passed, n = sum(map(sum, outcomes)), sum(map(len, outcomes))
    value = passed / n
    low, high = _bootstrap(counts, _ratio)
    if math.isclose(low, high):
        wide = rate(round(value * len(outcomes)), len(outcomes))
        low, high = min(value, wide["low"]), max(value, wide["high"])
    return {"value": value, "n": n, "passed": passed, "low": low, "high": high}


def clustered_mean(groups: Iterable[Sequence[float]]) -> Rate:
    """The mean of observations that come in groups, with its 95% interval as `clustered_rate` has
    it; None for both ends with a single group."""
    values = [list(group) for group in groups if len(group)]
    if not values:
        return {"value": None, "n": 0, "low": None, "high": None}
    n = sum(map(len, values))
    value = sum(map(sum, values)) / n
    if len(values) == 1:
        return {"value": value, "n": n, "low": None, "high": None}
    low, high = _bootstrap([(float(sum(g)), float(len(g))) for g in values], _ratio)
    return {"value": value, "n": n, "low": low, "high": high}


def harmonic_of_means(pairs: Sequence[tuple[float, float]]) -> Rate:
    """The harmonic mean of two means (F1 of mean precision and mean recall), with its 95% interval
    from a bootstrap over the pairs; None for both ends with a single pair."""
    if not pairs:
        return {"value": None, "n": 0, "low": None, "high": None}

    def f1(sums: Any) -> Any:
        import numpy as np

        total = sums.sum(axis=1)
        product = 2 * sums[:, 0] * sums[:, 1]
        return np.divide(product, total, out=np.zeros_like(total), where=total > 0) / len(pairs)

    one, two = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    value = 2 * one * two / (one + two) if one + two else 0.0
    low, high = _bootstrap(pairs, f1) if len(pairs) > 1 else (None, None)
    return {"value": value, "n": len(pairs), "low": low, "high": high}


def clustered_difference(
    mine: Sequence[Sequence[bool]], reference: Sequence[Sequence[bool]]
) -> Rate:
    """Difference of two proportions, `mine` minus `reference`, of the same groups in the same order
    (two runs over the same goals), with its 95% interval from a bootstrap over groups.

    Where the draws do not differ the interval is that of two independent rates.
    """
    one, two = clustered_rate(mine), clustered_rate(reference)
    n = min(one["n"], two["n"])
    if not n:
        return {"value": None, "n": 0, "low": None, "high": None}
    pairs = zip(mine, reference, strict=True)
    counts = [(float(sum(a)), float(len(a)), float(sum(b)), float(len(b))) for a, b in pairs]
    low, high = _bootstrap(counts, lambda sums: _ratio(sums[:, :2]) - _ratio(sums[:, 2:]))
    if math.isclose(low, high):
        return independent_difference(one, two)
    return {"value": one["value"] - two["value"], "n": n, "low": low, "high": high}


def cohens_kappa(groups: Iterable[Sequence[tuple[str, str]]]) -> Rate:
    """Cohen's kappa of two judges (Educational and Psychological Measurement 20, 1960, 37-46) over
    pairs of labels that come in groups, with its 95% interval from a bootstrap over groups.

    `agreed` is the share of equal labels. The value is None where chance alone explains all: both
    judges gave one and the same label throughout.
    """
    pairs = [list(group) for group in groups if len(group)]
    flat = [pair for group in pairs for pair in group]
    nothing: Rate = {"value": None, "n": len(flat), "low": None, "high": None, "agreed": None}
    if not flat:
        return nothing
    nothing["agreed"] = sum(a == b for a, b in flat) / len(flat)
    names = sorted({label for pair in flat for label in pair})
    if len(names) == 1:
        return nothing
    cells = [(a, b) for a in names for b in names]
    counts = [tuple(float(group.count(cell)) for cell in cells) for group in pairs]

    def kappa(sums: Any) -> Any:
        import numpy as np

        table = sums.reshape(-1, len(names), len(names)) / sums.sum(axis=1)[:, None, None]
        agreed = np.trace(table, axis1=1, axis2=2)
        chance = (table.sum(axis=1) * table.sum(axis=2)).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return (agreed - chance) / (1 - chance)

    import numpy as np

    value = float(kappa(np.array(counts).sum(axis=0)[None, :])[0])
    low, high = _bootstrap(counts, kappa)
    return nothing | {"value": value, "low": low, "high": high}


def _ratio(sums: Any) -> Any:
    """The first column over the second; not a number where a draw has no observation."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        return sums[:, 0] / sums[:, 1]


def _bootstrap(
    counts: Sequence[tuple[float, ...]], statistic: Callable[[Any], Any]
) -> tuple[float, float]:
    """The 95% percentile interval of a statistic of the sums of `counts`, a row for each group."""
    import numpy as np

    k = len(counts)
    drawn = np.random.default_rng(0).multinomial(k, [1 / k] * k, size=DRAWS)
    values = statistic(drawn @ np.array(counts, dtype=float))
    low, high = np.nanpercentile(values, (2.5, 97.5))
    return float(low), float(high)
