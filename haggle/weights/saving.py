"""Save a model's weights in bf16, whatever type they were trained or merged in.

Heavy libraries are imported inside functions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from haggle.core.storage import atomic_dir, read_json, write_json


def write_model(target: Path, model: Any, tokenizer: Any) -> None:
    """Write a directory that transformers loads: bf16 weights, config and tokenizer.

    It is there whole or not at all.
    """
    with atomic_dir(target) as directory:
        save_model_bf16(model, directory)
        tokenizer.save_pretrained(directory)


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


def in_bf16(state: dict[str, Any]) -> dict[str, Any]:
    """A model's state with floating-point tensors in bf16."""
    import torch

    return {
        name: tensor.detach().to(torch.bfloat16) if tensor.is_floating_point() else tensor
        for name, tensor in state.items()
    }
