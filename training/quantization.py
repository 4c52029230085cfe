"""QLoRA: the frozen weights in four bits (NF4 of bitsandbytes), the adapters in bf16, on a GPU.

Dettmers et al. 2023 (QLoRA), with double quantisation of the scales. The adapter that comes out
belongs to the unquantised base and is exported as any other.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError

if TYPE_CHECKING:
    from training.config import RunSettings


def check_quantization(config: RunSettings) -> None:
    """Raise HaggleError when the config asks for four bits and this machine cannot give them."""
    if config.quantization is None:
        return
    import torch

    where = f"quantization: {config.quantization}"
    if not torch.cuda.is_available():
        raise HaggleError(
            "there is no CUDA device; on a CPU four bits only cost time",
            where=where,
            hint="leave `quantization` out, or train on a machine with an NVIDIA GPU",
        )
    if find_spec("bitsandbytes") is None:
        raise HaggleError(
            "the package bitsandbytes is not installed",
            where=where,
            hint='install the extra: pip install -e ".[qlora]"',
        )


def loading_arguments(config: RunSettings, bf16: bool) -> dict[str, Any]:
    """What `from_pretrained` needs for the config's quantisation; nothing without one.

    Raises HaggleError when this machine cannot quantise.
    """
    check_quantization(config)
    if config.quantization is None:
        return {}
    import torch
    from accelerate import PartialState
    from transformers import BitsAndBytesConfig

    compute = torch.bfloat16 if bf16 else torch.float16
    return {
        "quantization_config": BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type=config.quantization,
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=compute,
            # Of the type of all other weights, so that FSDP can shard them together.
            bnb_4bit_quant_storage=compute,
        ),
        "device_map": {"": PartialState().local_process_index},
    }
