"""A task definition in the PCA paper's form (A.1): who the agent is, and the procedure it keeps to.

The procedure (SOP) is a graph of agent actions (`Agent.<action>`) and user states (`User.<state>`).
It may be written as an adjacency list or as Mermaid (`haggle.sop.mermaid`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, model_validator

from haggle.core.config import Record
from haggle.core.errors import nearest
from haggle.sop.mermaid import edges_of, following_of

if TYPE_CHECKING:
    import networkx as nx

AGENT, USER = "Agent.", "User."
START = "Start"

Problems = Iterator[tuple[str, str]]  # what is wrong, and what to do


class Conversation(Record):
    """What the character knows (PCA's conversation_profile). Further keys are facts it may tell."""

    model_config = ConfigDict(frozen=True, extra="allow")

    agent_identity: str
    agent_goal: str
    success_mark: list[str]

    @property
    def facts(self) -> dict[str, str]:
        """The facts beside identity, goal and success mark."""
        return {key: str(value) for key, value in (self.model_extra or {}).items()}


class Sop(Record):
    """The graph of agent actions and user states, as vertices and an adjacency list.

    `mermaid` may stand in place of the adjacency list, and either in place of the vertices.
    """

    vertex: list[str] = Field(min_length=1)
    adjacency_list: dict[str, list[str]]
    mermaid: str = ""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Fill in the forms that are left out."""
        if not isinstance(data, dict):
            return data
        found = dict(data)
        if "adjacency_list" not in found and isinstance(found.get("mermaid"), str):
            found["adjacency_list"] = following_of(edges_of(found["mermaid"], strict=True))
        following = found.get("adjacency_list")
        if "vertex" not in found and isinstance(following, dict):
            ends = [v for key, others in following.items() for v in (key, *(others or []))]
            found["vertex"] = list(dict.fromkeys(ends))
        return found

    @property
    def edges(self) -> list[tuple[str, str]]:
        """The edges, in the order of the adjacency list."""
        return [(a, b) for a, others in self.adjacency_list.items() for b in others]


class Definition(Record):
    """A task definition. `agent_action` and `user_state` list all names; those that are no vertex
    are proactive actions and states outside the procedure, which may come at any time."""

    task: str
    domain: str = ""
    user_profile: dict[str, str] = {}
    conversation_profile: Conversation
    agent_action: list[str] = Field(min_length=1)
    user_state: list[str] = Field(min_length=1)
    sop: Sop

    @cached_property
    def graph(self) -> nx.DiGraph:
        """The procedure as a graph of vertices."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.sop.vertex)
        graph.add_edges_from(self.sop.edges)
        return graph

    @property
    def steps(self) -> list[str]:
        """The actions in the procedure, without its start."""
        own = [v.removeprefix(AGENT) for v in self.sop.vertex if v.startswith(AGENT)]
        return [name for name in own if name != START]

    @property
    def proactive(self) -> list[str]:
        """Actions outside the procedure: empathy, persuasion, small talk."""
        return [name for name in self.agent_action if AGENT + name not in self.sop.vertex]

    @property
    def asides(self) -> list[str]:
        """User states outside the procedure."""
        return [name for name in self.user_state if USER + name not in self.sop.vertex]

    @property
    def success(self) -> list[str]:
        """The actions that reach the goal."""
        marks = self.conversation_profile.success_mark
        return [mark.removeprefix(AGENT) for mark in marks if mark.startswith(AGENT)]

    @cached_property
    def mandatory(self) -> list[str]:
        """The steps without which no success is reached: every path to it passes them."""
        passed = dominators(self.graph, self.conversation_profile.success_mark)
        return [step for step in self.steps if AGENT + step in passed]


def dominators(graph: nx.DiGraph, goals: list[str]) -> set[str]:
    """The vertices that every path from the start to any of the goals passes."""
    import networkx as nx

    start, goal = AGENT + START, ""
    reaching = graph.copy()
    reaching.add_edges_from((mark, goal) for mark in goals if mark in graph)
    if start not in graph or goal not in reaching:
        return set()
    before = nx.immediate_dominators(reaching, start)
    found, at = set(), before.get(goal)
    while at is not None and at != start:
        found.add(at)
        at = before.get(at)
    return found


def problems(task: Definition) -> Problems:
    """What keeps a task definition from being carried out: the message and what to do."""
    for found in (_names, _edges, _goal, _reach):
        yield from found(task)


def _names(task: Definition) -> Problems:
    names = {*(AGENT + n for n in task.agent_action), *(USER + n for n in task.user_state)}
    twice = [v for v in dict.fromkeys(task.sop.vertex) if task.sop.vertex.count(v) > 1]
    for vertex in task.sop.vertex:
        if vertex not in names:
            hint = nearest(vertex, names)
            yield f"sop.vertex: {vertex!r} is neither agent_action nor user_state", hint
    for vertex in twice:
        yield f"sop.vertex: {vertex!r} stands twice", "give each vertex a name of its own"
    if AGENT + START not in task.sop.vertex:
        yield f"sop.vertex: {AGENT + START} is missing", "the procedure begins there"


def _edges(task: Definition) -> Problems:
    for vertex, following in task.sop.adjacency_list.items():
        for end in (vertex, *following):
            if end not in task.sop.vertex:
                hint = nearest(end, task.sop.vertex)
                yield f"sop.adjacency_list: {vertex} -> {end}: unknown vertex {end!r}", hint
    for vertex in task.sop.vertex:
        following = task.sop.adjacency_list.get(vertex, [])
        if vertex.startswith(USER) and not any(v.startswith(AGENT) for v in following):
            yield f"sop.adjacency_list: no action answers {vertex!r}", "add an Agent vertex"
    drawn, listed = set(edges_of(task.sop.mermaid)), set(task.sop.edges)
    for one, two in sorted(drawn ^ listed if drawn else ()):
        form = "mermaid" if (one, two) in drawn else "adjacency_list"
        yield f"sop: {one} -> {two} stands in the {form} alone", "write the same graph in both"


def _goal(task: Definition) -> Problems:
    marks = task.conversation_profile.success_mark
    if not marks:
        yield "conversation_profile.success_mark: names no vertex", "name what success is"
    for mark in marks:
        if mark not in task.sop.vertex:
            yield f"success_mark: {mark!r} is no vertex of the sop", nearest(mark, task.sop.vertex)


def _reach(task: Definition) -> Problems:
    import networkx as nx

    graph, start = task.graph, AGENT + START
    reached = {start} | nx.descendants(graph, start) if start in graph else set(graph)
    ends = {vertex for vertex in graph if not graph.out_degree(vertex)}
    for vertex in graph:
        if vertex not in reached:
            yield f"sop: {vertex!r} cannot be reached from {start}", "add an edge to it"
        if vertex not in ends and not ends & nx.descendants(graph, vertex):
            yield f"sop: {vertex!r} lies on a cycle without exit", "add an edge to an end"
