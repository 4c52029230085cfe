"""What a training run is told: a frozen record of settings. `training.recipes` reads them from
files.

`method` says how to train. `trainer:` takes the arguments of TRL's own config of that method
(`SFTConfig`, `DPOConfig`, `GRPOConfig`) under their own names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from haggle.core.config import Record
from haggle.trade.merchant import MAX_TOKENS
from haggle.weights.models import DEFAULT_BASE
from training.rewards import RewardWeights

# What holds under `trainer:` where a recipe is silent, and what of it a method has for itself.
DEFAULTS: dict[str, Any] = {
    "num_train_epochs": 1,
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 1,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "linear",
    "warmup_steps": 0.03,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "gradient_checkpointing": False,
    "ddp_find_unused_parameters": False,
    "logging_steps": 10,
    "save_steps": 50,
    "save_total_limit": 2,
    "report_to": "none",
}
METHOD_DEFAULTS: dict[str, dict[str, Any]] = {
    # Pairs that differ in a few tokens need small steps.
    "dpo": {"beta": 0.1, "learning_rate": 2e-5, "per_device_train_batch_size": 2},
    # An answer is short, and most are right: many answers to few prompts, and small steps.
    "grpo": {
        "beta": 0.0,
        "learning_rate": 2e-5,
        "num_generations": 8,
        "per_device_train_batch_size": 8,
        "max_completion_length": 128,
    },
}


class LoraSettings(Record):
    """Low-rank adapters: rank, scale (alpha / r) and the layers that get one."""

    r: int = Field(16, ge=1, le=1024)
    alpha: float = Field(32, gt=0)
    dropout: float = Field(0.0, ge=0, lt=1)
    target_modules: Literal["all-linear"] | tuple[str, ...] = "all-linear"


class EvaluationSettings(Record):
    """Held-out accuracy while training; see `training.heldout`.

    `turns` are drawn by the run's seed from `split` of `dataset` (a directory; without one the
    run's own) and answered every `every_steps` steps (as often as checkpoints are saved, if not
    set) and at the end. `patience` stops the run after so many evaluations without a better joint
    accuracy. With `keep_best` the weights saved at the end are those of the best evaluation.
    `batch` in turns, `max_new_tokens` of an answer.
    """

    dataset: Path | None = None
    split: str = Field("test", min_length=1)
    turns: int = Field(100, ge=1)
    every_steps: int | None = Field(None, ge=1)
    patience: int | None = Field(None, ge=1)
    keep_best: bool = True
    batch: int = Field(8, ge=1)
    max_new_tokens: int = Field(MAX_TOKENS, ge=1)


class RunSettings(Record):
    """What every method is told.

    `start_from` is the directory of an adapter whose weights the run begins with. `quantization`
    holds the frozen weights in four bits (QLoRA; on a GPU only). `max_minutes` bounds the
    training time of the run, over all its resumptions. `evaluation` measures while it trains.
    """

    method: Literal["sft", "dpo", "grpo"] = "sft"
    base: str = DEFAULT_BASE
    dataset: Path
    output_dir: Path
    start_from: Path | None = None
    seed: int = 0
    lora: LoraSettings = LoraSettings()
    full_finetuning: bool = False
    quantization: Literal["nf4"] | None = None
    max_length: int = Field(2048, ge=16)
    max_minutes: float | None = Field(None, gt=0)
    evaluation: EvaluationSettings | None = None
    trainer: dict[str, Any] = Field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """What `trainer` comes to, with what holds where it is silent."""
        return DEFAULTS | METHOD_DEFAULTS.get(self.method, {}) | self.trainer

    @property
    def weights(self) -> Path:
        """Where the run saves what it trained: an adapter, or a whole model."""
        return self.output_dir / ("model" if self.full_finetuning else "adapter")

    @model_validator(mode="after")
    def _adapters_need_frozen_weights(self) -> Self:
        for key, name in (("quantization", "quantization"), ("start_from", "an adapter")):
            if getattr(self, key) is not None and self.full_finetuning:
                raise ValueError(f"{name} keeps the weights frozen: full_finetuning must be false")
        return self


class TrainConfig(RunSettings):
    """One supervised fine-tuning run.

    `max_length` in tokens of a whole dialogue; `overlong` says what happens beyond it.
    `spoken_weight` is the loss weight of the spoken line against 1 for the decision.
    """

    method: Literal["sft"] = "sft"
    overlong: Literal["cut", "drop"] = "cut"
    spoken_weight: float = Field(1.0, gt=0, le=1)


class DpoConfig(RunSettings):
    """One run of direct preference optimisation (Rafailov et al. 2023) on pairs of answers.

    An adapter that it starts from is its reference as well, and keeps its own rank and layers:
    `lora` is for a new one on the bare base. `max_length` in tokens of a prompt with the longer of
    its answers; beyond it the prompt's oldest rounds go.
    """

    method: Literal["dpo"]


class GrpoConfig(RunSettings):
    """One run of group relative policy optimisation (Shao et al. 2024) on turns of dialogues, with
    rewards that code tells from the answer (`training.rewards`).

    `max_length` in tokens of a prompt with the longest answer there may be
    (`trainer.max_completion_length`); beyond it the prompt's oldest rounds go. `turns` draws so
    many of the data set's turns, all if None. `rewards` are what each reward counts in the sum.
    """

    method: Literal["grpo"]
    turns: int | None = Field(None, ge=1)
    rewards: RewardWeights = RewardWeights()


AnyConfig = TrainConfig | DpoConfig | GrpoConfig
METHODS: dict[str, type[TrainConfig] | type[DpoConfig] | type[GrpoConfig]] = {
    "sft": TrainConfig,
    "dpo": DpoConfig,
    "grpo": GrpoConfig,
}


def resolved_yaml(config: RunSettings, facts: dict[str, Any]) -> str:
    """The run's config with every default written out, and what was found under `resolved`."""
    data = {**config.model_dump(mode="json"), "resolved": facts}
    header = "# Written by the run; the settings in full. `resolved` says what they came to.\n"
    return header + yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def differing_keys(config: RunSettings, facts: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    """Keys in which a stored resolved config asks for another run than this one."""
    now = config.model_dump(mode="json")
    if now["evaluation"] and isinstance(stored.get("evaluation"), dict):
        now["evaluation"]["batch"] = stored["evaluation"].get("batch")  # a matter of memory alone
    if isinstance(stored.get("trainer"), dict):  # a default written out is no other setting
        known = config.model_copy(update={"trainer": stored["trainer"]})
        now["trainer"], stored = config.settings, stored | {"trainer": known.settings}
    # What a run before the key was invented did is the default.
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in type(config).model_fields.items()
    }
    # The time limit may be raised and logging changed without making it another run.
    free = {"max_minutes", "output_dir"}
    keys = [k for k in now if k not in free and now[k] != stored.get(k, defaults[k])]
    before = stored.get("resolved") or {}
    sums = [name for name in facts if name.endswith("_sha256")]
    keys += [f"resolved.{name}" for name in sums if facts[name] != before.get(name)]
    return keys
