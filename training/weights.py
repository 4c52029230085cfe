"""Save a model's weights in bf16, whatever type they were trained or merged in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, write_json


def save_model_bf16(model: Any, directory: Path, state: dict[str, Any] | None = None) -> None:
    """Write safetensors and config; a tied output layer is left out, as it is the embedding.

    `state` holds the weights where the model itself has only a part of them.
    """
    import torch

    state = in_bf16(model.state_dict() if state is None else state)
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    model.save_pretrained(directory, state_dict=state)
    # save_pretrained notes the type that the model has in memory.
    config = read_json(directory / "config.json")
    config["dtype"] = str(torch.bfloat16).removeprefix("torch.")
    write_json(directory / "config.json", config)


def load_adapter(model: Any, directory: Path) -> None:
    """Give a PEFT model the adapter weights of `directory`, in place.

    Raises HaggleError when there are none, or when they are those of another shape.
    """
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    file = directory / "adapter_model.safetensors"
    hint = "start_from takes the adapter/ directory of a run with the same base and lora settings"
    if not file.is_file() or not hasattr(model, "peft_config"):
        raise HaggleError("no adapter to start from", where=str(directory), hint=hint)
    try:
        outcome = set_peft_model_state_dict(model, load_file(file))
    except RuntimeError as error:
        message = f"adapter does not fit: {str(error).splitlines()[-1].strip()}"
        raise HaggleError(message, where=str(directory), hint=hint) from None
    missing = [name for name in outcome.missing_keys if "lora_" in name]
    if missing or outcome.unexpected_keys:
        first = (missing or outcome.unexpected_keys)[0]
        raise HaggleError(f"adapter does not fit: {first}", where=str(directory), hint=hint)


def in_bf16(state: dict[str, Any]) -> dict[str, Any]:
    """A model's state with floating-point tensors in bf16."""
    import torch

    return {
        name: tensor.detach().to(torch.bfloat16) if tensor.is_floating_point() else tensor
        for name, tensor in state.items()
    }
