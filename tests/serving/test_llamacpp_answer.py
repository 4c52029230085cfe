"""What llama.cpp tells of its requests becomes the figures of one answer."""

from __future__ import annotations

from typing import Any, cast

import pytest

from serving.engines.gguf import Vocabulary
from serving.engines.llamacpp_answer import Answer


class Letters:
    """A vocabulary with a token for each letter."""

    def count(self, text: str) -> int:
        return len(text)


def event(text: str, cached: int, read: int, read_ms: float, made: int, made_ms: float) -> Any:
    timings = {"cache_n": cached, "prompt_n": read, "prompt_ms": read_ms}
    return {"choices": [{"text": text}], "timings": timings | {"predicted_n": made, "predicted_ms": made_ms}}  # fmt: skip


def test_the_first_request_reads_the_prompt_and_all_else_is_writing():
    answer, letters = Answer(), cast(Vocabulary, Letters())
    answer.force("ab", letters)
    answer.add(event("c", cached=80, read=22, read_ms=200, made=1, made_ms=10))
    answer.force("de", letters)
    answer.add(event("fgh", cached=102, read=3, read_ms=40, made=3, made_ms=50))
    made = answer.generation(1.0)
    assert made.text == "abcdefgh" and made.completion_tokens == 8
    assert (made.prompt_tokens, made.read_tokens) == (100, 20)
    assert (made.read_s, made.write_s) == pytest.approx((0.2, 0.1))
