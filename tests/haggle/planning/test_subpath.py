"""The nearest sub-path: exact where the talk kept to the procedure, and near where it did not."""

from __future__ import annotations

import pytest

from haggle.sop.subpath import Nearest, nearest_subpath, steps_ahead
from haggle.sop.task import load_task

GATE = load_task("gatekeeper")


@pytest.mark.parametrize(
    ("path", "end", "distance"),
    [
        ("", "Agent.Start", 0),
        ("Agent.AskName", "Agent.AskName", 0),
        ("Agent.AskName User.GivesName Agent.AskPass", "Agent.AskPass", 0),
        ("Agent.AskName User.Doubt Agent.Persuade User.GivesName", "User.GivesName", 0),
        ("Agent.AskName User.Doubt Agent.AskName User.GivesName", "User.GivesName", 0),
        ("User.GivesName Agent.AskPass", "Agent.AskPass", 1),
        ("Agent.AskName User.GivesName Agent.AskErrand User.PeacefulErrand Agent.Admit",
         "Agent.Admit", 2),
        ("Agent.Admit", "Agent.AskName", 1),
    ],
)  # fmt: skip
def test_the_end_of_the_nearest_sub_path(path, end, distance):
    found = nearest_subpath(GATE, path.split())
    assert found.distance == distance
    assert found == Nearest(end, distance) or distance


def test_actions_of_the_next_levels():
    assert steps_ahead(GATE, "User.HidesName", 1) == ["AskName", "TurnAway"]
    assert steps_ahead(GATE, "Agent.AskName", 1) == []
    assert steps_ahead(GATE, "Agent.AskName", 2) == ["AskPass", "AskName", "TurnAway"]
    assert steps_ahead(GATE, "User.PeacefulErrand", 2) == ["Admit", "Farewell"]
