"""The shapes of the base models that recipes name, and tiny ones of the same architecture.

With them a dry run needs no download, and memory and time can be estimated from the config alone.
The figures are those of the models' own config.json; a test holds the parameter counts against the
published ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.core.storage import read_json
from haggle.grammar.json_text import to_json
from haggle.weights.chat_template import CHATML, GEMMA, LLAMA3, Family, plain_template
from haggle.weights.models import KNOWN

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

_LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def _shape(
    kind: str, vocab: int, hidden: int, inner: int, layers: int, heads: int, kv: int, dim: int
) -> dict[str, Any]:
    return {
        "model_type": kind,
        "vocab_size": vocab,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": dim,
        "tie_word_embeddings": True,
    }


SHAPES: dict[str, dict[str, Any]] = {
    "smollm2-135m-instruct": _shape("llama", 49152, 576, 1536, 30, 9, 3, 64),
    "smollm2-360m-instruct": _shape("llama", 49152, 960, 2560, 32, 15, 5, 64),
    "smollm2-1.7b-instruct": _shape("llama", 49152, 2048, 8192, 24, 32, 32, 64),
    "qwen3-0.6b": _shape("qwen3", 151936, 1024, 3072, 28, 16, 8, 128),
    "qwen3-1.7b": _shape("qwen3", 151936, 2048, 6144, 28, 16, 8, 128),
    "gemma-3-270m-it": _shape("gemma3_text", 262144, 640, 2048, 18, 4, 1, 256),
    "gemma-3-1b-it": _shape("gemma3_text", 262144, 1152, 6912, 26, 4, 1, 256),
    "llama-3.2-1b-instruct": _shape("llama", 128256, 2048, 8192, 16, 32, 8, 64)
    | {"rope_parameters": _LLAMA3_ROPE, "max_position_embeddings": 131072},
    "llama-3.2-3b-instruct": _shape("llama", 128256, 3072, 8192, 28, 24, 8, 128)
    | {"rope_parameters": _LLAMA3_ROPE, "max_position_embeddings": 131072},
}
# A tiny model of the same architecture: enough layers that both kinds of Gemma's attention occur.
TINY = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "head_dim": 16,
    "sliding_window": 64,
    "max_position_embeddings": 16384,
}


def known_shape(base: str) -> dict[str, Any]:
    """The shape of a base by its short name or hub id. Raises HaggleError when unknown."""
    for name, known in KNOWN.items():
        if base.lower() in {name, known.hub_id.lower()} and name in SHAPES:
            return SHAPES[name]
    raise HaggleError(
        f"base model {base!r} is not on this machine and its shape is unknown",
        hint="give a directory, or one of: " + ", ".join(SHAPES),
    )


def config_from(shape: Mapping[str, Any]) -> PretrainedConfig:
    """The transformers config of a shape, or of a config.json read as a mapping."""
    from transformers import AutoConfig

    values = {key: value for key, value in shape.items() if value is not None}
    return AutoConfig.for_model(values.pop("model_type"), **values)


def tiny_shape(shape: Mapping[str, Any], vocab_size: int) -> dict[str, Any]:
    """A shape of the same architecture with a few thousand parameters a layer."""
    heads, groups = shape["num_attention_heads"], shape.get("num_key_value_heads")
    groups = groups or heads
    kept = ("model_type", "tie_word_embeddings", "rope_parameters", "rope_scaling", "hidden_act")
    tiny = {key: shape[key] for key in kept if key in shape} | TINY
    tiny["num_key_value_heads"] = max(1, 4 * groups // heads)
    return tiny | {"vocab_size": vocab_size, "query_pre_attn_scalar": 16}


def make_tiny_base(
    directory: Path,
    shape: Mapping[str, Any],
    tokenizer: PreTrainedTokenizerBase | None,
    texts: Iterable[str],
    seed: int = 0,
) -> Path:
    """Write a tiny random model of this architecture as a transformers directory.

    Without a `tokenizer` a small one is trained on `texts` that has its family's special tokens and
    chat template.
    """
    import torch
    from transformers import AutoModelForCausalLM

    tokenizer = tokenizer or tiny_tokenizer(family_for(shape), texts)
    config = config_from(tiny_shape(shape, len(tokenizer)))
    ends = tokenizer.eos_token_id
    config.bos_token_id, config.eos_token_id = tokenizer.bos_token_id, ends
    config.pad_token_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else ends
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config)
    model.to(torch.bfloat16).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def family_for(shape: Mapping[str, Any]) -> Family:
    """The markup that the instruction-tuned models of an architecture speak."""
    if str(shape["model_type"]).startswith("gemma"):
        return GEMMA
    return LLAMA3 if shape.get("rope_parameters") == _LLAMA3_ROPE else CHATML


def tiny_tokenizer(
    family: Family, texts: Iterable[str], vocab_size: int = 512
) -> PreTrainedTokenizerBase:
    """A byte-level tokenizer of at most `vocab_size` tokens with a family's markup and template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    raw.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", *family.tokens]
    raw.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token=family.bos or family.start,
        eos_token=family.end,
        pad_token="<|endoftext|>",
        unk_token="<|endoftext|>",
    )
    tokenizer.chat_template = plain_template(family)
    return tokenizer


def read_shape(directory: Path) -> dict[str, Any]:
    """The shape that a model directory's config.json tells."""
    told: dict[str, Any] = read_json(directory / "config.json")
    if "num_attention_heads" not in told:
        raise HaggleError(
            f"not the config of a language model: {to_json(sorted(told))[:80]}",
            where=str(directory / "config.json"),
        )
    return told
