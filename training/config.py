"""What a training run is told: a frozen record read from `configs/train/*.yaml`.

`method` says how to train. `trainer:` takes the arguments of TRL's own config of that method
(`SFTConfig`, `DPOConfig`, `GRPOConfig`) under their own names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from haggle.core.config import Record, parse, read_mapping
from haggle.core.errors import HaggleError, nearest
from haggle.trade.merchant import MAX_TOKENS
from haggle.weights.models import DEFAULT_BASE
from training.rewards import RewardWeights

if TYPE_CHECKING:
    from trl import DPOConfig, GRPOConfig, SFTConfig

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
    # Held-out accuracy has a record of its own.
    "eval_strategy": "evaluation",
    "eval_steps": "evaluation",
    "metric_for_best_model": "evaluation",
    "greater_is_better": "evaluation",
    "load_best_model_at_end": "evaluation",
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
GRPO_OWNED = (
    OWNED
    | {"reward_weights": "rewards"}
    | dict.fromkeys(
        (
            "cache_implementation", "chat_template_kwargs", "generation_kwargs",
            "model_init_kwargs", "ref_model_mixup_alpha", "ref_model_sync_steps",
            "repetition_penalty", "shuffle_dataset", "sync_ref_model",
            "transformers_continuous_batching_config", "use_transformers_continuous_batching",
            "use_transformers_paged",
        )
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


REPORTERS = ("tensorboard", "trackio")  # extras of this package
# An answer is short, and most are right: many answers to few prompts, and small steps.
GRPO_DEFAULTS: dict[str, Any] = {
    "beta": 0.0,
    "learning_rate": 2e-5,
    "num_generations": 8,
    "per_device_train_batch_size": 8,
    "max_completion_length": 128,
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

    @model_validator(mode="after")
    def _adapters_need_frozen_weights(self) -> Self:
        if self.start_from is not None and self.full_finetuning:
            raise ValueError("an adapter keeps the weights frozen: full_finetuning must be false")
        return self


AnyConfig = TrainConfig | DpoConfig | GrpoConfig
METHODS: dict[str, type[TrainConfig] | type[DpoConfig] | type[GrpoConfig]] = {
    "sft": TrainConfig,
    "dpo": DpoConfig,
    "grpo": GrpoConfig,
}


def load_train_config(path: str | Path) -> AnyConfig:
    """Read a run's config. Raises HaggleError naming file, key and the nearest right key."""
    return parse_train_config(read_mapping(Path(path)), str(path))


def parse_train_config(data: Mapping[str, Any], where: str) -> AnyConfig:
    """A run's config from its keys and values; `where` names their source in errors."""
    method = data.get("method", "sft")
    if method not in METHODS:
        hint = nearest(str(method), METHODS)
        raise HaggleError(f"unknown method {method!r}", where=where, hint=hint)
    config: AnyConfig = parse(data, METHODS[method], where)
    check_trainer_keys(config, where=where)
    return config


def check_trainer_keys(config: RunSettings, where: str = "") -> None:
    """Raise HaggleError for a `trainer:` key that TRL's config lacks or that is set here."""
    from trl import DPOConfig, GRPOConfig, SFTConfig

    arguments: Any
    if isinstance(config, GrpoConfig):
        arguments, owned = GRPOConfig, GRPO_OWNED
    elif isinstance(config, DpoConfig):
        arguments, owned = DPOConfig, DPO_OWNED
    else:
        arguments, owned = SFTConfig, SFT_OWNED
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
    return _arguments(SFTConfig, config, own)


def dpo_arguments(config: DpoConfig) -> DPOConfig:
    """The DPOConfig of a run. Raises HaggleError for values that TRL refuses.

    TRL's own limit, 1,024 tokens, would cut answers off that `training.pairs` has let through.
    """
    from trl import DPOConfig

    return _arguments(DPOConfig, config, {"max_length": config.max_length})


def grpo_arguments(config: GrpoConfig) -> GRPOConfig:
    """The GRPOConfig of a run. Raises HaggleError for values that TRL refuses."""
    from trl import GRPOConfig

    weights = config.rewards.model_dump()
    return _arguments(GRPOConfig, config, {"reward_weights": list(weights.values())})


def trainer_defaults(config: RunSettings) -> dict[str, Any]:
    """What holds under `trainer:` where the config is silent."""
    if isinstance(config, GrpoConfig):
        return TRAINER_DEFAULTS | GRPO_DEFAULTS
    return TRAINER_DEFAULTS | (DPO_DEFAULTS if isinstance(config, DpoConfig) else {})


def _arguments(kind: Any, config: RunSettings, own: dict[str, Any]) -> Any:
    import torch

    check_trainer_keys(config)
    on_gpu = torch.cuda.is_available()
    own = own | {
        "output_dir": str(config.output_dir),
        "seed": config.seed,
        "data_seed": config.seed,
        "remove_unused_columns": False,
        "bf16": _has_bf16(),
        "use_cpu": not on_gpu,
        "dataloader_pin_memory": on_gpu,
        "logging_nan_inf_filter": False,
        # What trackers file a run under: the same when it goes on.
        "project": "haggle",
        "run_name": str(config.output_dir),
    }
    if config.evaluation is not None:
        own |= {"metric_for_best_model": "joint", "greater_is_better": True}
    try:
        made = kind(**{**trainer_defaults(config), **own, **config.trainer})
    except (ValueError, TypeError) as error:
        raise HaggleError(
            f"trainer: {error}", hint=f"see the reference of TRL's {kind.__name__}"
        ) from None
    if config.evaluation is not None:
        if made.save_strategy != "steps":
            raise HaggleError(
                f"evaluation needs checkpoints: trainer.save_strategy is {made.save_strategy}",
                hint="leave save_strategy out, and set trainer.save_steps",
            )
        if made.save_total_limit == 1:
            # The best and the last: with 1, the last would be deleted at the end, and a run that
            # is given more time could not go on from there.
            made.save_total_limit = 2
    return made


def check_reports(names: Sequence[str]) -> None:
    """Raise HaggleError for what `trainer.report_to` asks for and is unknown or not installed."""
    from transformers.integrations import get_available_reporting_integrations
    from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK

    for name in names:
        if name not in INTEGRATION_TO_CALLBACK:
            hint = nearest(name, INTEGRATION_TO_CALLBACK)
            raise HaggleError(f"trainer.report_to: unknown {name!r}", hint=hint)
        if name not in get_available_reporting_integrations():
            package = f'-e ".[{name}]"' if name in REPORTERS else name
            raise HaggleError(
                f"trainer.report_to: {name} is not installed", hint=f"pip install {package}"
            )


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
    if now["evaluation"] and isinstance(stored.get("evaluation"), dict):
        now["evaluation"]["batch"] = stored["evaluation"].get("batch")  # a matter of memory alone
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
