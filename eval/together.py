"""Several threads at one engine: what all of them wait for is asked in one batch.

A dialogue asks one question after the other. Side by side, dialogues fill the batches that make an
engine fast (vLLM), with code that knows nothing of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from haggle.core.engine import Engine, Generation, GenerationRequest


@dataclass
class _Ask:
    requests: Sequence[GenerationRequest]
    answers: list[Generation] = field(default_factory=list)
    error: Exception | None = None
    done: bool = False


class Together:
    """An engine for threads that each hold `taking_part`; it asks once all of them wait, or those
    that have begun so far."""

    def __init__(self, engine: Engine) -> None:
        self.name, self.model = engine.name, engine.model
        self._engine = engine
        self._changed = threading.Condition()
        self._parts = 0
        self._waiting: list[_Ask] = []

    @contextmanager
    def taking_part(self) -> Iterator[None]:
        """Be one of those that are waited for."""
        with self._changed:
            self._parts += 1
        try:
            yield
        finally:
            with self._changed:
                self._parts -= 1
                self._changed.notify_all()

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """Answer these requests, in a batch with those of the others. Where the engine raises, each
        is asked again alone, so that nobody fails for another's request."""
        ask = _Ask(requests)
        with self._changed:
            self._waiting.append(ask)
            self._changed.notify_all()
            while not ask.done:
                if self._waiting and len(self._waiting) >= self._parts:
                    self._answer_all()
                else:
                    self._changed.wait()
        if ask.error is not None:
            raise ask.error
        return ask.answers

    def _answer_all(self) -> None:
        asks, self._waiting = self._waiting, []
        try:
            self._answer(asks)
        except Exception:
            for ask in asks:
                self._answer_alone(ask)
        finally:
            for ask in asks:
                ask.done = True
            self._changed.notify_all()

    def _answer(self, asks: Sequence[_Ask]) -> None:
        answers = iter(self._engine.generate([r for ask in asks for r in ask.requests]))
        for ask in asks:
            ask.answers = [next(answers) for _ in ask.requests]

    def _answer_alone(self, ask: _Ask) -> None:
        try:
            self._answer([ask])
        except Exception as error:
            ask.error = error

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        """As the engine streams; no batch is waited for."""
        return self._engine.stream(request)

    def close(self) -> None:
        """The engine is its owner's to close."""
