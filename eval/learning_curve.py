"""Joint accuracy against training tokens, and where the curve would lead.

    haggle eval learning-curve runs/train/smollm2_135m --dataset runs/data/unseen --out runs/curve

Every checkpoint of a run answers the same turns. The share of wrong answers is fitted as a power
law of the tokens, `error = a * tokens ** -b`, by least squares of the logarithms. Intervals come
from a bootstrap over turns: a draw takes the same turns for all checkpoints, so what is hard for
each of them does not widen the slope. As a check on itself the law is fitted without the last point
too, and its forecast of that point is written beside what was measured.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.compare import AnsweredRun, common_turns
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_path, write_json
from haggle.rates import share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST_POINTS = 3
DRAWS = 2000
FURTHER = (2, 4, 10)  # times the last point's tokens that are forecast
FARTHEST = 100  # times the last point's tokens beyond which no number is told
INTERVAL = (2.5, 97.5)


def learning_curve(points: Sequence[tuple[int, AnsweredRun]], goal: float = 0.96) -> dict[str, Any]:
    """The curve through answered runs, each with the tokens trained on before it.

    Gives `n` turns, the `points` (tokens, run, joint with its Wilson interval), the `law` (a, b and
    b's 95% interval), `forecast` (joint at 2, 4 and 10 times the tokens), `goal` with the `tokens`
    that the law asks for it (None with a `why` where it tells nothing) and `backtest`. Raises
    HaggleError for fewer than three points, two of the same tokens, or runs over other turns.
    """
    import numpy as np

    check_goal(goal)
    if len(points) < LEAST_POINTS:
        raise HaggleError(
            f"a curve wants {LEAST_POINTS} checkpoints or more, not {len(points)}",
            hint="train with a smaller trainer.save_steps and a larger save_total_limit",
        )
    points = sorted(points, key=lambda point: point[0])
    tokens = np.array([amount for amount, _ in points], dtype=float)
    if tokens[0] <= 0 or np.any(np.diff(tokens) <= 0):
        raise HaggleError("two checkpoints have the same tokens behind them, or none")
    runs = [run for _, run in points]
    ids = common_turns(runs)
    wrong = np.array([[not run.records[key]["joint"] for key in ids] for run in runs])
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(ids), size=(DRAWS, len(ids)))
    laws = _laws(tokens, wrong, drawn)
    return {
        "n": len(ids),
        "points": [
            {"tokens": amount, "run": run.name, "joint": share((~missed).tolist())}
            for (amount, run), missed in zip(points, wrong, strict=True)
        ],
        "law": _law(laws),
        "forecast": [
            {"tokens": int(times * tokens[-1]), "times": times}
            | _joint_at(laws, times * tokens[-1])
            for times in FURTHER
        ],
        "goal": {"joint": goal} | _tokens_for(laws, 1 - goal, float(tokens[-1])),
        "backtest": _backtest(tokens, wrong, drawn),
    }


def check_goal(goal: float) -> None:
    """Raise HaggleError for a joint accuracy that is no share."""
    if not 0 < goal < 1:
        raise HaggleError(f"is a share between 0 and 1, not {goal}", where="--goal")


def write_learning_curve(curve: dict[str, Any], out: Path) -> tuple[Path, Path]:
    """Write `learning_curve.json` and `learning_curve.png` to the directory `out`; gives both."""
    out.mkdir(parents=True, exist_ok=True)
    figures, picture = out / "learning_curve.json", out / "learning_curve.png"
    write_json(figures, curve)
    drawn = _draw(curve)
    with atomic_path(picture) as temporary:
        temporary.write_bytes(drawn)
    return figures, picture


def _laws(
    tokens: NDArray[np.float64], wrong: NDArray[np.bool_], drawn: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """log a and b: first of all turns as they are, then of each draw. Half an error is added, so
    that a point without any keeps a logarithm."""
    import numpy as np

    n = wrong.shape[1]
    counts = np.concatenate([wrong.sum(axis=1)[:, None], wrong[:, drawn].sum(axis=2)], axis=1)
    errors = np.log((counts + 0.5) / (n + 1))
    slope, level = np.polyfit(np.log(tokens), errors, 1)
    return level, -slope


def _law(laws: tuple[NDArray[np.float64], NDArray[np.float64]]) -> dict[str, float]:
    import numpy as np

    level, slope = laws
    low, high = np.percentile(slope[1:], INTERVAL)
    return {
        "a": float(np.exp(level[0])),
        "b": float(slope[0]),
        "b_low": float(low),
        "b_high": float(high),
    }


def _joint_at(
    laws: tuple[NDArray[np.float64], NDArray[np.float64]], tokens: float
) -> dict[str, float]:
    """Joint accuracy that the law gives after so many tokens, with the interval of its draws."""
    import numpy as np

    level, slope = laws
    joint = 1 - np.minimum(1.0, np.exp(level - slope * np.log(tokens)))
    low, high = np.percentile(joint[1:], INTERVAL)
    return {"value": float(joint[0]), "low": float(low), "high": float(high)}


def _tokens_for(
    laws: tuple[NDArray[np.float64], NDArray[np.float64]], error: float, last: float
) -> dict[str, Any]:
    """The tokens after which the law comes down to `error`."""
    import numpy as np

    level, slope = laws
    if np.percentile(slope[1:], INTERVAL[0]) <= 0:
        return {"tokens": None, "why": "the slope cannot be told from zero"}
    needed = (level[0] - np.log(error)) / slope[0]  # its logarithm
    if needed > np.log(FARTHEST * last):
        return {"tokens": None, "why": f"more than {FARTHEST} times the tokens trained on"}
    return {"tokens": int(np.exp(needed)), "why": None}


def _backtest(
    tokens: NDArray[np.float64], wrong: NDArray[np.bool_], drawn: NDArray[np.int64]
) -> dict[str, Any] | None:
    """What the law of all points but the last says of the last."""
    if len(tokens) <= LEAST_POINTS:
        return None
    told = _joint_at(_laws(tokens[:-1], wrong[:-1], drawn), float(tokens[-1]))
    return told | {"measured": float(1 - wrong[-1].mean())}


def _draw(curve: dict[str, Any]) -> bytes:
    """The picture: points with their intervals, the law through and beyond them."""
    try:
        import matplotlib.figure
    except ImportError:
        raise HaggleError("matplotlib is not installed", hint="pip install matplotlib") from None
    import numpy as np
    from matplotlib.ticker import EngFormatter

    points, law = curve["points"], curve["law"]
    tokens = np.array([point["tokens"] for point in points], dtype=float)
    joint = np.array([point["joint"]["value"] for point in points])
    reach = [
        joint - [point["joint"]["low"] for point in points],
        [point["joint"]["high"] for point in points] - joint,
    ]
    figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout="constrained")
    axis = figure.subplots()
    axis.errorbar(tokens, 100 * joint, 100 * np.abs(reach), fmt="o", capsize=3, label="measured")
    along = np.geomspace(tokens[0], FURTHER[-1] * tokens[-1], 200)
    fitted = 100 * (1 - np.minimum(1.0, law["a"] * along ** -law["b"]))
    inside = along <= tokens[-1]
    axis.plot(along[inside], fitted[inside], color="C1", label="power law")
    axis.plot(along[~inside], fitted[~inside], ":", color="C1", label="extrapolated")
    ahead = curve["forecast"]
    axis.fill_between(
        [point["tokens"] for point in ahead],
        [100 * point["low"] for point in ahead],
        [100 * point["high"] for point in ahead],
        color="C1",
        alpha=0.15,
        label="95% interval",
    )
    axis.axhline(100 * curve["goal"]["joint"], color="gray", linewidth=0.8, linestyle="--")
    axis.set(xscale="log", ylim=(0, 100), xlabel="training tokens", ylabel="joint accuracy in %")
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.set_title(f"{curve['n']} turns, the same for every checkpoint", loc="left")
    axis.legend(loc="lower right")
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    return picture.getvalue()
