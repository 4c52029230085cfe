"""Low-rank adapters in plain PyTorch, in the names and shapes that PEFT gives them.

For machines that have PyTorch and transformers alone. What is saved here PEFT reads, and the other
way round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from haggle.core.errors import HaggleError
from haggle.core.storage import read_json
from training.config import LoraSettings

PREFIX = "base_model.model."


class LoraLinear(nn.Module):
    """A frozen linear layer with an adapter beside it: W x + scale * B A x."""

    def __init__(self, inner: nn.Linear, settings: LoraSettings) -> None:
        super().__init__()
        self.inner = inner
        self.scale = settings.alpha / settings.r
        self.dropout = nn.Dropout(settings.dropout) if settings.dropout else nn.Identity()
        device = inner.weight.device
        self.lora_A = nn.Parameter(torch.empty(settings.r, inner.in_features, device=device))
        self.lora_B = nn.Parameter(torch.zeros(inner.out_features, settings.r, device=device))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        low = self.dropout(x).to(self.lora_A.dtype)
        low = nn.functional.linear(nn.functional.linear(low, self.lora_A), self.lora_B)
        outcome = self.inner(x)
        return outcome + (low * self.scale).to(outcome.dtype)


def linear_layers(model: Any) -> Iterator[tuple[str, nn.Linear]]:
    """Each linear layer by its name, the output layer left out, as PEFT's "all-linear" has it."""
    head = model.get_output_embeddings()
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and module is not head:
            yield name, module


def add_lora(model: Any, settings: LoraSettings) -> None:
    """Freeze a causal model and give its linear layers adapters, in place.

    Raises HaggleError where no layer has one of the names asked for.
    """
    model.requires_grad_(False)
    wanted = settings.target_modules
    found = [
        (name, layer)
        for name, layer in linear_layers(model)
        if wanted == "all-linear" or name.rpartition(".")[2] in wanted
    ]
    if not found:
        raise HaggleError(
            f"lora.target_modules: no linear layer is named {', '.join(wanted)}",
            hint="use 'all-linear' or names of linear layers",
        )
    for name, layer in found:
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, LoraLinear(layer, settings))


def lora_tensors(model: Any) -> dict[str, torch.Tensor]:
    """The adapters' weights under PEFT's names."""
    tensors = {}
    for name, module in model.named_modules():
        if isinstance(module, LoraLinear):
            tensors[f"{PREFIX}{name}.lora_A.weight"] = module.lora_A.detach()
            tensors[f"{PREFIX}{name}.lora_B.weight"] = module.lora_B.detach()
    return tensors


def load_lora(model: Any, directory: Path) -> None:
    """Give a model's adapters the weights of `directory`. Raises HaggleError where they differ."""
    stored = _stored(directory)
    own = lora_tensors(model)
    wrong = [
        name for name in own.keys() | stored.keys() if _shape(own, name) != _shape(stored, name)
    ]
    if wrong:
        name = min(wrong)
        there, here = _shape(stored, name), _shape(own, name)
        raise HaggleError(
            f"adapter does not fit: {name} is {there} there, {here} here",
            where=str(directory),
            hint="start_from takes the adapter/ of a run with the same base and lora settings",
        )
    for name, tensor in own.items():
        tensor.copy_(stored[name])


@torch.no_grad()
def merge_lora(model: Any, tensors: dict[str, torch.Tensor], scale: float) -> None:
    """Add an adapter (under PEFT's names) to the weights of its layers, in place."""
    for name in sorted(tensors):
        if not name.endswith(".lora_A.weight"):
            continue
        module = name.removeprefix(PREFIX).removesuffix(".lora_A.weight")
        weight = model.get_submodule(module).weight
        a = tensors[name].to(weight.device, torch.float32)
        b = tensors[f"{PREFIX}{module}.lora_B.weight"].to(weight.device, torch.float32)
        weight.copy_(weight.float() + scale * (b @ a))


def merge_directory(model: Any, directory: Path) -> None:
    """Add the adapter of a directory to a model's weights, in place."""
    settings = read_json(directory / "adapter_config.json")
    merge_lora(model, _stored(directory), settings["lora_alpha"] / settings["r"])


def _stored(directory: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    file = directory / "adapter_model.safetensors"
    if not file.is_file():
        raise HaggleError("no adapter to start from", where=str(directory), hint="check start_from")
    tensors: dict[str, torch.Tensor] = load_file(file)
    return tensors


def _shape(tensors: dict[str, torch.Tensor], name: str) -> list[int] | str:
    return list(tensors[name].shape) if name in tensors else "missing"
