"""Small ONNX encoders on the CPU: a text in, numbers out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from haggle.core.config import install_hint
from haggle.core.errors import HaggleError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Rows: TypeAlias = npt.NDArray[np.float32]

Wanted: TypeAlias = bool | Literal["auto"]
Model = TypeVar("Model")
MAX_TOKENS = 128  # of a text
_FILES = ("model.onnx", "tokenizer.json")
_HINT = f"name a folder with {' and '.join(_FILES)}, or leave it out for the shipped one"


class OnnxEncoder:
    """A model of the kind of BERT in int8, by ONNX Runtime, with its first output.

    Texts are read one by one: in a batch the int8 model would round by what else is in it.
    """

    def __init__(self, folder: Path) -> None:
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
        self._tokenizer.no_truncation()

    def whole(self, text: str) -> bool:
        """Whether a text is short enough to be read to its end."""
        return len(self._tokenizer.encode(text).ids) <= MAX_TOKENS

    def read(self, text: str) -> Rows:
        """What the model makes of a text; what is beyond MAX_TOKENS of it is not read."""
        import numpy as np

        encoding = self._tokenizer.encode(text)
        encoding.truncate(MAX_TOKENS)
        ids = np.array([encoding.ids], dtype=np.int64)
        given = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        output: Rows = self._session.run(None, given)[0][0]
        return output


def where_wanted(load: Callable[[], Model], wanted: Wanted) -> Model | None:
    """A model, loaded; None where none is wanted, or for `auto` where it cannot be loaded.

    Raises HaggleError where it is asked for by `True` and cannot be loaded, or for another value.
    """
    if wanted not in (True, False, "auto"):
        raise HaggleError(
            f"unknown value {wanted!r}", where="embeddings", hint='True, False or "auto"'
        )
    if wanted is False:
        return None
    try:
        return load()
    except HaggleError:
        if wanted == "auto":
            return None
        raise
