"""An engine that says what it was told to: for tests and rehearsals."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from haggle.core.engine import Generation, GenerationRequest
from haggle.core.errors import HaggleError
from serving.engines.config import EngineConfig, ScriptedOptions


class ScriptedEngine:
    """Gives its answers in order, one per request; `requests` keeps what it was asked, of an engine
    that begins again only the last."""

    name = "scripted"
    model = "scripted"

    def __init__(self, answers: EngineConfig | Iterable[str]) -> None:
        if isinstance(answers, EngineConfig):
            options = answers.scripted
        else:
            options = ScriptedOptions(answers=tuple(answers))
        self._again, self._seconds = options.again, options.seconds
        self._answers = deque(options.answers)
        self.requests: list[GenerationRequest] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """The next answers. Raises HaggleError when there are not enough left."""
        return [self._next(request) for request in requests]

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        """The next answer word by word, then whole."""
        generation = self._next(request)
        yield from re.findall(r"\s*\S+|\s+", generation.text)
        yield generation

    def close(self) -> None:
        """Nothing to free."""

    def _next(self, request: GenerationRequest) -> Generation:
        if not self._answers:
            raise HaggleError(
                f"the scripted engine has no answer left for request {len(self.requests) + 1}",
                hint="script one answer per request",
            )
        if self._again:
            self.requests.clear()  # it may serve for days
        self.requests.append(request)
        time.sleep(self._seconds)
        text = self._answers[0]
        self._answers.rotate(-1)
        if not self._again:
            self._answers.pop()
        prompt = sum(len(m.content.split()) for m in request.messages)
        return Generation(text, prompt_tokens=prompt, completion_tokens=len(text.split()))
