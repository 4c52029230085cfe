"""SOP prediction vertex by vertex (PCA, 5.2): for each vertex a model names those that follow it.

One task is one chat: the system message has the task without its edges, each user message names a
vertex, each answer lists what follows. So a model learns and predicts all vertices of a task with
one prompt, and sees its earlier answers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from haggle.core.engine import Engine, Generation, GenerationRequest, Message
from haggle.core.text import prompts
from haggle.grammar.json_text import DecodeError, read_object, to_json
from haggle.grammar.values import Field, Fields, Items, Label, Value
from haggle.sop.definition import AGENT, START, USER, Definition

PROMPTS = Path(__file__).parent / "prompts"
KNOWLEDGE = 1500  # characters; public tasks bring whole documents
ANSWER_TOKENS = 160


@dataclass(frozen=True, slots=True)
class Followers:
    """All lists of some vertices: a `haggle.core.codec.ActionSpec`."""

    vertices: tuple[str, ...]

    def tree(self) -> Value:
        """The answer for one vertex."""
        entry = Label(self.vertices, "vertex")
        return Fields((Field("next", Items(entry, 0, len(self.vertices), "next")),))


@dataclass(frozen=True, slots=True)
class Predicted:
    """A procedure that was predicted. `valid` says whether every answer could be read."""

    adjacency_list: dict[str, list[str]]
    valid: bool
    completion_tokens: int
    latency_s: float


def vertices_of(task: Definition) -> list[str]:
    """The vertices of a task, each once."""
    return list(dict.fromkeys(task.sop.vertex))


def may_follow(vertices: Sequence[str], vertex: str) -> tuple[str, ...]:
    """The vertices that remain for the list behind one: not itself, not the start, and behind a
    user state actions alone."""
    left = [v for v in vertices if v not in {vertex, AGENT + START}]
    return tuple(v for v in left if not (vertex.startswith(USER) and v.startswith(USER)))


def opening(task: Definition) -> Message:
    """The system message: the task without its edges."""
    knowledge = to_json(task.conversation_profile.model_dump())[:KNOWLEDGE]
    template = prompts(PROMPTS).get_template("vertices.jinja")
    text = template.render(knowledge=knowledge, vertices=vertices_of(task), start=AGENT + START)
    return Message("system", text.strip())


def lesson(task: Definition, seed: int = 0) -> list[Message]:
    """A task with the right answer for every vertex. `seed` 0 asks in the order of the task, any
    other in an order of its own."""
    vertices = vertices_of(task)
    if seed:
        random.Random(f"{task.task}/{seed}").shuffle(vertices)
    found = [opening(task)]
    for vertex in vertices:
        right = {"next": task.sop.adjacency_list.get(vertex, [])}
        found += [Message("user", vertex), Message("assistant", to_json(right))]
    return found


def predict(engine: Engine, task: Definition, constrained: bool = True) -> Predicted:
    """Ask a model for the followers of every vertex, one after the other."""
    vertices = vertices_of(task)
    messages, found = [opening(task)], dict[str, list[str]]()
    valid, tokens, seconds = True, 0, 0.0
    for vertex in vertices:
        messages.append(Message("user", vertex))
        form = Followers(may_follow(vertices, vertex)) if constrained else None
        request = GenerationRequest(tuple(messages), form, max_tokens=ANSWER_TOKENS)
        answer = engine.generate([request])[0]
        following = read_followers(answer)
        valid = valid and following is not None
        found[vertex] = following or []
        messages.append(Message("assistant", to_json({"next": found[vertex]})))
        tokens += answer.completion_tokens
        seconds += answer.latency_s
    return Predicted(found, valid, tokens, seconds)


def read_followers(answer: Generation) -> list[str] | None:
    """The list in an answer, each name once; None where it has none."""
    try:
        said = read_object(answer.text).get("next")
    except DecodeError:
        return None
    if not isinstance(said, list) or not all(isinstance(name, str) for name in said):
        return None
    return list(dict.fromkeys(said))
