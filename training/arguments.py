"""The arguments that TRL's trainers are given, from a run's config: SFTConfig, DPOConfig,
GRPOConfig."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from haggle.core.errors import HaggleError, nearest
from training.config import AnyConfig, DpoConfig, GrpoConfig, RunSettings

REPORTERS = ("tensorboard", "trackio")  # extras of this package
TRL = {"sft": "SFTConfig", "dpo": "DPOConfig", "grpo": "GRPOConfig"}
# Set from the fields of a config, or fixed because the run's own guarantees rest on them.
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
METHOD_OWNED: dict[str, dict[str, str | None]] = {
    "sft": dict.fromkeys(
        (
            "assistant_only_loss", "completion_only_loss", "dataset_kwargs", "packing",
            "label_smoothing_factor", "loss_type",
        )
    ),
    "dpo": dict.fromkeys(
        (
            "dataset_num_proc", "model_init_kwargs", "pad_token", "precompute_ref_log_probs",
            "precompute_ref_batch_size", "sync_ref_model", "ref_model_mixup_alpha",
            "ref_model_sync_steps", "truncation_mode",
        )
    ),
    "grpo": {"reward_weights": "rewards"}
    | dict.fromkeys(
        (
            "cache_implementation", "chat_template_kwargs", "generation_kwargs",
            "model_init_kwargs", "ref_model_mixup_alpha", "ref_model_sync_steps",
            "repetition_penalty", "shuffle_dataset", "sync_ref_model",
            "transformers_continuous_batching_config", "use_transformers_continuous_batching",
            "use_transformers_paged",
        )
    ),
}  # fmt: skip


def check_trainer_keys(config: AnyConfig, where: str = "") -> None:
    """Raise HaggleError for a `trainer:` key that TRL's config lacks or that is set here."""
    owned = OWNED | METHOD_OWNED[config.method]
    known = {field.name for field in fields(_trl(config)) if field.init} - owned.keys()
    for key in config.trainer:
        if key in owned:
            owner = owned[key]
            hint = f"set {owner!r} at the top level instead" if owner else "leave it out"
            raise HaggleError(f"key 'trainer.{key}' is not free to set", where=where, hint=hint)
        if key not in known:
            raise HaggleError(f"unknown key 'trainer.{key}'", where=where, hint=nearest(key, known))


def trainer_arguments(config: AnyConfig) -> Any:
    """TRL's config of a run. Raises HaggleError for values that TRL refuses."""
    check_trainer_keys(config)
    kind = _trl(config)
    try:
        made = kind(**{**config.settings, **_fixed(config), **config.trainer})
    except (ValueError, TypeError) as error:
        raise HaggleError(
            f"trainer: {error}", hint=f"see the reference of TRL's {kind.__name__}"
        ) from None
    if config.evaluation is not None:
        _keep_best(made)
    return made


def _trl(config: AnyConfig) -> Any:
    import trl

    return getattr(trl, TRL[config.method])


def _fixed(config: AnyConfig) -> dict[str, Any]:
    """What follows from the rest of the config and from this machine."""
    import torch

    on_gpu = torch.cuda.is_available()
    fixed: dict[str, Any] = {
        "output_dir": str(config.output_dir),
        "seed": config.seed,
        "data_seed": config.seed,
        "remove_unused_columns": False,
        "bf16": has_bf16(),
        "use_cpu": not on_gpu,
        "dataloader_pin_memory": on_gpu,
        "logging_nan_inf_filter": False,
        # What trackers file a run under: the same when it goes on.
        "project": "haggle",
        "run_name": str(config.output_dir),
    }
    if isinstance(config, GrpoConfig):
        fixed["reward_weights"] = list(config.rewards.model_dump().values())
    elif isinstance(config, DpoConfig):
        # TRL's own limit, 1,024 tokens, would cut answers off that `training.pairs` lets through.
        fixed["max_length"] = config.max_length
    else:
        fixed["dataset_kwargs"] = {"skip_prepare_dataset": True}
    if config.evaluation is not None:
        fixed |= {"metric_for_best_model": "joint", "greater_is_better": True}
    return fixed


def _keep_best(made: Any) -> None:
    """Keep the checkpoints that held-out evaluation needs. Raises HaggleError without any."""
    if made.save_strategy != "steps":
        raise HaggleError(
            f"evaluation needs checkpoints: trainer.save_strategy is {made.save_strategy}",
            hint="leave save_strategy out, and set trainer.save_steps",
        )
    if made.save_total_limit == 1:
        # The best and the last: with 1, the last would be deleted at the end, and a run that is
        # given more time could not go on from there.
        made.save_total_limit = 2


def check_machine(config: RunSettings, arguments: Any) -> None:
    """Raise HaggleError for what a run asks for and this machine cannot do."""
    if config.max_minutes and arguments.world_size > 1:
        raise HaggleError(
            "max_minutes needs a single process: each would keep its own time",
            hint="leave it out, and bound the run by trainer.max_steps or num_train_epochs",
        )
    check_reports(arguments.report_to)


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


def has_bf16() -> bool:
    """Whether this machine multiplies bfloat16 faster than float32."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
