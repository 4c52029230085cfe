"""The table of methods. Each is a module of five functions, called from top to bottom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from haggle.weights.models import BaseModel
from training import dpo, grpo, sft
from training.templates import Messages

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Data(Protocol):
    """Rows of a data set in tokens."""

    def facts(self) -> dict[str, Any]:
        """What the run's resolved config says of them."""

    def describe(self) -> str:
        """One line for people."""

    def example(self) -> tuple[list[int], list[int]]:
        """The ids of the first row with its right answer, and where these are the answer (1, 0)."""


class Method(Protocol):
    """What tells one way of training from another."""

    def read(self, config: Any, limit: int | None = None) -> list[Any]:
        """The rows of the config's data set, or those of its first `limit` dialogues or pairs."""

    def rows_in(self, dialogues: list[Messages]) -> list[Any]:
        """The same rows, made from dialogues at hand."""

    def tokens(self, config: Any, rows: list[Any], tokenizer: PreTrainedTokenizerBase) -> Any:
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
