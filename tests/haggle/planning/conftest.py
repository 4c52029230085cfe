"""Engines that answer by rule, and a procedure with a trap in it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from haggle.core.codec import matches, to_lark
from haggle.core.engine import Generation, GenerationRequest
from haggle.grammar.json_text import to_json
from haggle.planning.reading import Form
from haggle.sop.task import Task

Rule = Callable[[GenerationRequest, dict[str, tuple[str, ...]]], dict[str, str]]


class RuledEngine:
    """Answers each request by a rule, from the names its form allows; counts batches and requests.

    `dies_at` is the batch that it fails in.
    """

    name = model = "ruled"

    def __init__(self, rule: Rule, dies_at: int = 0) -> None:
        self.rule, self.dies_at = rule, dies_at
        self.batches = self.requests = 0
        self.asked: list[GenerationRequest] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        self.batches += 1
        if self.batches == self.dies_at:
            raise RuntimeError("the engine is dead")
        self.requests += len(requests)
        self.asked += requests
        return [self._answer(request) for request in requests]

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        yield self.generate([request])[0]

    def close(self) -> None: ...

    def _answer(self, request: GenerationRequest) -> Generation:
        form = request.constraint
        assert isinstance(form, Form), "planners hold engines to forms"
        row = random.Random(request.seed).choice(form.rows) if form.rows else ()
        said = self.rule(request, dict(row))
        if form.spoken:
            said["Agent Response"] = "As you say."
        text = to_json(said)
        assert to_lark(form) and matches(form, text), "a grammar of it holds the answer"
        return Generation(text, prompt_tokens=10, completion_tokens=2)


def first(request: GenerationRequest, names: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """The first name of each, and yes."""
    return {label: "1" if label == "Answer" else values[0] for label, values in names.items()}


def drawn(request: GenerationRequest, names: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Any name of each, by the request's seed."""
    rng = random.Random(request.seed * 31)
    return {label: rng.choice(values) for label, values in names.items()}


def liking(*actions: str) -> Rule:
    """Yes to these actions alone; anything else by chance."""

    def rule(request: GenerationRequest, names: dict[str, tuple[str, ...]]) -> dict[str, str]:
        judged = re.search(r"do this next: (\w+)", request.messages[-1].content)
        if judged:
            return {"Answer": "1" if judged.group(1) in actions else "0"}
        return drawn(request, names)

    return rule


@pytest.fixture(scope="session")
def trap() -> Task:
    """Behind the first answer, `Left` ends soon, `Right` leads to the goal one step later."""
    data: dict[str, Any] = {
        "task": "trap",
        "conversation_profile": {"agent_identity": "a guide", "agent_goal": "reach the tower",
                                 "success_mark": ["Agent.Tower"]},
        "agent_action": ["Start", "Ask", "Left", "Right", "Tower", "Pit", "Chat"],
        "user_state": ["Ready", "Fell", "Walks", "Other"],
        "sop": {"adjacency_list": {
            "Agent.Start": ["Agent.Ask"], "Agent.Ask": ["User.Ready"],
            "User.Ready": ["Agent.Left", "Agent.Right"],
            "Agent.Left": ["User.Fell"], "User.Fell": ["Agent.Pit"], "Agent.Pit": [],
            "Agent.Right": ["User.Walks"], "User.Walks": ["Agent.Tower"], "Agent.Tower": [],
        }},
        "lines": {name: f"{name}." for name in ("Ask", "Left", "Right", "Tower", "Pit", "Chat")},
    }  # fmt: skip
    return Task.model_validate(data)
