"""The tree of a search: its nodes, how one is selected (UCT), and how rewards go back up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic

from haggle.planning.problem import E, Position

SUCCESS, TERMINAL = 0.7, 0.3  # equation 9
MOST = 0.5 * (1 + 0.5 * SUCCESS)  # the best reward there is


@dataclass(eq=False)
class Node(Generic[E]):
    """A position, and the action `act` that led to it with its `reward`.

    `children` is None before the node was expanded; `over` says that nothing follows. `total` is
    the sum, over `visits`, of the mean reward from here on.
    """

    at: Position[E]
    act: str = ""
    reward: float = 0.0
    over: bool = False
    visits: int = 0
    total: float = 0.0
    children: list[Node[E]] | None = field(default=None, repr=False)

    @property
    def q(self) -> float:
        """The value of the action that led here: its own reward before the first visit."""
        return self.total / self.visits if self.visits else self.reward


def reward(share: float, *, success: bool, terminal: bool) -> float:
    """Equations 7 to 9: the share of yes votes, and what the step comes to."""
    state = SUCCESS if success else TERMINAL if terminal else 0.0
    return 0.5 * (share + 0.5 * state)


def uct(node: Node[E], child: Node[E], weight: float) -> float:
    """Equation 6. A child that was never visited counts as visited once: its own reward is known
    from the expansion."""
    return child.q + weight * math.sqrt(math.log(max(1, node.visits)) / max(1, child.visits))


def select(root: Node[E], weight: float, depth: int) -> list[Node[E]]:
    """The path from the root to a leaf, at each level to the child with the highest UCT."""
    path = [root]
    while path[-1].children and len(path) <= depth:
        node = path[-1]
        path.append(max(node.children or (), key=lambda child: uct(node, child, weight)))
    return path


def back_up(path: Sequence[Node[E]]) -> None:
    """Count a visit of every node, each with the mean of the rewards from it to the end."""
    path[0].visits += 1
    rewards = [node.reward for node in path[1:]]
    for at, node in enumerate(path[1:]):
        node.visits += 1
        node.total += sum(rewards[at:]) / len(rewards[at:])


def best(node: Node[E]) -> Node[E] | None:
    """The child of the highest value; of equals, the one visited more often."""
    return max(node.children or (), key=lambda child: (child.q, child.visits), default=None)


def settled(node: Node[E], left: int) -> bool:
    """Whether no other child can be the best any more, however `left` visits turn out."""
    leading = best(node)
    if leading is None or left == 0:
        return True
    others = [child for child in node.children or () if child is not leading]
    return all(
        _after(leading, own, 0.0) > _after(other, left - own, MOST)
        for other in others
        for own in range(left + 1)
    )


def _after(node: Node[E], visits: int, each: float) -> float:
    """The value after some more visits of one reward each."""
    seen = node.visits + visits
    return (node.total + visits * each) / seen if seen else node.reward
