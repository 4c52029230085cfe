"""The arithmetic of a search: equations 6 to 9, back up, and when a choice is settled."""

from __future__ import annotations

import math
from typing import Any

import pytest

from haggle.planning.problem import Position
from haggle.planning.tree import MOST, Node, back_up, best, reward, select, settled, uct

HERE: Any = Position(None)  # type: ignore[type-var]


def node(act: str = "", reward: float = 0.0, *values: float) -> Node:
    return Node(HERE, act, reward, visits=len(values), total=sum(values))


def test_a_reward_is_half_the_votes_and_a_quarter_of_what_the_step_comes_to():
    assert reward(1.0, success=False, terminal=False) == 0.5
    assert reward(0.5, success=False, terminal=True) == pytest.approx(0.25 + 0.25 * 0.3)
    assert reward(1.0, success=True, terminal=True) == pytest.approx(0.5 + 0.25 * 0.7) == MOST


def test_uct_adds_what_was_seldom_tried():
    parent, child = node("", 0, *[0.4] * 5), node("a", 0.4, 0.4, 0.4)
    assert uct(parent, child, 1.0) == pytest.approx(0.4 + math.sqrt(math.log(5) / 2))
    assert uct(parent, child, 0.0) == pytest.approx(0.4)


def test_selection_ends_at_a_leaf_and_takes_the_highest_uct():
    root = node("", 0, 0.3, 0.3)
    root.children = [node("often", 0.3, 0.3, 0.3), node("never", 0.2)]
    assert [one.act for one in select(root, 1.0, 8)] == ["", "never"]
    assert [one.act for one in select(root, 0.0, 8)] == ["", "often"]


def test_every_node_gets_the_mean_of_the_rewards_behind_it():
    path = [node(), node("a", 0.2), node("b", 0.4), node("c", 0.6)]
    back_up(path)
    assert [one.visits for one in path] == [1, 1, 1, 1]
    assert path[1].q == pytest.approx(0.4) and path[2].q == pytest.approx(0.5)
    assert path[3].q == pytest.approx(0.6)


def test_a_choice_is_settled_when_no_other_can_come_up():
    root = node()
    root.children = [node("a", 0.5, 0.6, 0.6, 0.6), node("b", 0.1)]
    assert settled(root, 0)
    assert not settled(root, 1), "one visit of b may be worth up to 0.675"
    root.children = [node("a", 0.6, *[0.67] * 50), node("b", 0.1, *[0.1] * 50)]
    assert settled(root, 3)
    leading = best(root)
    assert leading is not None and leading.act == "a"
