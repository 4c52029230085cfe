"""The questions of a search to its engine: in batches, counted, in time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, Literal

from haggle.core.engine import Engine, Generation, GenerationRequest, Message
from haggle.core.text import prompts
from haggle.planning.config import PlanConfig
from haggle.planning.problem import E, Position, Problem
from haggle.planning.reading import Form

PROMPTS = Path(__file__).parent / "prompts"
SHORT_TOKENS = 48  # of names
SPOKEN_TOKENS = 80  # of a line
LARGEST_SEED = 2**31 - 1  # engines take 32 bits
Reason = Literal["time", "engine"]


class Stopped(Exception):
    """The search cannot go on. `reason` says why, `cause` is what the engine raised."""

    def __init__(self, reason: Reason, cause: Exception | None = None) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.cause = cause


@dataclass
class Cost:
    """What a turn's plan took. `calls` are requests to the model, `batches` how often the engine
    was asked: so many answers were waited for one after the other. `saved` are the calls that
    positions seen before did not need."""

    calls: int = 0
    batches: int = 0
    saved: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Question(Generic[E]):
    """A question about a position. `template` names the prompt, `told` is what else stands in
    it. `own` is asked as it stands, in the domain's own format."""

    template: str
    at: Position[E]
    form: Form = field(default_factory=Form)
    told: tuple[tuple[str, Any], ...] = ()
    own: GenerationRequest | None = None


@dataclass
class Asker(Generic[E]):
    """Asks an engine. `constrained` holds its answers to the forms; `seed` makes draws repeatable.

    `last` is the text that came last.
    """

    engine: Engine
    problem: Problem[E]
    config: PlanConfig
    constrained: bool = True
    seed: int = 0
    last: str = ""
    cost: Cost = field(default_factory=Cost)
    started: float = field(default_factory=lambda: time.perf_counter())

    def ask(self, questions: Sequence[Question[E]], *, drawn: bool = False) -> list[str]:
        """The answers to some questions, all of them in one batch; `drawn` at the temperature of
        samples. Raises Stopped when the time is up, or the engine fails."""
        return [answer.text for answer in self.send([self._request(q, drawn) for q in questions])]

    def send(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """The answers to some requests. Raises Stopped."""
        if not requests:
            return []
        limit = self.config.seconds
        if limit is not None and time.perf_counter() - self.started >= limit:
            raise Stopped("time")
        try:
            answers = self.engine.generate(requests)
        except Exception as error:  # whatever an engine dies of, the best so far is still there
            raise Stopped("engine", error) from error
        self.cost.calls += len(requests)
        self.cost.batches += 1
        for answer in answers:
            self.cost.prompt_tokens += answer.prompt_tokens
            self.cost.completion_tokens += answer.completion_tokens
            self.cost.thought_tokens += answer.thought_tokens
        self.last = answers[-1].text
        return answers

    def _request(self, question: Question[E], drawn: bool) -> GenerationRequest:
        self.seed += 1
        request = question.own or self._papers(question)
        return replace(
            request,
            constraint=request.constraint if self.constrained else None,
            temperature=self.config.temperature if drawn else self.config.once,
            seed=self.seed % LARGEST_SEED,
        )

    def _papers(self, question: Question[E]) -> GenerationRequest:
        form = question.form
        short = self.constrained and not form.spoken
        return GenerationRequest(
            self._messages(question), form, max_tokens=SHORT_TOKENS if short else SPOKEN_TOKENS
        )

    def _messages(self, question: Question[E]) -> tuple[Message, ...]:
        """The task first and the question last, so that engines keep what prompts begin with."""
        told = {"brief": self.problem.brief(question.at), "labels": question.form.labels}
        told |= dict(question.told)
        folder = prompts(PROMPTS)
        system = folder.get_template("task.jinja").render(told).strip()
        asked = folder.get_template(f"{question.template}.jinja").render(told).strip()
        return Message("system", system), Message("user", asked)
