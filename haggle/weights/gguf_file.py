"""GGUF, the files of llama.cpp: check and unpack them, write llama-like models and LoRA adapters.

What is written takes its metadata from the base model's own GGUF where there is one, else from its
transformers files. Everything heavy is imported inside functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_dir, atomic_path, write_json

if TYPE_CHECKING:
    import numpy as np

SOURCE_FILE = "haggle_source.json"  # in an unpacked model: where it came from
BLOCK = 32
QUANTIZATIONS = ("F16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0")
# Layers of which a small model bears no coarse rounding, by measurement on a SmolLM2-135M with LoRA
# (answers' tokens, KL to the merged model): Q4_0 throughout 0.13 nats, with these in Q8_0 0.03.
FINE = ("token_embd", "output.", "attn_", "ffn_down")
# llama.cpp's general.file_type of a file that is mostly of this type.
_FILE_TYPES = {"F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9}
_SKIPPED_KEYS = {"general.architecture", "general.file_type", "general.quantization_version"}


@dataclass(frozen=True, slots=True)
class Field:
    """One metadata entry: value, GGUF type, and the type of an array's elements."""

    value: Any
    type: Any
    element: Any = None


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """What of a model's config decides how its tensors are laid out."""

    layers: int
    heads: int
    kv_heads: int
    tied: bool


def check_gguf(path: Path) -> None:
    """Raise HaggleError unless a GGUF file can be read to its last tensor."""
    open_gguf(path)


def open_gguf(path: Path) -> Any:
    """gguf's reader of a whole file (a few seconds). Raises HaggleError where it is cut off."""
    if not path.is_file():
        raise HaggleError("no such file", where=str(path), hint="check the path")
    from gguf import GGUFReader

    hint = "the file is cut off or not GGUF: fetch or export it again"
    try:
        reader = GGUFReader(str(path))
        whole = len(reader.tensors) > 0
        needed = max((t.data_offset + t.n_bytes for t in reader.tensors), default=0)
    except Exception as error:  # the reader raises whatever numpy stumbles over
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise HaggleError(f"not a readable GGUF ({detail})", where=str(path), hint=hint) from None
    if not whole or needed > path.stat().st_size:
        raise HaggleError("GGUF has too few tensors or bytes", where=str(path), hint=hint)
    return reader


def convert_gguf(gguf: Path, target: Path, *, name: str, licence: str) -> None:
    """Unpack a GGUF into a plain transformers directory: bf16 safetensors and tokenizer.

    Raises HaggleError when the GGUF is cut off or of an architecture transformers cannot read.
    """
    check_gguf(gguf)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32
        )
    except (ValueError, KeyError, RuntimeError, OSError) as error:
        raise HaggleError(
            f"transformers cannot convert it: {error}",
            where=str(gguf),
            hint="use a llama-like model, or a safetensors directory",
        ) from error
    # Otherwise save_pretrained would try to write a quantised model.
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.config._name_or_path = name
    if hasattr(model.config, "_model_name_or_path"):
        del model.config._model_name_or_path
    _split_digits(gguf, tokenizer)
    model = model.to(torch.bfloat16)
    model.config.dtype = torch.bfloat16
    with atomic_dir(target, once=True) as directory:
        model.save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        source = {"name": name, "licence": licence, "gguf": str(gguf)}
        write_json(directory / SOURCE_FILE, source)


def _split_digits(gguf: Path, tokenizer: Any) -> None:
    """Split numbers into digits as SmolLM does: transformers' GGUF reader forgets this step."""
    from gguf import GGUFReader

    field = GGUFReader(str(gguf)).fields.get("tokenizer.ggml.pre")
    if field is None or field.contents() != "smollm":
        return
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    steps = [Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(steps)


def check_quantizations(names: Iterable[str]) -> None:
    """Raise HaggleError for a name that no GGUF is written in here."""
    for name in names:
        if name not in QUANTIZATIONS:
            hint = "use one of: " + ", ".join(QUANTIZATIONS)
            raise HaggleError(f"unknown quantisation {name!r}", hint=hint)


def llama_shape(config: Mapping[str, Any], where: str) -> LlamaShape:
    """Read the shape from a transformers config. Raises HaggleError for other architectures."""
    kind = config.get("model_type")
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    rope_type = rope.get("rope_type", "default")
    if kind != "llama" or rope_type != "default":
        raise HaggleError(
            f"no GGUF export for architecture {kind!r} with {rope_type!r} rope",
            where=where,
            hint="export with `--quantizations none`, convert merged/ with llama.cpp's own script",
        )
    heads = int(config["num_attention_heads"])
    return LlamaShape(
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        tied=bool(config.get("tie_word_embeddings")),
    )


def metadata_from_gguf(gguf: Path | Any) -> dict[str, Field]:
    """All metadata of a GGUF file (or its open reader) that describe the model rather than its
    quantisation."""
    from gguf import GGUFReader, GGUFValueType

    fields = {}
    reader = GGUFReader(str(gguf)) if isinstance(gguf, Path) else gguf
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in _SKIPPED_KEYS:
            continue
        is_array = field.types[0] == GGUFValueType.ARRAY
        element = field.types[-1] if is_array else None
        fields[name] = Field(field.contents(), field.types[0], element)
    return fields


def metadata_from_directory(directory: Path) -> dict[str, Field]:
    """The same metadata from a transformers directory with a byte-level BPE tokenizer."""
    from gguf import GGUFValueType as T

    config = _json(directory / "config.json")
    tokenizer = _json(directory / "tokenizer.json")
    settings = _json(directory / "tokenizer_config.json")
    heads, width = config["num_attention_heads"], config["hidden_size"]
    rope = config.get("rope_parameters") or {}
    numbers = {
        "llama.block_count": config["num_hidden_layers"],
        "llama.context_length": config["max_position_embeddings"],
        "llama.embedding_length": width,
        "llama.feed_forward_length": config["intermediate_size"],
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": config.get("num_key_value_heads") or heads,
        "llama.vocab_size": config["vocab_size"],
        "llama.rope.dimension_count": config.get("head_dim") or width // heads,
    }
    fields = {name: Field(int(value), T.UINT32) for name, value in numbers.items()}
    base = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    fields["llama.rope.freq_base"] = Field(float(base), T.FLOAT32)
    fields["llama.attention.layer_norm_rms_epsilon"] = Field(
        float(config["rms_norm_eps"]), T.FLOAT32
    )
    fields["general.type"] = Field("model", T.STRING)
    template = directory / "chat_template.jinja"
    if template.is_file():
        text = template.read_text(encoding="utf-8")
        fields["tokenizer.chat_template"] = Field(text, T.STRING)
    fields |= _vocabulary(tokenizer, config["vocab_size"], str(directory))
    by_text = {token: index for index, token in enumerate(fields["tokenizer.ggml.tokens"].value)}
    for key, name in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        token = settings.get(f"{key}_token")
        token = token.get("content") if isinstance(token, dict) else token
        if token in by_text:
            fields[f"tokenizer.ggml.{name}_token_id"] = Field(by_text[token], T.UINT32)
    return fields


def _vocabulary(tokenizer: dict[str, Any], size: int, where: str) -> dict[str, Field]:
    from gguf import GGUFValueType as T
    from gguf import TokenType

    model = tokenizer["model"]
    steps = tokenizer.get("pre_tokenizer") or {}
    kinds = tuple(step["type"] for step in steps.get("pretokenizers", [steps]) if step)
    pre = {("Digits", "ByteLevel"): "smollm", ("ByteLevel",): "gpt-2"}.get(kinds)
    if model["type"] != "BPE" or pre is None:
        raise HaggleError(
            f"no GGUF export for a {model['type']} tokenizer with steps {', '.join(kinds)}",
            where=where,
            hint="put the base model's own GGUF beside it, to take its metadata from",
        )
    tokens = [f"[PAD{index}]" for index in range(size)]
    types = [int(TokenType.UNUSED)] * size
    for text, index in model["vocab"].items():
        tokens[index], types[index] = text, int(TokenType.NORMAL)
    for added in tokenizer.get("added_tokens", ()):
        kind = TokenType.CONTROL if added["special"] else TokenType.USER_DEFINED
        tokens[added["id"]], types[added["id"]] = added["content"], int(kind)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    return {
        "tokenizer.ggml.model": Field("gpt2", T.STRING),
        "tokenizer.ggml.pre": Field(pre, T.STRING),
        "tokenizer.ggml.add_space_prefix": Field(False, T.BOOL),
        "tokenizer.ggml.add_bos_token": Field(False, T.BOOL),
        "tokenizer.ggml.tokens": Field(tokens, T.ARRAY, T.STRING),
        "tokenizer.ggml.token_type": Field(types, T.ARRAY, T.INT32),
        "tokenizer.ggml.merges": Field(merges, T.ARRAY, T.STRING),
    }


def write_gguf(
    path: Path,
    tensors: Mapping[str, np.ndarray],
    shape: LlamaShape,
    metadata: Mapping[str, Field],
    quantization: str,
) -> None:
    """Write a whole model; `tensors` are float32 under their transformers names.

    Raises HaggleError for an unknown quantisation.
    """
    write_tensors(path, model_tensors(tensors, shape, str(path)), metadata, quantization)


def write_tensors(
    path: Path,
    tensors: Iterable[tuple[str, np.ndarray]],
    metadata: Mapping[str, Field],
    quantization: str,
) -> None:
    """As `write_gguf`, of tensors with the names and the order of rows that llama.cpp has.

    Matrices take the quantisation, norms stay float32. With a 4- or 5-bit type the layers of `FINE`
    take Q8_0.
    """
    import gguf

    check_quantizations([quantization])
    wanted = gguf.GGMLQuantizationType[quantization]
    with atomic_path(path) as temporary:
        writer = gguf.GGUFWriter(str(temporary), "llama")
        _add_fields(writer, metadata)
        writer.add_file_type(_FILE_TYPES[quantization])
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        for name, array in tensors:
            kind = wanted
            if quantization not in ("F16", "Q8_0") and any(part in name for part in FINE):
                kind = gguf.GGMLQuantizationType.Q8_0
            if array.ndim == 1:
                kind = gguf.GGMLQuantizationType.F32
            elif array.shape[-1] % BLOCK:
                kind = gguf.GGMLQuantizationType.F16
            writer.add_tensor(name, gguf.quants.quantize(array, kind), raw_dtype=kind)
        _finish(writer)


def write_lora_gguf(
    path: Path, tensors: Mapping[str, np.ndarray], shape: LlamaShape, alpha: float
) -> None:
    """Write a LoRA adapter (PEFT names, float32) as a GGUF that llama.cpp applies to its base."""
    import gguf
    import numpy as np

    with atomic_path(path) as temporary:
        writer = gguf.GGUFWriter(str(temporary), "llama")
        writer.add_string("general.type", "adapter")
        writer.add_string("adapter.type", "lora")
        writer.add_float32("adapter.lora.alpha", alpha)
        for target, side, array in lora_tensors(tensors, shape, str(path)):
            writer.add_tensor(f"{target}.{side}", np.ascontiguousarray(array, dtype=np.float16))
        _finish(writer)


def lora_tensors(
    tensors: Mapping[str, np.ndarray], shape: LlamaShape, where: str
) -> Iterator[tuple[str, str, np.ndarray]]:
    """A LoRA's tensors as llama.cpp has them: the base's tensor, `lora_a` or `lora_b`, the values.

    Raises HaggleError for a tensor that is neither or has no place in the base.
    """
    for name, array in sorted(tensors.items()):
        plain = name.removeprefix("base_model.model.").removesuffix(".weight")
        module, _, kind = plain.rpartition(".")
        if kind not in ("lora_A", "lora_B"):
            raise HaggleError(f"tensor {name!r} is not one of a plain LoRA", where=where)
        if kind == "lora_B":
            array = _permuted(f"{module}.weight", array, shape)
        yield _gguf_name(f"{module}.weight", shape, where), kind.lower(), array


def _add_fields(writer: Any, metadata: Mapping[str, Field]) -> None:
    for name, field in metadata.items():
        writer.add_key_value(name, field.value, field.type, sub_type=field.element)


def _finish(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def model_tensors(
    tensors: Mapping[str, np.ndarray], shape: LlamaShape, where: str
) -> Iterator[tuple[str, np.ndarray]]:
    """A model's tensors (transformers' names) with llama.cpp's names and order of rows."""
    for name, array in tensors.items():
        if name == "lm_head.weight" and shape.tied:
            continue
        yield _gguf_name(name, shape, where), _permuted(name, array, shape)


def unpack_weights(gguf_path: Path, target: Path, names: Iterable[str]) -> None:
    """Write the tensors of these transformers names from a llama GGUF as bf16 safetensors, as
    `convert_gguf` does, which needs more than PyTorch and transformers. `target` is a file in a
    directory that holds the model's config.json."""
    import gguf
    import torch
    from safetensors.torch import save_file

    shape = llama_shape(_json(target.parent / "config.json"), str(gguf_path))
    reader = gguf.GGUFReader(str(gguf_path))
    stored = {tensor.name: tensor for tensor in reader.tensors}
    weights = {}
    for name in names:
        tensor = stored[_gguf_name(name, shape, str(gguf_path))]
        array = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        array = _permuted(name, array, shape, back=True)
        weights[name] = torch.from_numpy(array.copy()).to(torch.bfloat16)
    with atomic_path(target) as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})


@cache
def _tensor_names(layers: int) -> Any:
    import gguf

    return gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, layers)


def _gguf_name(name: str, shape: LlamaShape, where: str) -> str:
    found = _tensor_names(shape.layers).get_name(name, try_suffixes=(".weight", ".bias"))
    if found is None:
        raise HaggleError(f"tensor {name!r} has no place in a llama GGUF", where=where)
    return str(found)


def _permuted(name: str, array: np.ndarray, shape: LlamaShape, back: bool = False) -> np.ndarray:
    """Reorder rows of q and k: llama.cpp rotates neighbouring pairs, transformers the halves.

    `back` turns llama.cpp's order into that of transformers.
    """
    if ".q_proj." in name:
        heads = shape.heads
    elif ".k_proj." in name:
        heads = shape.kv_heads
    else:
        return array
    half = array.shape[0] // heads // 2
    halves = array.reshape(heads, *((half, 2) if back else (2, half)), *array.shape[1:])
    return halves.swapaxes(1, 2).reshape(array.shape)


def _json(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data
