"""Where a talk stands in its procedure: the sub-path with the smallest edit distance (PCA, 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from haggle.sop.definition import AGENT, START, Definition

Edges = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Nearest:
    """The last vertex of the nearest sub-path, and how many edits lie between (0: the talk keeps
    to the procedure)."""

    end: str
    distance: int


def nearest_subpath(task: Definition, path: Sequence[str]) -> Nearest:
    """The sub-path of the procedure, from its start, that comes nearest to the path of a talk.

    A vertex that was put in, left out or replaced counts one edit. What is no vertex is left out
    first, and a step that was taken again and again counts once: both may come at any time.
    """
    kept = [vertex for vertex in path if vertex in task.sop.adjacency_list]
    once = tuple(v for n, v in enumerate(kept) if n == 0 or v != kept[n - 1])
    return _aligned(tuple(task.sop.vertex), tuple(task.sop.edges), once)


@lru_cache(maxsize=4096)
def _aligned(vertices: tuple[str, ...], edges: Edges, path: tuple[str, ...]) -> Nearest:
    start = AGENT + START
    walk = (start, *path)
    if start in vertices and all(step in edges for step in pairwise(walk)):
        return Nearest(walk[-1], 0)
    costs = _spread({start: 0}, edges)
    for vertex in path:
        taken = {before: cost + 1 for before, cost in costs.items()}  # as if it was not there
        for before, after in edges:
            if before in costs:
                cost = costs[before] + (after != vertex)
                taken[after] = min(cost, taken.get(after, cost))
        costs = _spread(taken, edges)
    last = {vertex: number for number, vertex in enumerate(path)}
    end = min(costs, key=lambda v: (costs[v], -last.get(v, -1), vertices.index(v)))
    return Nearest(end, costs[end])


def _spread(costs: dict[str, int], edges: Edges) -> dict[str, int]:
    """The costs once vertices that the talk left out are put in."""
    found, changed = dict(costs), True
    while changed:
        changed = False
        for before, after in edges:
            if before in found and found[before] + 1 < found.get(after, len(edges) + 1_000_000):
                found[after] = found[before] + 1
                changed = True
    return found


def steps_ahead(task: Definition, vertex: str, levels: int) -> list[str]:
    """The actions among the vertices at most so many edges behind one, nearest first."""
    found: dict[str, None] = {}
    level = [vertex]
    for _ in range(levels):
        level = [after for one in level for after in task.sop.adjacency_list.get(one, [])]
        found |= {after.removeprefix(AGENT): None for after in level if after.startswith(AGENT)}
    return list(found)
