"""What a training run is told: a frozen record read from `configs/train/*.yaml`.

`trainer:` takes TRL's own `SFTConfig` arguments under their own names.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import Field, model_validator

from haggle.config import Record, load_config
from haggle.errors import HaggleError, nearest
from haggle.models import DEFAULT_BASE

if TYPE_CHECKING:
    from trl import SFTConfig

# Set from the fields of TrainConfig, or fixed because the run's own guarantees rest on them.
OWNED = {
    "output_dir": "output_dir",
    "seed": "seed",
    "data_seed": "seed",
    "max_length": "max_length",
    "assistant_only_loss": None,
    "completion_only_loss": None,
    "dataset_kwargs": None,
    "packing": None,
    "padding_free": None,
    "label_smoothing_factor": None,
    "loss_type": None,
    "remove_unused_columns": None,
    "train_sampling_strategy": None,
    "push_to_hub": None,
    "use_liger_kernel": None,
    "resume_from_checkpoint": None,
    "ignore_data_skip": None,
}
TRAINER_DEFAULTS: dict[str, Any] = {
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


class LoraSettings(Record):
    """Low-rank adapters: rank, scale (alpha / r) and the layers that get one."""

    r: int = Field(16, ge=1, le=1024)
    alpha: float = Field(32, gt=0)
    dropout: float = Field(0.0, ge=0, lt=1)
    target_modules: Literal["all-linear"] | tuple[str, ...] = "all-linear"


class TrainConfig(Record):
    """One supervised fine-tuning run.

    `max_length` in tokens of a whole dialogue; `overlong` says what happens beyond it.
    `start_from` is the directory of an adapter whose weights the run begins with.
    `quantization` holds the frozen weights in four bits (QLoRA; on a GPU only).
    `spoken_weight` is the loss weight of the spoken line against 1 for the decision.
    `max_minutes` bounds the training time of the run, over all its resumptions.
    """

    base: str = DEFAULT_BASE
    dataset: Path
    output_dir: Path
    start_from: Path | None = None
    seed: int = 0
    lora: LoraSettings = LoraSettings()
    full_finetuning: bool = False
    quantization: Literal["nf4"] | None = None
    max_length: int = Field(2048, ge=16)
    overlong: Literal["cut", "drop"] = "cut"
    spoken_weight: float = Field(1.0, gt=0, le=1)
    max_minutes: float | None = Field(None, gt=0)
    trainer: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _adapters_on_four_bits(self) -> TrainConfig:
        if self.quantization is not None and self.full_finetuning:
            raise ValueError("quantization keeps the weights frozen: full_finetuning must be false")
        return self


def load_train_config(path: str | Path) -> TrainConfig:
    """Read a run's config. Raises HaggleError naming file, key and the nearest right key."""
    config = load_config(path, TrainConfig)
    check_trainer_keys(config.trainer, where=str(path))
    return config


def check_trainer_keys(trainer: dict[str, Any], where: str = "") -> None:
    """Raise HaggleError for a `trainer:` key that SFTConfig does not have or that is set here."""
    from trl import SFTConfig

    known = {field.name for field in fields(SFTConfig) if field.init} - OWNED.keys()
    for key in trainer:
        if key in OWNED:
            owner = OWNED[key]
            hint = f"set {owner!r} at the top level instead" if owner else "leave it out"
            raise HaggleError(f"key 'trainer.{key}' is not free to set", where=where, hint=hint)
        if key not in known:
            raise HaggleError(f"unknown key 'trainer.{key}'", where=where, hint=nearest(key, known))


def sft_arguments(config: TrainConfig) -> SFTConfig:
    """The SFTConfig of a run. Raises HaggleError for values that TRL refuses."""
    import torch
    from trl import SFTConfig

    check_trainer_keys(config.trainer)
    on_gpu = torch.cuda.is_available()
    own = {
        "output_dir": str(config.output_dir),
        "seed": config.seed,
        "data_seed": config.seed,
        "max_length": None,
        "remove_unused_columns": False,
        "dataset_kwargs": {"skip_prepare_dataset": True},
        "bf16": _has_bf16(),
        "use_cpu": not on_gpu,
        "dataloader_pin_memory": on_gpu,
        "logging_nan_inf_filter": False,
    }
    merged = {**TRAINER_DEFAULTS, **own, **config.trainer}
    try:
        return SFTConfig(**merged)
    except (ValueError, TypeError) as error:
        raise HaggleError(
            f"trainer: {error}", hint="see the reference of TRL's SFTConfig"
        ) from None


def _has_bf16() -> bool:
    """Whether this machine multiplies bfloat16 faster than float32."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def resolved_yaml(config: TrainConfig, facts: dict[str, Any]) -> str:
    """The run's config with every default written out, and what was found under `resolved`."""
    data = {**config.model_dump(mode="json"), "resolved": facts}
    header = "# Written by the run; the settings in full. `resolved` says what they came to.\n"
    return header + yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def differing_keys(config: TrainConfig, facts: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    """Keys in which a stored resolved config asks for another run than this one."""
    now = config.model_dump(mode="json")
    # The time limit may be raised and logging changed without making it another run.
    free = {"max_minutes", "output_dir"}
    keys = [key for key in now if key not in free and now[key] != stored.get(key)]
    before = stored.get("resolved") or {}
    keys += [f"resolved.{k}" for k in ("data_sha256",) if facts[k] != before.get(k)]
    return keys
