"""A task: who the character is, what it wants, and the procedure it keeps to (PCA, A.1)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import networkx as nx
from pydantic import ConfigDict, Field

from haggle.core.config import SUFFIXES, Record, load_config
from haggle.core.errors import HaggleError, nearest
from haggle.core.procedure import Critical, Procedure, State

AGENT, USER = "Agent.", "User."
START = "Start"
TASKS = Path(__file__).parent / "tasks"


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
    """The graph of agent actions and user states, as vertices and an adjacency list."""

    vertex: list[str] = Field(min_length=1)
    adjacency_list: dict[str, list[str]]


class Task(Record):
    """A task definition. Vertices are `Agent.<action>` and `User.<state>`.

    `agent_action` and `user_state` list all names; those that are no vertex are proactive actions
    and states outside the procedure, which may come at any time. `briefs` says what a name means,
    `lines` what the character says where code speaks for it, and
    `replies` the action that answers a user state outside the procedure.
    """

    task: str
    domain: str = ""
    user_profile: dict[str, str] = {}
    conversation_profile: Conversation
    agent_action: list[str] = Field(min_length=1)
    user_state: list[str] = Field(min_length=1)
    sop: Sop
    briefs: dict[str, str] = {}
    lines: dict[str, str]
    replies: dict[str, str] = {}

    @cached_property
    def graph(self) -> nx.DiGraph:
        """The procedure as a graph of vertices."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.sop.vertex)
        for vertex, following in self.sop.adjacency_list.items():
            graph.add_edges_from((vertex, other) for other in following)
        return graph

    @property
    def success(self) -> list[str]:
        """The actions that reach the goal."""
        return [mark.removeprefix(AGENT) for mark in self.conversation_profile.success_mark]

    @property
    def proactive(self) -> list[str]:
        """Actions outside the procedure: empathy, persuasion, small talk."""
        return [name for name in self.agent_action if AGENT + name not in self.sop.vertex]

    @property
    def asides(self) -> list[str]:
        """User states outside the procedure."""
        return [name for name in self.user_state if USER + name not in self.sop.vertex]

    def answers(self, last: str) -> dict[str, list[str]]:
        """By user state, the actions that may answer it when `last` was the last step.

        A state of the procedure leads to the steps behind it. Any other leads to a proactive
        action, to the last step once more, or to a step that waits for no answer.
        """
        after = self.sop.adjacency_list.get(AGENT + (last or START), [])
        direct = [v.removeprefix(AGENT) for v in after if v.startswith(AGENT)]
        found = {
            vertex.removeprefix(USER): [
                v.removeprefix(AGENT) for v in self.sop.adjacency_list.get(vertex, [])
            ]
            for vertex in after
            if vertex.startswith(USER)
        }
        again = [last] if last and after and not direct else []
        aside = [*direct, *again, *self.proactive]
        return {**found, **{name: aside for name in self.asides}}

    @cached_property
    def procedure(self) -> Procedure[State]:
        """The states and transitions of the character's own actions."""
        before: dict[str, list[str]] = {}
        for last in (START, *self.steps):
            for actions in self.answers("" if last == START else last).values():
                for action in actions:
                    before.setdefault(action, []).append("" if last == START else last)
        terminal = {v for v in self.sop.vertex if v.startswith(AGENT) and not self._after(v)}
        states = {
            name: State(
                transparent=name in self.proactive,
                resets=AGENT + name in terminal,
                after="any" if name in self.proactive else sorted(set(before.get(name, []))),
                brief=self.briefs.get(name, name),
            )
            for name in self.agent_action
            if name != START
        }
        critical = [
            Critical(state=name, only_after=sorted(set(before.get(name, [])) - {"", name}))
            for name in self.success
        ]
        fallback = self.proactive[0] if self.proactive else self.steps[0]
        return Procedure[State](name=self.task, fallback=fallback, critical=critical, states=states)

    @property
    def steps(self) -> list[str]:
        """The character's actions in the procedure, without its start."""
        own = [v.removeprefix(AGENT) for v in self.sop.vertex if v.startswith(AGENT)]
        return [name for name in own if name != START]

    @cached_property
    def mandatory(self) -> list[str]:
        """The steps without which no success is reached: those on every path to it."""
        graph, found = self.graph, []
        marks = self.conversation_profile.success_mark
        for step in self.steps:
            rest = graph.copy()
            rest.remove_node(AGENT + step)
            reached = nx.descendants(rest, AGENT + START)
            if not reached & set(marks):
                found.append(step)
        return found

    def _after(self, vertex: str) -> list[str]:
        return self.sop.adjacency_list.get(vertex, [])


def check_task(task: Task, where: str) -> Task:
    """The task when it holds together. Raises HaggleError naming file, vertex or edge."""
    for problems in (_names, _edges, _goal, _reach, _words):
        for message, hint in problems(task):
            raise HaggleError(message, where=where, hint=hint)
    return task


Problems = Iterator[tuple[str, str]]  # what is wrong, and what to do


def _names(task: Task) -> Problems:
    names = {*(AGENT + n for n in task.agent_action), *(USER + n for n in task.user_state)}
    for vertex in task.sop.vertex:
        if vertex not in names:
            hint = nearest(vertex, names)
            yield f"sop.vertex: {vertex!r} is neither agent_action nor user_state", hint
        if task.sop.vertex.count(vertex) > 1:
            yield f"sop.vertex: {vertex!r} stands twice", "give each vertex a name of its own"
    if AGENT + START not in task.sop.vertex:
        yield f"sop.vertex: {AGENT + START} is missing", "the procedure begins there"


def _edges(task: Task) -> Problems:
    for vertex, following in task.sop.adjacency_list.items():
        for end in (vertex, *following):
            if end not in task.sop.vertex:
                hint = nearest(end, task.sop.vertex)
                yield f"sop.adjacency_list: {vertex} -> {end}: unknown vertex {end!r}", hint
    for vertex in task.sop.vertex:
        following = task.sop.adjacency_list.get(vertex, [])
        if vertex.startswith(USER) and not any(v.startswith(AGENT) for v in following):
            yield f"sop.adjacency_list: no action answers {vertex!r}", "add an Agent vertex"


def _goal(task: Task) -> Problems:
    marks = task.conversation_profile.success_mark
    if not marks:
        yield "conversation_profile.success_mark: names no vertex", "name what success is"
    for mark in marks:
        if mark not in task.sop.vertex or not mark.startswith(AGENT):
            hint = nearest(mark, task.sop.vertex)
            yield f"success_mark: {mark!r} is no Agent vertex of the sop", hint


def _reach(task: Task) -> Problems:
    graph = task.graph
    reached = {AGENT + START} | nx.descendants(graph, AGENT + START)
    ends = {vertex for vertex in task.sop.vertex if not graph.out_degree(vertex)}
    for vertex in task.sop.vertex:
        if vertex not in reached:
            yield f"sop: {vertex!r} cannot be reached from {AGENT + START}", "add an edge to it"
        if vertex not in ends and not ends & nx.descendants(graph, vertex):
            yield f"sop: {vertex!r} lies on a cycle without exit", "add an edge to an end"


def _words(task: Task) -> Problems:
    names = [*task.agent_action, *task.user_state]
    for name in (*task.lines, *task.briefs):
        if name not in names:
            yield f"lines and briefs: unknown name {name!r}", nearest(name, names)
    for state, action in task.replies.items():
        for name, known in ((state, task.asides), (action, task.agent_action)):
            if name not in known:
                yield f"replies: {state} -> {action}: unknown name {name!r}", nearest(name, known)
    for name in task.agent_action:
        if name != START and name not in task.lines:
            yield f"lines: {name!r} has none", "say what code says with that action"


@cache
def load_task(name: str) -> Task:
    """The task of a file, or one that Haggle brings, by its name. Raises HaggleError."""
    path = Path(name)
    if path.suffix.lower() not in SUFFIXES:
        files = {p.stem: p for p in sorted(TASKS.glob("*.yaml"))}
        if name not in files:
            raise HaggleError(f"no character is named {name!r}", hint=nearest(name, files))
        path = files[name]
    return check_task(load_config(path, Task), str(path))
