"""Planners: from a task definition without its edges to a procedure.

`al` asks a model for an adjacency list, `tcot` for a description in words first, `vertex` for what
follows each vertex, one after the other (PCA, 5.2). `order` needs no model: it goes by the order of
the vertices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args

from haggle.core.config import Record
from haggle.core.engine import Engine, Generation, GenerationRequest, Message
from haggle.core.errors import HaggleError, nearest
from haggle.core.text import prompts
from haggle.grammar.json_text import DecodeError, read_object, to_json
from haggle.grammar.values import Field, Fields, Items, Label, Value
from haggle.sop.definition import AGENT, START, USER, Definition
from haggle.sop.vertexwise import predict

Method = Literal["al", "tcot", "vertex", "order"]
Leading = Literal["first", "last", "each"]
METHODS: tuple[Method, ...] = get_args(Method)
PROMPTS = Path(__file__).parent / "prompts"
ANSWER_TOKENS = 2048  # an adjacency list of 25 vertices has about 900
WORDS_TOKENS = 1024  # of a description


class Plan(Record):
    """A predicted procedure. `valid` says whether the answer could be read; `told` is what the
    model wrote before it, in words."""

    adjacency_list: dict[str, list[str]]
    valid: bool = True
    told: str = ""
    completion_tokens: int = 0
    latency_s: float = 0.0


class Planner(Protocol):
    """Predicts procedures, after a look at the tasks of the training folds."""

    def fit(self, tasks: Sequence[Definition]) -> None: ...

    def plan(self, task: Definition) -> Plan: ...


def open_planner(method: str, engine: Engine | None, constrained: bool = False) -> Planner:
    """The planner of a method. Raises HaggleError for an unknown one, or one without its engine."""
    if check_method(method) == "order":
        return OrderPlanner()
    if engine is None:
        raise HaggleError(f"{method!r} needs a model", where="--engine", hint="name an engine")
    if method == "vertex":
        return VertexPlanner(engine, constrained)
    return ModelPlanner(engine, describes=method == "tcot", constrained=constrained)


def check_method(name: str) -> Method:
    """`name` as a method. Raises HaggleError naming the nearest known one."""
    for method in METHODS:
        if method == name:
            return method
    raise HaggleError(f"unknown method {name!r}", where="--method", hint=nearest(name, METHODS))


@dataclass
class OrderPlanner:
    """Vertices in the order they are listed: user states belong to the action before them, and the
    action behind a row of user states answers one of them (`leading`: the first, the last or each).
    Whatever leads nowhere leads to the closing action.

    From training tasks it learns `leading`, and the closing action: what most of them end with.
    Without any it is the last action listed.
    """

    closing: str = ""
    leading: Leading = "last"

    def fit(self, tasks: Sequence[Definition]) -> None:
        ends = Counter(
            vertex
            for task in tasks
            for vertex in task.graph
            if vertex.startswith(AGENT) and not task.graph.out_degree(vertex)
        )
        self.closing = min(ends, key=lambda name: (-ends[name], name)) if ends else ""
        self.leading = min(get_args(Leading), key=lambda leading: self._wrong(tasks, leading))

    def _wrong(self, tasks: Sequence[Definition], leading: Leading) -> int:
        """The edges that differ over some tasks."""
        wrong = 0
        for task in tasks:
            found = self._following(task, leading)
            edges = {(one, two) for one, others in found.items() for two in others}
            wrong += len(edges ^ set(task.sop.edges))
        return wrong

    def plan(self, task: Definition) -> Plan:
        return Plan(adjacency_list=self._following(task, self.leading))

    def _following(self, task: Definition, leading: Leading) -> dict[str, list[str]]:
        vertices = list(dict.fromkeys(task.sop.vertex))
        actions = [v for v in vertices if v.startswith(AGENT)]
        end = self.closing if self.closing in actions else actions[-1] if actions else ""
        found: dict[str, list[str]] = {vertex: [] for vertex in vertices}
        asking, before, row = "", "", list[str]()
        for vertex in vertices:
            if vertex.startswith(USER):
                row.append(vertex)
                if asking:
                    found[asking].append(vertex)
                continue
            if vertex != end:
                chosen = {"first": row[:1], "last": row[-1:], "each": row}[leading]
                for one in chosen or ([before] if before else []):
                    found[one].append(vertex)
                asking = vertex
            before, row = "" if vertex == end else vertex, []
        for vertex in vertices:
            if not found[vertex] and vertex != end and end:
                found[vertex].append(end)
        return found


@dataclass(frozen=True, slots=True)
class Adjacency:
    """All adjacency lists over some vertices: a `haggle.core.codec.ActionSpec`."""

    vertices: tuple[str, ...]

    def tree(self) -> Value:
        """Every vertex with a list of vertices."""
        others = Items(Label(self.vertices, "vertex"), 0, len(self.vertices), "following")
        return Fields(tuple(Field(vertex, others) for vertex in self.vertices))


@dataclass
class ModelPlanner:
    """A model that writes an adjacency list. With `describes` it describes the procedure in words
    first; `constrained` lets it write nothing but an adjacency list of the task's vertices."""

    engine: Engine
    describes: bool = False
    constrained: bool = False

    def fit(self, tasks: Sequence[Definition]) -> None:
        """Prompts alone: nothing is learned from other tasks."""

    def plan(self, task: Definition) -> Plan:
        vertices = list(dict.fromkeys(task.sop.vertex))
        knowledge = to_json(task.conversation_profile.model_dump())
        told, tokens, seconds = "", 0, 0.0
        if self.describes:
            answer = self._ask("tcot_describe", vertices, knowledge, WORDS_TOKENS)
            told, tokens, seconds = answer.text, answer.completion_tokens, answer.latency_s
            knowledge = told
        name = "tcot_translate" if self.describes else "al"
        form = Adjacency(tuple(vertices)) if self.constrained else None
        answer = self._ask(name, vertices, knowledge, ANSWER_TOKENS, form)
        following, valid = read_adjacency(answer.text, vertices)
        return Plan(
            adjacency_list=following,
            valid=valid,
            told=told,
            completion_tokens=tokens + answer.completion_tokens,
            latency_s=seconds + answer.latency_s,
        )

    def _ask(
        self,
        name: str,
        vertices: Sequence[str],
        knowledge: str,
        max_tokens: int,
        form: Adjacency | None = None,
    ) -> Generation:
        template = prompts(PROMPTS).get_template(f"{name}.jinja")
        text = template.render(
            vertices=to_json(vertices), knowledge=knowledge, start=AGENT + START
        ).strip()
        request = GenerationRequest((Message("user", text),), form, max_tokens=max_tokens)
        return self.engine.generate([request])[0]


@dataclass
class VertexPlanner:
    """A model that names the followers of each vertex; one trained on such rows (`plans` in a data
    config) or any other. `constrained` leaves it the task's vertices alone."""

    engine: Engine
    constrained: bool = False

    def fit(self, tasks: Sequence[Definition]) -> None:
        """The adapter was trained before, on the other folds."""

    def plan(self, task: Definition) -> Plan:
        found = predict(self.engine, task, self.constrained)
        return Plan(
            adjacency_list=found.adjacency_list,
            valid=found.valid,
            completion_tokens=found.completion_tokens,
            latency_s=found.latency_s,
        )


def read_adjacency(text: str, vertices: Sequence[str]) -> tuple[dict[str, list[str]], bool]:
    """The adjacency list in a model's answer, and whether it is one: JSON, every value a list of
    names. Vertices left out have no edges; a name that the task lacks stays, and is wrong."""
    found: dict[str, list[str]] = {vertex: [] for vertex in vertices}
    try:
        data = read_object(text)
    except DecodeError:
        return found, False
    valid = True
    for vertex, others in data.items():
        if isinstance(others, list) and all(isinstance(other, str) for other in others):
            found[vertex] = list(dict.fromkeys(others))
        else:
            valid = False
    return found, valid
