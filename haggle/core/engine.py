"""What a model must be able to do: answer a batch, and stream one answer.

The turn (`haggle.core.agent`) only knows this protocol; the engines themselves live in
`serving.engines`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from haggle.core.codec import ActionSpec

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. `content` never holds chat markup: that belongs to the template."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One completion to produce. `temperature` 0 means greedy; `max_tokens` bounds the answer.

    `constraint` describes the only texts the engine may produce; None leaves it free. `scored` asks
    for the answer's probability, which not every engine can tell; text that the constraint forces
    need not count.
    """

    messages: tuple[Message, ...]
    constraint: ActionSpec | None = None
    max_tokens: int = 192
    temperature: float = 0.0
    seed: int = 0
    scored: bool = False


@dataclass(frozen=True, slots=True)
class Generation:
    """One completion. Token counts as the engine's own tokenizer counts; latency in seconds.

    For an answer made in a batch, `latency_s` is the time until that answer was complete, or the
    whole batch's where the engine can tell only that. `probability` is that of the whole text by
    the model alone, without the grammar; None where it was not asked for, or cannot be told.
    `read_tokens` are those of the prompt that were not in the model's cache. `read_s` are the
    seconds that the engine spent on reading them, `write_s` on the answer behind them, forced text
    included. Each is 0 where unknown.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought_tokens: int = 0
    latency_s: float = 0.0
    finish_reason: Literal["stop", "length"] = "stop"
    probability: float | None = None
    read_tokens: int = 0
    read_s: float = 0.0
    write_s: float = 0.0


@runtime_checkable
class Engine(Protocol):
    """A model that answers. Batches keep their order; `stream` ends with the Generation itself."""

    name: str
    model: str

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]: ...

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]: ...

    def close(self) -> None: ...
