"""What llama.cpp sends of one answer, collected, with the text that was not asked of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from haggle.core.engine import Generation
from serving.engines.gguf import Vocabulary

Emit = Callable[[str], bool]


class Answer:
    """An answer as it grows, over one request to llama.cpp or several.

    Each piece of text goes to `emit`, which says whether its reader has left.
    """

    def __init__(self, emit: Emit | None = None) -> None:
        self.emit = emit
        self.text = ""
        self.finish: str | None = None
        self.stopped = False
        self.prompt_tokens = 0
        self._read = 0  # tokens of the prompt that were not in the cache
        self._read_ms = self._write_ms = 0.0
        self._known = 0  # tokens of prompt and answer that llama.cpp has counted
        self._forced = 0  # tokens of text forced since then
        self._scores: list[float] = []

    @property
    def tokens(self) -> int:
        """The answer's tokens so far."""
        return max(self._known - self.prompt_tokens, 0) + self._forced

    def add(self, event: dict[str, Any]) -> None:
        """Take in one event."""
        for choice in event.get("choices", ()):
            message = choice.get("message") or choice.get("delta") or {}
            self._say(choice.get("text") or message.get("content") or "")
            self.finish = choice.get("finish_reason") or self.finish
            told = (choice.get("logprobs") or {}).get("content") or ()
            self._scores += [token["logprob"] for token in told if token["token"]]
        if event.get("timings") or event.get("usage"):
            self._count(event.get("usage") or {}, event.get("timings") or {})

    def force(self, text: str, vocabulary: Vocabulary) -> None:
        """Take in text that was decided without the model."""
        self._forced += vocabulary.count(text)
        self._say(text)

    def generation(self, latency_s: float) -> Generation:
        """The whole answer."""
        return Generation(
            text=self.text,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.tokens,
            read_tokens=self._read,
            read_s=self._read_ms / 1000,
            write_s=self._write_ms / 1000,
            latency_s=latency_s,
            finish_reason="length" if self.finish == "length" else "stop",
            probability=math.exp(sum(self._scores)) if self._scores else None,
        )

    def _say(self, piece: str) -> None:
        self.text += piece
        if piece and self.emit is not None:
            self.stopped = self.emit(piece) or self.stopped

    def _count(self, usage: dict[str, Any], timings: dict[str, Any]) -> None:
        """Count a request's tokens and time. The first request reads the prompt; what was forced
        before it is no part of that, and what later ones read is the answer so far."""
        read = usage.get("prompt_tokens", timings.get("cache_n", 0) + timings.get("prompt_n", 0))
        reading = timings.get("prompt_ms", 0.0)
        if not self._known:
            self.prompt_tokens = read - self._forced
            self._read = max(timings.get("prompt_n", 0) - self._forced, 0)
            self._read_ms, reading = reading, 0.0
        self._write_ms += reading + timings.get("predicted_ms", 0.0)
        self._known = read + usage.get("completion_tokens", timings.get("predicted_n", 0))
        self._forced = 0
