"""Causal attention in blocks of queries, for training on a CPU.

PyTorch's fused attention is built for memory; its backward pass takes a third of a training step
here. Plain matrix products over the keys that a block may see are about twice as fast, at the price
of keeping the probabilities (heads x length^2 / 2 in bf16 a layer).
"""

from __future__ import annotations

from typing import Any

import torch

NAME = "haggle_blocked"
BLOCK = 128
# Beyond this many tokens the probabilities kept for the backward pass cost too much memory.
LONGEST = 2048
ARCHITECTURES = frozenset({"llama", "mistral", "qwen2", "qwen3"})


def blocked_attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention as transformers calls it: query (batch, heads, length, width), key and value with
    as many heads or a divisor of it; returns (batch, length, heads, width).

    A boolean mask (batch, 1, length, length) tells which keys a query may see, none of them later
    than itself; without one it sees all until itself. Hands over to PyTorch's own where it is asked
    for anything but that.
    """
    length = query.shape[2]
    visible = attention_mask
    if visible is not None and (visible.dtype != torch.bool or visible.shape[-2] != length):
        visible = None
    known = attention_mask is None or visible is not None
    plain = known and dropout == 0.0 and not kwargs.get("sliding_window")
    if not plain or length > LONGEST or key.shape[2] != length:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(
            module,
            query,
            key,
            value,
            attention_mask,
            dropout=dropout,
            scaling=scaling,
            **kwargs,
        )
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    query = query * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    keys = key.transpose(2, 3)
    future = torch.full((BLOCK, BLOCK), -torch.inf, dtype=query.dtype, device=query.device).triu(1)
    outputs = []
    for first in range(0, length, BLOCK):
        last = min(length, first + BLOCK)
        size = last - first
        scores = torch.matmul(query[:, :, first:last], keys[..., :last])
        if visible is None:
            scores[..., first:] += future[:size, :size]
        else:
            scores = scores.masked_fill(~visible[:, :, first:last, :last], -torch.inf)
        outputs.append(torch.matmul(torch.softmax(scores, -1), value[:, :, :last]))
    return torch.cat(outputs, 2).transpose(1, 2).contiguous(), None


def register() -> str:
    """Make the attention known to transformers; returns the name to load a model with."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, blocked_attention)
    return NAME
