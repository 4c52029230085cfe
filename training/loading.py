"""What a run begins with: tokenizer, base model, adapters to go on from or new ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.weights.adapters import check_adapter
from haggle.weights.models import BaseModel
from training.arguments import trainer_arguments
from training.config import AnyConfig, LoraSettings, RunSettings
from training.quantization import loading_arguments
from training.templates import servable_template

if TYPE_CHECKING:
    from peft import LoraConfig
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def load_tokenizer(base: BaseModel) -> PreTrainedTokenizerBase:
    """The base model's tokenizer, with a padding token and a chat template that others can serve
    what is trained with."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base.path)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    if (template := servable_template(tokenizer)) is not None:
        tokenizer.chat_template = template
    return tokenizer


def trainer_parts(
    config: AnyConfig, tokenizer: PreTrainedTokenizerBase, clock: Any, arguments: Any = None
) -> dict[str, Any]:
    """What every trainer here is built with. `arguments` are the config's own, if not given."""
    return {
        "args": arguments or trainer_arguments(config),
        "processing_class": tokenizer,
        "clock": clock,
        "bucket": config.settings["per_device_train_batch_size"],
    }


def starting_parts(config: RunSettings, base: BaseModel, arguments: Any) -> dict[str, Any]:
    """The base model with the adapter to go on from, or what makes a new adapter."""
    model = load_model(config, base, arguments)
    if config.start_from is None:
        new = None if config.full_finetuning else lora_config(config.lora)
        return {"model": model, "peft_config": new}
    from peft import PeftModel

    model = PeftModel.from_pretrained(model, config.start_from, is_trainable=True)
    return {"model": model, "peft_config": None}


def load_model(config: RunSettings, base: BaseModel, arguments: Any) -> PreTrainedModel:
    """The base model in the type and with the attention that a run trains it with."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from training import attention

    # Weights that are trained stay in float32: bf16 would round small updates away.
    frozen_bf16 = arguments.bf16 and not config.full_finetuning
    kind = AutoConfig.from_pretrained(base.path).model_type
    blocked = arguments.use_cpu and kind in attention.ARCHITECTURES
    return AutoModelForCausalLM.from_pretrained(
        base.path,
        dtype=torch.bfloat16 if frozen_bf16 else torch.float32,
        attn_implementation=attention.register() if blocked else None,
        **loading_arguments(config, arguments.bf16),
    )


def lora_config(lora: LoraSettings) -> LoraConfig:
    """LoRA settings as PEFT takes them."""
    from peft import LoraConfig

    modules = lora.target_modules
    return LoraConfig(
        task_type="CAUSAL_LM",
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=modules if isinstance(modules, str) else list(modules),
    )


@contextmanager
def naming_lora_layers() -> Iterator[None]:
    """Say in words for people that the base lacks the layers which are to get adapters."""
    try:
        yield
    except ValueError as error:
        if "target modules" in str(error).lower():
            raise HaggleError(
                f"lora.target_modules: {error}", hint="use 'all-linear' or names of linear layers"
            ) from None
        raise


def check_start(adapter: Path, base: BaseModel) -> str:
    """The SHA-256 of an adapter's weights, when it belongs to the base; else raises HaggleError."""
    if not adapter.is_dir():
        raise HaggleError(
            "no such adapter directory",
            where=str(adapter),
            hint="train one first, name another as `start_from`, or leave it out",
        )
    check_adapter(adapter, base)
    return hashlib.sha256((adapter / "adapter_model.safetensors").read_bytes()).hexdigest()
