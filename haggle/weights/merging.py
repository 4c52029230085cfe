"""Put a LoRA adapter into its base and write the two as one GGUF file, with numpy alone.

A game that plays the shipped model needs this and no more: no torch, no transformers. What it
writes is what `haggle export` writes, to the rounding of a sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.core.storage import read_json
from haggle.weights.adapters import METHOD_KEY, taught_method
from haggle.weights.gguf_file import (
    Field,
    LlamaShape,
    llama_shape,
    lora_tensors,
    metadata_from_directory,
    metadata_from_gguf,
    model_tensors,
    open_gguf,
    write_lora_gguf,
    write_tensors,
)
from haggle.weights.models import BaseModel, check_safetensors

if TYPE_CHECKING:
    import numpy as np

    Pairs = dict[str, dict[str, np.ndarray]]
    Tensors = Iterator[tuple[str, np.ndarray]]

_NOT_PLAIN = ("alpha_pattern", "modules_to_save", "rank_pattern", "use_dora", "use_rslora")


def write_merged(adapter: Path, base: BaseModel, path: Path, quantization: str) -> None:
    """Write the base with a plain LoRA adapter in its weights.

    The base's own GGUF is read where there is one, else its safetensors. Raises HaggleError where a
    file is cut off, or the adapter belongs to another base.
    """
    weights = adapter / "adapter_model.safetensors"
    tensors, shape, metadata = _base(base)
    pairs, scale = _pairs(adapter, shape)
    method = taught_method(adapter)
    metadata = tuned_metadata(metadata, f"{base.name}-haggle", base.licence, method)
    write_tensors(path, _merged(tensors, pairs, scale, str(weights)), metadata, quantization)


def write_base(base: BaseModel, path: Path, quantization: str) -> None:
    """Write the base alone, with the values that merged models have it in."""
    tensors, _, metadata = _base(base)
    write_tensors(path, tensors, metadata, quantization)


def write_lora(adapter: Path, base: BaseModel, path: Path) -> None:
    """Write a plain LoRA adapter as a GGUF that llama.cpp puts on its base while it runs.

    Raises HaggleError where a file is cut off, or the adapter belongs to another base.
    """
    weights = adapter / "adapter_model.safetensors"
    tensors, shape, _ = _base(base)
    pairs, scale = _pairs(adapter, shape)
    rank = min(len(pair["lora_a"]) for pair in pairs.values())
    for _ in _merged(tensors, pairs, scale, str(weights)):
        pass  # what does not fit is told here
    write_lora_gguf(path, dict(_from_safetensors(weights)), shape, scale * rank)


def _pairs(adapter: Path, shape: LlamaShape) -> tuple[Pairs, float]:
    """An adapter's pairs by the tensor that they belong to, and what their product is scaled by."""
    weights = adapter / "adapter_model.safetensors"
    scale = _scale(adapter / "adapter_config.json")
    check_safetensors(weights)
    pairs: Pairs = {}
    for target, side, array in lora_tensors(dict(_from_safetensors(weights)), shape, str(weights)):
        pairs.setdefault(target, {})[side] = array
    return pairs, scale


def _base(base: BaseModel) -> tuple[Tensors, LlamaShape, dict[str, Field]]:
    """A base's tensors, with llama.cpp's names and order of rows, and what describes it."""
    if base.gguf_path is not None:
        reader = open_gguf(base.gguf_path)
        metadata = metadata_from_gguf(reader)
        return _from_gguf(reader), _gguf_shape(metadata, str(base.gguf_path)), metadata
    config = base.path / "config.json"
    shape = llama_shape(read_json(config), str(config))
    files = sorted(base.path.glob("*.safetensors"))
    loaded = dict(pair for file in files for pair in _from_safetensors(file))
    tensors = model_tensors(loaded, shape, str(base.path))
    return tensors, shape, metadata_from_directory(base.path)


def _gguf_shape(metadata: Mapping[str, Field], where: str) -> LlamaShape:
    """Read the shape from a GGUF's metadata. Raises HaggleError for other architectures."""
    attention = "llama.attention.head_count"
    try:
        return LlamaShape(
            layers=int(metadata["llama.block_count"].value),
            heads=int(metadata[attention].value),
            kv_heads=int(metadata[f"{attention}_kv"].value),
            tied=True,
        )
    except KeyError as error:
        raise HaggleError(f"GGUF of no llama: {error} is missing", where=where) from None


def tuned_metadata(
    base: Mapping[str, Field], name: str, licence: str, method: str | None = None
) -> dict[str, Field]:
    """Metadata of a fine-tuned model: those of its base, under its own name, with the prompting
    method that it was taught."""
    from gguf import GGUFValueType as T

    own = {"general.name": Field(name, T.STRING)}
    if licence != "unknown":
        own["general.license"] = Field(licence.lower(), T.STRING)
    if method is not None:
        own[METHOD_KEY] = Field(method, T.STRING)
    return {**base, **own}


def _scale(file: Path) -> float:
    settings = read_json(file)
    if odd := [name for name in _NOT_PLAIN if settings.get(name)]:
        raise HaggleError(
            f"{odd[0]}: not a plain LoRA", where=str(file), hint="use `haggle export` instead"
        )
    return float(settings["lora_alpha"]) / float(settings["r"])


def _merged(tensors: Tensors, pairs: Pairs, scale: float, where: str) -> Tensors:
    """The tensors with scale * B A added to those that have a pair."""
    hint = "use the base that the adapter was trained on"
    for name, array in tensors:
        pair = pairs.pop(name, None)
        if pair is None:
            yield name, array
            continue
        delta = pair["lora_b"] @ pair["lora_a"] * scale
        if delta.shape != array.shape:
            raise HaggleError(
                f"{name}: shape {delta.shape}, the base's is {array.shape}", where=where, hint=hint
            )
        yield name, array + delta
    if pairs:
        raise HaggleError(f"the base has no {min(pairs)}", where=where, hint=hint)


def _from_gguf(reader: Any) -> Tensors:
    """The tensors as float32, rounded to the bf16 that training unpacks them to."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize, quantize

    bf16 = GGMLQuantizationType.BF16
    for tensor in reader.tensors:
        exact = dequantize(tensor.data, tensor.tensor_type)
        yield str(tensor.name), dequantize(quantize(exact, bf16), bf16)


def _from_safetensors(path: Path) -> Tensors:
    """The tensors as float32; numpy alone knows no bf16."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize
    from gguf.utility import SafetensorsLocal

    for name, tensor in SafetensorsLocal(path).tensors.items():
        kind = GGMLQuantizationType[tensor.dtype]  # F32, F16, BF16: called the same in both
        yield name, dequantize(tensor.mmap_bytes(), kind).reshape(tensor.shape)
