"""A tiny random llama with a byte-level tokenizer, and dialogues to train it on."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + "
    "'<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def make_base(directory: Path, *, hidden: int = 64, layers: int = 2, seed: int = 0) -> Path:
    """Save a random llama and its tokenizer as a transformers directory."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    corpus = [json.dumps(row) for row in make_rows(20, seed=9)]
    tokenizer.train_from_iterator(
        corpus,
        trainers.BpeTrainer(
            vocab_size=384,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        unk_token="<|endoftext|>",
    )
    fast.chat_template = TEMPLATE
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=384,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
        # Wide enough that the logits are not all alike, so that a wrong layout shows.
        initializer_range=0.1,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for index in range(config.vocab_size):
            # Never the likeliest, so that greedy answers are text: engines hold back torn UTF-8.
            if not fast.decode([index]).isascii():
                model.model.embed_tokens.weight[index] = 0.0
    model.to(torch.bfloat16).save_pretrained(directory)
    fast.save_pretrained(directory)
    return directory


def make_rows(number: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Dataset rows with dialogues of one to four rounds about made-up goods."""
    rng = random.Random(seed)
    goods = ["Clay Jug", "Brass Bell", "Silk Scarf", "Iron Nail", "Straw Hat"]
    rows = []
    for index in range(number):
        stock = rng.sample(goods, 3)
        shop = "\n".join(f"{name} {rng.randint(1, 20) * 5}" for name in stock)
        messages = [{"role": "system", "content": f"For sale:\n{shop}"}]
        for _ in range(rng.randint(1, 4)):
            name, count = rng.choice(stock), rng.randint(1, 9)
            answer = {"last": "", "state": "OFFER_SELL", "cart": [[name, count]], "say": "Fine."}
            messages += [
                {"role": "user", "content": f"cart []\nplayer: {count} of {name}"},
                {"role": "assistant", "content": json.dumps(answer, separators=(",", ":"))},
            ]
        rows.append({"schema_version": 1, "id": f"row-{index}", "messages": messages})
    return rows


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def other_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same architecture, wider: an adapter for `tiny_base` does not fit."""
    return make_base(tmp_path_factory.mktemp("models") / "wider", hidden=96)


@pytest.fixture(scope="session")
def tiny_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_rows(folder / "train.jsonl", make_rows(24))
    return folder


@pytest.fixture(scope="session")
def tokenizer(tiny_base: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_base)


def spoken_cart(name: str, number: int) -> list[dict[str, str]]:
    record = {"last": "", "state": "OFFER_SELL", "cart": [[name, number]], "say": "Fine."}
    return [{"role": "assistant", "content": json.dumps(record, separators=(",", ":"))}]


def make_pair_rows(number: int = 12) -> list[dict[str, Any]]:
    """Pairs in which the right answer has the number asked for; prompts of one to three rounds."""
    rows = []
    for index in range(number):
        name = ("Clay Jug", "Brass Bell", "Silk Scarf")[index % 3]
        prompt = [{"role": "system", "content": "For sale:\nClay Jug 25\nBrass Bell 40"}]
        for earlier in range(index % 3):
            prompt += [
                {"role": "user", "content": f"cart []\nplayer: hello {earlier}"},
                {"role": "assistant", "content": '{"last":"","state":"CASUAL","say":"Hm."}'},
            ]
        asked = 1 + index % 5
        prompt.append({"role": "user", "content": f"cart []\nplayer: {asked} of {name}"})
        rows.append(
            {
                "schema_version": 1,
                "prompt": prompt,
                "chosen": spoken_cart(name, asked),
                "rejected": spoken_cart(name, asked + 3),
            }
        )
    return rows


@pytest.fixture(scope="session")
def pair_rows() -> list[dict[str, Any]]:
    """Twelve preference pairs."""
    return make_pair_rows()


@pytest.fixture(scope="session")
def pair_dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of them."""
    folder = tmp_path_factory.mktemp("pairs")
    write_rows(folder / "train.jsonl", make_pair_rows())
    return folder
