"""Joint accuracy against tokens: the law is found again, and nothing is told that it does not say."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from eval.compare import AnsweredRun
from eval.learning_curve import learning_curve, write_learning_curve
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json

TURNS = 400
Points = list[tuple[int, AnsweredRun]]


def answered(name: str, right: list[bool]) -> AnsweredRun:
    records: dict[str, dict[str, Any]] = {
        f"t/{i}": {"id": f"t/{i}", "player": f"line {i}", "right": "r", "answer": "a", "joint": ok}
        for i, ok in enumerate(right)
    }
    return AnsweredRun(name, Path(name), records, {"turns": "same"})


def following(a: float, b: float, tokens: list[int], turns: int = TURNS) -> Points:
    """Runs whose errors follow the law; what a later one gets wrong, an earlier one does too."""
    order = list(range(turns))
    random.Random(3).shuffle(order)
    points = []
    for amount in tokens:
        wrong = set(order[: round(turns * a * amount**-b)])
        points.append((amount, answered(f"at-{amount}", [i not in wrong for i in range(turns)])))
    return points


GROWING = [100_000, 200_000, 400_000, 800_000, 1_600_000]


def test_the_law_behind_the_points_is_found_again() -> None:
    curve = learning_curve(following(40, 0.4, GROWING), goal=0.95)
    assert curve["n"] == TURNS
    assert curve["law"]["b"] == pytest.approx(0.4, abs=0.02)
    assert curve["law"]["b_low"] < 0.4 < curve["law"]["b_high"]
    true = (40 / 0.05) ** (1 / 0.4)
    assert curve["goal"]["tokens"] == pytest.approx(true, rel=0.15)
    twice = curve["forecast"][0]
    assert twice["tokens"] == 3_200_000
    assert twice["low"] < 1 - 40 * 3_200_000**-0.4 < twice["high"]
    check = curve["backtest"]
    assert check["low"] <= check["measured"] <= check["high"]


def test_points_are_put_in_the_order_of_their_tokens() -> None:
    points = following(40, 0.4, GROWING)
    backwards = learning_curve(points[::-1])
    assert backwards == learning_curve(points)
    assert [point["tokens"] for point in backwards["points"]] == GROWING


def test_a_flat_curve_tells_no_tokens_for_a_goal() -> None:
    rng = random.Random(1)
    points = [
        (amount, answered(f"at-{amount}", [rng.random() < 0.8 for _ in range(TURNS)]))
        for amount in GROWING
    ]
    goal = learning_curve(points)["goal"]
    assert goal["tokens"] is None
    assert "slope" in goal["why"]


def test_a_goal_out_of_sight_is_not_numbered() -> None:
    goal = learning_curve(following(2, 0.15, GROWING), goal=0.999)["goal"]
    assert goal["tokens"] is None
    assert "times the tokens" in goal["why"]


def test_a_run_without_errors_has_a_law_all_the_same() -> None:
    points = [*following(40, 0.4, GROWING), (3_200_000, answered("all", [True] * TURNS))]
    curve = learning_curve(points)
    assert curve["points"][-1]["joint"]["value"] == 1
    assert 0 < curve["law"]["b"] < 5


def test_three_points_have_no_backtest() -> None:
    assert learning_curve(following(40, 0.4, GROWING[:3]))["backtest"] is None


@pytest.mark.parametrize(
    ("points", "goal", "told"),
    [
        (following(40, 0.4, GROWING[:2]), 0.96, "3 checkpoints or more, not 2"),
        (following(40, 0.4, GROWING) * 2, 0.96, "the same tokens"),
        ([(0, answered("none", [True] * 3)), *following(40, 0.4, GROWING)], 0.96, "the same tokens"),
        (following(40, 0.4, GROWING), 96, "between 0 and 1"),
    ],
)  # fmt: skip
def test_what_makes_no_curve_is_told(points: Points, goal: float, told: str) -> None:
    with pytest.raises(HaggleError, match=told):
        learning_curve(points, goal)


def test_other_turns_make_no_curve() -> None:
    points = following(40, 0.4, GROWING)
    last = points[-1][1]
    other = {key: record | {"player": "another line"} for key, record in last.records.items()}
    points[-1] = (points[-1][0], AnsweredRun("other", last.path, other, last.identity))
    with pytest.raises(HaggleError, match="another turn"):
        learning_curve(points)


def test_figures_and_picture_are_written(tmp_path: Path) -> None:
    curve = learning_curve(following(40, 0.4, GROWING))
    figures, picture = write_learning_curve(curve, tmp_path / "out")
    assert read_json(figures) == curve
    assert picture.read_bytes().startswith(b"\x89PNG")
