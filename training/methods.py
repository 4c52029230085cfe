"""The table of methods. Each is a module of five functions, called from top to bottom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from haggle.weights.models import BaseModel
from training import dpo, grpo, sft
from training.data import Tokenized
from training.templates import Messages

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Method(Protocol):
    """What tells one way of training from another."""

    def read(self, config: Any, limit: int | None = None) -> list[Any]:
        """The rows of the config's data set, or those of its first `limit` dialogues or pairs."""

    def rows_in(self, dialogues: list[Messages]) -> list[Any]:
        """The same rows, made from dialogues at hand."""

    def tokens(
        self, config: Any, rows: list[Any], tokenizer: PreTrainedTokenizerBase
    ) -> Tokenized[Any]:
        """The rows in tokens."""

    def largest_batch(self, data: Any, arguments: Any) -> tuple[int, int]:
        """Rows and tokens a row of the largest batch that goes through the model."""

    def build_trainer(
        self,
        config: Any,
        base: BaseModel,
        tokenizer: PreTrainedTokenizerBase,
        data: Any,
        clock: Any,
        arguments: Any = None,
    ) -> Any:
        """The model in its trainer."""


METHODS: dict[str, Method] = {"sft": sft, "dpo": dpo, "grpo": grpo}
