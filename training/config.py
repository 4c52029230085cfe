"""What a training run is told: a frozen record read from `configs/train/*.yaml`.

`method` says how to train. `trainer:` takes the arguments of TRL's own config of that method
(`SFTConfig`, `DPOConfig`) under their own names.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from haggle.config import Record, load_config, read_mapping
from haggle.errors import HaggleError, nearest
from haggle.models import DEFAULT_BASE

if TYPE_CHECKING:
    from trl import DPOConfig, SFTConfig

# Set from the fields of TrainConfig, or fixed because the run's own guarantees rest on them.
OWNED: dict[str, str | None] = {
    "output_dir": "output_dir",
    "seed": "seed",
    "data_seed": "seed",
    "max_length": "max_length",
    "padding_free": None,
    "remove_unused_columns": None,
    "train_sampling_strategy": None,
    "push_to_hub": None,
    "use_liger_kernel": None,
    "resume_from_checkpoint": None,
    "ignore_data_skip": None,
}
SFT_OWNED = OWNED | dict.fromkeys(
    (
        "assistant_only_loss", "completion_only_loss", "dataset_kwargs", "packing",
        "label_smoothing_factor", "loss_type",
    )
)  # fmt: skip
DPO_OWNED = OWNED | dict.fromkeys(
    (
        "dataset_num_proc", "model_init_kwargs", "pad_token", "precompute_ref_log_probs",
        "precompute_ref_batch_size", "sync_ref_model", "ref_model_mixup_alpha",
        "ref_model_sync_steps", "truncation_mode",
    )
)  # fmt: skip
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
# Pairs that differ in a few tokens need small steps.
DPO_DEFAULTS: dict[str, Any] = {
    "beta": 0.1,
    "learning_rate": 2e-5,
    "per_device_train_batch_size": 2,
}


class LoraSettings(Record):
    """Low-rank adapters: rank, scale (alpha / r) and the layers that get one."""

    r: int = Field(16, ge=1, le=1024)
    alpha: float = Field(32, gt=0)
    dropout: float = Field(0.0, ge=0, lt=1)
    target_modules: Literal["all-linear"] | tuple[str, ...] = "all-linear"


class RunSettings(Record):
    """What every method is told.

    `start_from` is the directory of an adapter whose weights the run begins with. `quantization`
    holds the frozen weights in four bits (QLoRA; on a GPU only). `max_minutes` bounds the
    training time of the run, over all its resumptions.
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
    max_minutes: float | None = Field(None, gt=0)
    trainer: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _adapters_on_four_bits(self) -> Self:
        if self.quantization is not None and self.full_finetuning:
            raise ValueError("quantization keeps the weights frozen: full_finetuning must be false")
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

    @model_validator(mode="after")
    def _adapters_need_frozen_weights(self) -> Self:
        if self.start_from is not None and self.full_finetuning:
            raise ValueError("an adapter keeps the weights frozen: full_finetuning must be false")
        return self


AnyConfig = TrainConfig | DpoConfig
METHODS: dict[str, type[TrainConfig] | type[DpoConfig]] = {"sft": TrainConfig, "dpo": DpoConfig}


def load_train_config(path: str | Path) -> AnyConfig:
    """Read a run's config. Raises HaggleError naming file, key and the nearest right key."""
    method = read_mapping(Path(path)).get("method", "sft")
    if method not in METHODS:
        hint = nearest(str(method), METHODS)
        raise HaggleError(f"unknown method {method!r}", where=str(path), hint=hint)
    config: AnyConfig = load_config(path, METHODS[method])
    check_trainer_keys(config, where=str(path))
    return config


def check_trainer_keys(config: RunSettings, where: str = "") -> None:
    """Raise HaggleError for a `trainer:` key that TRL's config lacks or that is set here."""
    from trl import DPOConfig, SFTConfig

    of_dpo = isinstance(config, DpoConfig)
    arguments, owned = (DPOConfig, DPO_OWNED) if of_dpo else (SFTConfig, SFT_OWNED)
    known = {field.name for field in fields(arguments) if field.init} - owned.keys()
    for key in config.trainer:
        if key in owned:
            owner = owned[key]
            hint = f"set {owner!r} at the top level instead" if owner else "leave it out"
            raise HaggleError(f"key 'trainer.{key}' is not free to set", where=where, hint=hint)
        if key not in known:
            raise HaggleError(f"unknown key 'trainer.{key}'", where=where, hint=nearest(key, known))


def sft_arguments(config: TrainConfig) -> SFTConfig:
    """The SFTConfig of a run. Raises HaggleError for values that TRL refuses."""
    from trl import SFTConfig

    own = {"dataset_kwargs": {"skip_prepare_dataset": True}}
    return _arguments(SFTConfig, config, TRAINER_DEFAULTS, own)


def dpo_arguments(config: DpoConfig) -> DPOConfig:
    """The DPOConfig of a run. Raises HaggleError for values that TRL refuses."""
    from trl import DPOConfig

    return _arguments(DPOConfig, config, TRAINER_DEFAULTS | DPO_DEFAULTS, {})


def _arguments(
    kind: Any, config: RunSettings, defaults: dict[str, Any], own: dict[str, Any]
) -> Any:
    import torch

    check_trainer_keys(config)
    on_gpu = torch.cuda.is_available()
    own = own | {
        "output_dir": str(config.output_dir),
        "seed": config.seed,
        "data_seed": config.seed,
        "max_length": None,
        "remove_unused_columns": False,
        "bf16": _has_bf16(),
        "use_cpu": not on_gpu,
        "dataloader_pin_memory": on_gpu,
        "logging_nan_inf_filter": False,
    }
    try:
        return kind(**{**defaults, **own, **config.trainer})
    except (ValueError, TypeError) as error:
        raise HaggleError(
            f"trainer: {error}", hint=f"see the reference of TRL's {kind.__name__}"
        ) from None


def _has_bf16() -> bool:
    """Whether this machine multiplies bfloat16 faster than float32."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def resolved_yaml(config: RunSettings, facts: dict[str, Any]) -> str:
    """The run's config with every default written out, and what was found under `resolved`."""
    data = {**config.model_dump(mode="json"), "resolved": facts}
    header = "# Written by the run; the settings in full. `resolved` says what they came to.\n"
    return header + yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def differing_keys(config: RunSettings, facts: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    """Keys in which a stored resolved config asks for another run than this one."""
    now = config.model_dump(mode="json")
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
