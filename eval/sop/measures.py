"""How near a predicted procedure comes to the true one: paths and edit distance (PCA, 6.2)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from haggle.core.config import Record
from haggle.sop.definition import AGENT, START

if TYPE_CHECKING:
    import networkx as nx

Following = Mapping[str, Sequence[str]]
Path = tuple[str, ...]

MAX_PATHS = 20_000  # of one graph; a wild prediction has millions
MAX_STEPS = 200_000  # of the search for them
TIMEOUT_S = 5.0  # for one edit distance


class Likeness(Record):
    """A predicted graph beside the true one.

    `ged` is the number of vertices and edges to edit, `gedr` its ratio to the vertices and edges of
    the true graph. Both are upper bounds where `ged_bounded`: the search was stopped.
    `paths_bounded` says that a graph has more paths than were counted.
    """

    precision: float
    recall: float
    ged: int
    gedr: float
    ged_bounded: bool = False
    paths_bounded: bool = False
    missing: list[tuple[str, str]] = []
    extra: list[tuple[str, str]] = []

    @property
    def f1(self) -> float:
        """The harmonic mean of path precision and recall."""
        return harmonic(self.precision, self.recall)


def harmonic(one: float, two: float) -> float:
    """The harmonic mean, 0 where both are."""
    return 2 * one * two / (one + two) if one + two else 0.0


def compare(predicted: Following, true: Following, timeout_s: float = TIMEOUT_S) -> Likeness:
    """Hold a predicted adjacency list against the true one."""
    mine, theirs = graph_of(predicted), graph_of(true)
    found, cut = dialogue_paths(mine)
    right, cut_too = dialogue_paths(theirs)
    both = len(found & right)
    ged, bounded = edit_distance(mine, theirs, timeout_s)
    return Likeness(
        precision=both / len(found) if found else 0.0,
        recall=both / len(right) if right else 0.0,
        ged=ged,
        gedr=ged / (theirs.number_of_nodes() + theirs.number_of_edges()),
        ged_bounded=bounded,
        paths_bounded=cut or cut_too,
        missing=sorted(set(theirs.edges) - set(mine.edges)),
        extra=sorted(set(mine.edges) - set(theirs.edges)),
    )


def graph_of(following: Following) -> nx.DiGraph:
    """The graph of an adjacency list."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(following)
    graph.add_edges_from((one, two) for one, others in following.items() for two in others)
    return graph


def dialogue_paths(graph: nx.DiGraph, limit: int = MAX_PATHS) -> tuple[set[Path], bool]:
    """The paths from the start to an end, and whether there are more than `limit`.

    A loop is gone through once: no path takes an edge twice.
    """
    start = AGENT + START
    if start not in graph:
        return set(), False
    found: set[Path] = set()
    for steps, path in enumerate(_trails(graph, start), 1):
        if path is not None:
            found.add(path)
        if len(found) >= limit or steps >= MAX_STEPS:
            return found, True
    return found, False


def _trails(graph: nx.DiGraph, start: str) -> Iterator[Path | None]:
    """Every path to an end that takes no edge twice; None for each step of the search."""
    path, used = [start], set[tuple[str, str]]()
    waiting = [iter(graph[start])]
    if not graph[start]:
        yield (start,)
    while waiting:
        vertex = next(waiting[-1], None)
        if vertex is None:
            waiting.pop()
            last = path.pop()
            if path:
                used.discard((path[-1], last))
            continue
        edge = (path[-1], vertex)
        if edge in used:
            continue
        yield None
        if not graph[vertex]:
            yield (*path, vertex)
            continue
        used.add(edge)
        path.append(vertex)
        waiting.append(iter(graph[vertex]))


def edit_distance(one: nx.DiGraph, two: nx.DiGraph, timeout_s: float) -> tuple[int, bool]:
    """The graph edit distance between graphs of named vertices, and whether it is a bound alone.

    Editing every vertex and edge that one graph has alone is always enough. Renaming a vertex can
    be less; networkx searches for that until the time is up.
    """
    import networkx as nx

    plain = len(set(one) ^ set(two)) + len(set(one.edges) ^ set(two.edges))
    if plain <= 1:
        return plain, False
    for graph in (one, two):
        nx.set_node_attributes(graph, {vertex: vertex for vertex in graph}, "name")
    begun = time.monotonic()
    found = nx.graph_edit_distance(
        one,
        two,
        node_match=lambda a, b: a["name"] == b["name"],
        upper_bound=plain - 1,  # something better, or nothing
        timeout=timeout_s,
    )
    bounded = time.monotonic() - begun >= timeout_s
    return (plain if found is None else int(found)), bounded
