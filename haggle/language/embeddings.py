"""Sentence embeddings: how near texts are in meaning, by a small model that runs on the CPU.

Optional: `MiniLM` needs the extra `embeddings`. Its weights are shipped (`models/`); how they were
made: `training/sentences.py`.
Whatever follows from an embedding is a guess; no reader of consent may use one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from haggle.core.config import ROOT
from haggle.language.onnx_encoder import OnnxEncoder, Wanted, where_wanted

if TYPE_CHECKING:
    from haggle.language.onnx_encoder import Rows

WIDTH = 384  # of a row
KEPT = 256  # lists of texts, such as the names of a shop's goods, whose rows are remembered
SHIPPED = ROOT / "models" / "sentences-minilm-l6"


class Embedder(ABC):
    """Turns texts into rows of numbers; the dot product of two rows says how near two texts are."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> Rows:
        """A float32 array with a row of length 1 for each text. Same text, same row."""

    def kept(self, texts: tuple[str, ...]) -> Rows:
        """As `embed`, for texts that come again, such as the names of a shop's goods."""
        memory: dict[tuple[str, ...], Rows] = self.__dict__.setdefault("_memory", {})
        if texts not in memory:
            if len(memory) >= KEPT:
                memory.clear()
            memory[texts] = self.embed(texts)
        return memory[texts]

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """How near each text is to a question, from -1 to 1."""
        if not texts:
            return []
        rows = self.kept(tuple(texts))
        return [float(score) for score in rows @ self.embed([question])[0]]


class MiniLM(Embedder):
    """all-MiniLM-L6-v2, taught what customers ask about goods."""

    def __init__(self, folder: Path = SHIPPED) -> None:
        """`folder` has `model.onnx` and `tokenizer.json`. Raises HaggleError where a package or
        file is missing or cannot be read."""
        self._encoder = OnnxEncoder(folder)
        self._row = lru_cache(maxsize=8192)(self._embedded)

    def embed(self, texts: Sequence[str]) -> Rows:
        import numpy as np

        rows = [self._row(text) for text in texts]
        return np.stack(rows) if rows else np.empty((0, WIDTH), dtype=np.float32)

    def _embedded(self, text: str) -> Rows:
        import numpy as np

        row = self._encoder.read(text).mean(axis=0)
        unit: Rows = (row / np.linalg.norm(row)).astype(np.float32)
        unit.flags.writeable = False
        return unit


@cache
def _shared() -> MiniLM:
    return MiniLM()


def load_embedder(wanted: Wanted = "auto") -> Embedder | None:
    """The installed model, loaded once; None where none is wanted, or for `auto` none installed.

    Raises HaggleError where it is asked for by `True` and cannot be loaded, or for another value.
    """
    return where_wanted(lambda: _shared(), wanted)
