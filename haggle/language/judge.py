"""A judge of answers to a review: a small model that says how surely a line agrees.

Optional: it needs the extra `embeddings`. Its weights are shipped (`models/`); how they were made:
`training/consent.py`. It can only refuse: a yes is read by code (`haggle.language.evidence`).
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from pathlib import Path

from haggle.core.config import ROOT
from haggle.language.evidence import Judge
from haggle.language.onnx_encoder import OnnxEncoder, Wanted, where_wanted

SHIPPED = ROOT / "models" / "answers-minilm-l6"


class MiniLMJudge:
    """all-MiniLM-L6-v2, taught which answers agree: a `haggle.language.evidence.Judge`."""

    def __init__(self, folder: Path = SHIPPED) -> None:
        """`folder` has `model.onnx` and `tokenizer.json`. Raises HaggleError where a package or
        file is missing or cannot be read."""
        self._encoder = OnnxEncoder(folder)
        self._odds = lru_cache(maxsize=1024)(self._read)

    def agreement(self, answer: str) -> float:
        """Log odds that an answer agrees; minus infinity for one that is too long to be read."""
        return self._odds(answer)

    def _read(self, answer: str) -> float:
        whole = self._encoder.whole(answer)
        return float(self._encoder.read(answer)[0]) if whole else -math.inf


@cache
def _shared() -> MiniLMJudge:
    return MiniLMJudge()


def load_judge(wanted: Wanted = "auto") -> Judge | None:
    """The shipped judge, loaded once; None where none is wanted, or for `auto` none can be loaded.
    Raises HaggleError where it is asked for by `True` and cannot be."""
    return where_wanted(lambda: _shared(), wanted)
