"""What training changed in a model's linear layers, as an adapter of a given rank.

The difference of each weight is cut off behind its largest singular values (Eckart and Young: no
adapter of this rank comes nearer). Embeddings and norms have no place in such an adapter: a run
that freezes them loses nothing but what the rank cuts off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from haggle.core.errors import HaggleError
from training.lora import PREFIX


@dataclass(frozen=True, slots=True)
class LowRank:
    """An adapter's tensors under PEFT's names (scale 1: alpha is the rank), the rank, and how far
    the adapter as stored is from the difference, as a share of it: in all, and in the worst layer.
    """

    tensors: dict[str, torch.Tensor]
    rank: int
    error: float
    worst: float
    worst_layer: str

    @property
    def parameters(self) -> int:
        """Numbers in the adapter."""
        return sum(tensor.numel() for tensor in self.tensors.values())

    def report(self) -> dict[str, float | int | str]:
        """What a run's result says of it."""
        size = sum(tensor.numel() * tensor.element_size() for tensor in self.tensors.values())
        return {
            "rank": self.rank,
            "parameters": self.parameters,
            "bytes": size,
            "error": round(self.error, 6),
            "worst_error": round(self.worst, 6),
            "worst_layer": self.worst_layer,
        }


@torch.no_grad()
def low_rank(
    before: Mapping[str, torch.Tensor],
    after: Mapping[str, torch.Tensor],
    rank: int,
    dtype: torch.dtype = torch.bfloat16,
) -> LowRank:
    """The adapter that comes nearest to turning the weights `before` into `after`, by name.

    `after` holds the linear layers that were trained, under `<layer>.weight`. Raises HaggleError
    for a weight that is missing before, has another shape there, or is none of a linear layer.
    """
    tensors: dict[str, torch.Tensor] = {}
    missed, whole, worst, worst_layer = 0.0, 0.0, 0.0, ""
    for name, weight in after.items():
        layer = name.removesuffix(".weight")
        delta = _difference(name, before.get(name), weight)
        a, b = (part.to(dtype) for part in _factors(delta, rank))
        tensors[f"{PREFIX}{layer}.lora_A.weight"], tensors[f"{PREFIX}{layer}.lora_B.weight"] = a, b
        size = float(delta.square().sum())
        error = float((delta - b.float() @ a.float()).square().sum())
        missed, whole = missed + error, whole + size
        if size and (error / size) ** 0.5 > worst:
            worst, worst_layer = (error / size) ** 0.5, layer
    return LowRank(tensors, rank, (missed / whole) ** 0.5 if whole else 0.0, worst, worst_layer)


def _difference(name: str, before: torch.Tensor | None, after: torch.Tensor) -> torch.Tensor:
    """What training added to a weight, in float32."""
    if after.dim() != 2 or not name.endswith(".weight") or "embed" in name:
        raise HaggleError(
            f"{name} is no linear layer, and an adapter cannot hold it",
            hint="train with freeze_embeddings: true, or ship the whole model",
        )
    if before is None or before.shape != after.shape:
        was = "missing" if before is None else list(before.shape)
        raise HaggleError(
            f"{name} is {was} in the base and {list(after.shape)} in the trained model",
            hint="compare a model with the base that it was trained from",
        )
    return after.float() - before.to(after.device).float()


def _factors(delta: torch.Tensor, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A (rank x in) and B (out x rank), whose product B A is nearest to `delta`.

    Where the matrix has fewer singular values than the rank, the rest is zero.
    """
    u, s, v = torch.linalg.svd(delta, full_matrices=False)
    kept = min(rank, len(s))
    root = s[:kept].sqrt()
    a = torch.zeros(rank, delta.shape[1], device=delta.device)
    b = torch.zeros(delta.shape[0], rank, device=delta.device)
    a[:kept] = root[:, None] * v[:kept]
    b[:, :kept] = u[:, :kept] * root
    return a, b
