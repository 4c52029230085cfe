"""What a fast run (`training.fast`) is told: a frozen record of settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from haggle.core.config import Record
from haggle.trade.merchant import MAX_TOKENS
from haggle.weights.models import DEFAULT_BASE
from training.config import LoraSettings

# What decides which rows come in which batch; a run is not resumed with another of these.
DATA_KEYS = ("seed", "data", "pool", "max_length", "overlong", "spoken_weight", "batch_tokens")
# What makes the run itself. All other settings may change from one stretch of it to the next.
MODEL_KEYS = (
    "base", "full_finetuning", "freeze_embeddings", "lora", "accumulate", "learning_rate",
    "weight_decay", "max_grad_norm", "warmup_steps",
)  # fmt: skip


class FixedRows(Record):
    """A data set that gives `share` of the rows: one on disk (`dataset`, its `split`), or one that
    the generator makes once from a data config (`data`)."""

    share: float = Field(gt=0, le=1)
    dataset: Path | None = None
    split: str = "train"
    data: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.dataset is None) == (not self.data):
            raise ValueError("name either `dataset` (a data set on disk) or `data` (to generate)")
        return self


class HeldOutSettings(Record):
    """What a run is measured on: dialogues of the test split, `data` laid over the run's own.

    Their loss is taken every `every_minutes`; at the end `turns` of them are answered greedily,
    `batch` at a time.
    """

    dialogues: int = Field(200, ge=1)
    data: dict[str, Any] = Field(default_factory=dict)
    every_minutes: float = Field(2.0, gt=0)
    turns: int = Field(400, ge=1)
    batch: int = Field(64, ge=1)
    max_new_tokens: int = Field(MAX_TOKENS, ge=1)


class FastConfig(Record):
    """One supervised run on fresh dialogues.

    `data` is the data config that each dialogue is made from while the model trains; `fixed` are
    data sets that give a share of the rows. `pool` rows are mixed and cut into batches of at most
    `batch_tokens` tokens, rows of similar length together; a step takes `accumulate` batches.

    With `full_finetuning` the linear layers are trained instead of adapters, and embeddings and
    norms as well unless `freeze_embeddings`; the result is also saved as an adapter of rank
    `adapter_rank`. `minutes`, `max_tokens` and `max_steps` end the run, whichever comes first; over
    the last `decay` of it the learning rate goes to nothing. A checkpoint is saved every
    `save_minutes`, the first after a quarter of that; the last `average` of them are averaged.
    `workers` make data (one a core but one, if not set; 0: in this process).
    """

    base: str = DEFAULT_BASE
    start_from: Path | None = None
    seed: int = 0
    full_finetuning: bool = False
    freeze_embeddings: bool = True
    adapter_rank: int = Field(64, ge=1)
    lora: LoraSettings = LoraSettings()
    max_length: int = Field(2048, ge=16)
    overlong: Literal["cut", "drop"] = "cut"
    spoken_weight: float = Field(1.0, gt=0, le=1)
    data: dict[str, Any] = Field(default_factory=dict)
    fixed: tuple[FixedRows, ...] = ()
    pool: int = Field(1024, ge=1)
    batch_tokens: int = Field(32768, ge=16)
    accumulate: int = Field(2, ge=1)
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    max_grad_norm: float = Field(1.0, gt=0)
    warmup_steps: int = Field(50, ge=0)
    decay: float = Field(0.2, ge=0, le=1)
    minutes: float = Field(20.0, gt=0)
    max_tokens: int | None = Field(None, ge=1)
    max_steps: int | None = Field(None, ge=1)
    log_steps: int = Field(10, ge=1)
    save_minutes: float = Field(2.0, gt=0)
    average: int = Field(3, ge=1)
    held_out: HeldOutSettings = HeldOutSettings()
    compile: bool = False
    workers: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _rows_add_up(self) -> Self:
        if sum(rows.share for rows in self.fixed) > 1:
            raise ValueError("fixed: the shares are more than every row together")
        if self.max_length > self.batch_tokens:
            raise ValueError(f"batch_tokens must hold a row of max_length={self.max_length}")
        return self

    def counts(self) -> list[int]:
        """Rows of a pool that come from each of `fixed`; the rest is fresh."""
        return [round(rows.share * self.pool) for rows in self.fixed]

    def data_identity(self) -> dict[str, Any]:
        """The settings that make the data those of this run, for its checkpoints."""
        told = self.model_dump(mode="json", include=set(DATA_KEYS))
        return told | {"shares": [rows.share for rows in self.fixed]}

    def model_identity(self) -> dict[str, Any]:
        """The settings that make this run itself, for its checkpoints."""
        return self.model_dump(mode="json", include=set(MODEL_KEYS))
