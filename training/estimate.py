"""What a recipe will need, from the model's shape alone: parameters, memory, time.

One pass forward and back over a dialogue runs on PyTorch's `meta` device, which knows shapes but
holds no numbers: the operations and the bytes kept for the way back are counted, not guessed.
Time is scaled from one measured run (SmolLM2-135M on two CPU cores) and, for a GPU, from an assumed
speed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from training.architectures import config_from
from training.config import LoraSettings, RunSettings

if TYPE_CHECKING:
    import torch

LENGTH = 1000  # tokens of the dialogue that is counted
SUPERVISED = 1 / 3  # of them answers, as in the data sets generated here
# Measured: SmolLM2-135M with LoRA r=16 on two shared cores with AVX-512 bf16, 230 tokens/s at a
# counted 0.61 GFLOP each; memory 1 GB and 2 GB more for each 1,000 tokens in a batch. In float32,
# on two cores without bf16: 3.6 GiB for a row of 1,000 tokens, 12.2 GiB for two of 1,700.
CPU_FLOPS = 0.14e12
PROCESS_GIB = 0.7
KEPT_TO_PEAK = {"bf16": 1.4, "float32": 1.6}
GPU_FLOPS = 40e12  # assumed: what plain PyTorch keeps up in bf16 on a card with 24 GB
NF4_BYTES = 0.53  # a weight in four bits, with its share of the scales
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of a recipe: sizes in parameters, memory in GiB, time a million training tokens takes.

    `fixed_gib` holds weights, gradients and optimiser; `batch_gib` comes on top for each 1,000
    tokens in a batch.
    """

    parameters: int
    trained: int
    fixed_gib: float
    batch_gib: float
    flop_per_token: float
    on_cpu: bool = True

    @property
    def cpu_hours(self) -> float:
        return self.flop_per_token * 1e6 / CPU_FLOPS / 3600

    @property
    def gpu_minutes(self) -> float:
        return self.flop_per_token * 1e6 / GPU_FLOPS / 60

    def describe(self) -> str:
        """One line for people."""
        cpu = f"{self.cpu_hours:.1f} h on two CPU cores, " if self.on_cpu else ""
        return (
            f"{self.parameters / 1e6:,.0f} M parameters, {self.trained / 1e6:,.1f} M trained; "
            f"{self.fixed_gib:.1f} GiB and {self.batch_gib:.1f} GiB for each 1,000 tokens in a "
            f"batch; a million tokens: {cpu}"
            f"{self.gpu_minutes:.1f} min on a GPU at {GPU_FLOPS / 1e12:.0f} TFLOP/s"
        )


def estimate(
    config: RunSettings, shape: Mapping[str, Any], *, length: int = LENGTH, bf16: bool = True
) -> Estimate:
    """Count a training step of `config` on a model of `shape`; a second or two, and no memory.

    `length` in tokens of a row, `bf16` whether the machine computes in it; else it is float32.
    Layers are alike, so two short passes tell what one costs.
    """
    layers = int(shape["num_hidden_layers"])
    lora = None if config.full_finetuning else config.lora
    one, two = (_count(json.dumps(_with_layers(shape, n)), lora, length, bf16) for n in (1, 2))
    layer = two - one
    size = 2.0 if bf16 else 4.0  # bytes of a number
    whole = one + layer * (layers - 1)
    parameters = whole.parameters
    if config.full_finetuning:
        fixed = 16.0 * whole.trained  # float32: weight, gradient, two moments
    else:
        parameters -= whole.trained
        fixed = size * parameters + 16.0 * whole.trained
        if config.quantization:  # linear layers alone
            linear = parameters - shape["vocab_size"] * shape["hidden_size"]
            fixed -= (size - NF4_BYTES) * linear
    kept, flop = whole.kept, whole.forward + whole.backward
    if config.trainer.get("gradient_checkpointing"):
        # Each layer's input stays; one layer at a time is run again for its way back.
        kept -= layer.kept * (layers - 1)
        kept += size * length * shape["hidden_size"] * layers
        flop += layer.forward * layers
    return Estimate(
        parameters=round(parameters),
        trained=round(whole.trained),
        fixed_gib=PROCESS_GIB + fixed / GIB,
        batch_gib=KEPT_TO_PEAK["bf16" if bf16 else "float32"] * kept / GIB * 1000 / length,
        flop_per_token=flop / length,
        on_cpu=config.quantization is None,
    )


@dataclass(frozen=True, slots=True)
class _Counts:
    """Of one step: parameters, bytes kept for the way back, operations there and back."""

    parameters: float
    trained: float
    kept: float
    forward: float
    backward: float

    def __add__(self, other: _Counts) -> _Counts:
        return _Counts(*(x + y for x, y in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: _Counts) -> _Counts:
        return self + other * -1

    def __mul__(self, factor: float) -> _Counts:
        return _Counts(*(x * factor for x in astuple(self)))


def _with_layers(shape: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The shape with fewer layers; lists with an entry for each layer are cut as well."""
    layers = shape["num_hidden_layers"]
    cut = {k: v[:number] for k, v in shape.items() if isinstance(v, list) and len(v) == layers}
    return {**shape, **cut, "num_hidden_layers": number}


@lru_cache(maxsize=64)
def _count(shape: str, lora: LoraSettings | None, length: int, bf16: bool) -> _Counts:
    """What one row costs on a model of `shape` (JSON), all of whose weights are trained without
    `lora`."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    model = _meta_model(json.loads(shape), lora, torch.bfloat16 if bf16 else torch.float32)
    parameters = {id(p): p for p in model.parameters()}.values()
    weights = {p.untyped_storage()._cdata for p in parameters}
    kept: dict[int, Any] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()  # held on to, so that no address is given out twice
        if storage._cdata not in weights:
            kept[storage._cdata] = storage
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with FlopCounterMode(display=False) as counter:
        with hooks:
            loss = _loss(model, length)
        forward = counter.get_total_flops()
        loss.backward()
    return _Counts(
        parameters=sum(p.numel() for p in parameters),
        trained=sum(p.numel() for p in parameters if p.requires_grad),
        kept=sum(storage.nbytes() for storage in kept.values()),
        forward=forward,
        backward=counter.get_total_flops() - forward,
    )


def _meta_model(shape: Mapping[str, Any], lora: LoraSettings | None, dtype: Any) -> Any:
    import torch
    from peft import get_peft_model
    from transformers import AutoModelForCausalLM

    from training import attention
    from training.loading import lora_config, naming_lora_layers

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(
            config_from(shape), dtype=dtype, attn_implementation=attention.register()
        )
        model.tie_weights()
        if lora is None:
            return model
        with naming_lora_layers():
            return get_peft_model(model, lora_config(lora), autocast_adapter_dtype=False)


def _loss(model: Any, length: int) -> torch.Tensor:
    """The loss of one dialogue of `length` tokens, with logits at its answers alone."""
    import torch

    from training.trainer import causal_model

    plain = causal_model(model)
    ids = torch.zeros((1, length), dtype=torch.long, device="meta")
    hidden = plain.base_model(input_ids=ids, use_cache=False).last_hidden_state[0]
    count = int(length * SUPERVISED)
    logits = plain.get_output_embeddings()(hidden[:count]).float()
    targets = torch.zeros(count, dtype=torch.long, device="meta")
    return torch.nn.functional.cross_entropy(logits, targets)
