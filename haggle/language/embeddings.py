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
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from haggle.core.config import ROOT
from haggle.core.errors import HaggleError, install_hint

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Rows: TypeAlias = npt.NDArray[np.float32]

Wanted: TypeAlias = bool | Literal["auto"]
WIDTH = 384  # of a row
MAX_TOKENS = 128  # of a text; the rest is not read
KEPT = 256  # lists of texts, such as the names of a shop's goods, whose rows are remembered
SHIPPED = ROOT / "models" / "sentences-minilm-l6"
_FILES = ("model.onnx", "tokenizer.json")
_HINT = f"name a folder with {' and '.join(_FILES)}, or leave it out for the shipped one"


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
    """all-MiniLM-L6-v2, taught what customers ask about goods, in int8, by ONNX Runtime.

    Texts are embedded one by one: in a batch the int8 model would round by what else is in it.
    """

    def __init__(self, folder: Path = SHIPPED) -> None:
        """`folder` has `model.onnx` and `tokenizer.json`. Raises HaggleError where a package or
        file is missing or cannot be read."""
        try:
            import onnxruntime
            import tokenizers
        except ImportError as error:
            raise HaggleError(
                f"{error.name} is not installed",
                where="embeddings",
                hint=install_hint("embeddings"),
            ) from None
        model, tokenizer = (folder / name for name in _FILES)
        for path in (model, tokenizer):
            if not path.is_file():
                raise HaggleError("there is no such file", where=str(path), hint=_HINT)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # the texts are short
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
            self._session: Any = onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # both libraries raise bare ones
            raise HaggleError(f"cannot be loaded: {error}", where=str(folder), hint=_HINT) from None
        self._tokenizer.encode_special_tokens = True  # [CLS] in a text is no mark
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._row = lru_cache(maxsize=8192)(self._embedded)

    def embed(self, texts: Sequence[str]) -> Rows:
        import numpy as np

        rows = [self._row(text) for text in texts]
        return np.stack(rows) if rows else np.empty((0, WIDTH), dtype=np.float32)

    def _embedded(self, text: str) -> Rows:
        import numpy as np

        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        given = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        row = self._session.run(None, given)[0][0].mean(axis=0)
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
    if wanted not in (True, False, "auto"):
        raise HaggleError(
            f"unknown value {wanted!r}", where="embeddings", hint='True, False or "auto"'
        )
    if wanted is False:
        return None
    try:
        return _shared()
    except HaggleError:
        if wanted == "auto":
            return None
        raise
