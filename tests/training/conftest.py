"""A tiny random llama with a byte-level tokenizer, and dialogues to train it on."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")


def make_base(directory: Path, *, hidden: int = 64, layers: int = 2, seed: int = 0) -> Path:
    """Save a random llama and its tokenizer as a transformers directory."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from haggle.weights.chat_template import CHATML
    from training.architectures import tiny_tokenizer

    corpus = [json.dumps(row) for row in make_rows(20, seed=9)]
    tokenizer = tiny_tokenizer(CHATML, corpus, vocab_size=384)
    tokenizer.pad_token = tokenizer.eos_token
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
            if not tokenizer.decode([index]).isascii():
                model.model.embed_tokens.weight[index] = 0.0
    model.to(torch.bfloat16).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
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


@pytest.fixture(scope="session")
def run_settings(tiny_base: Path) -> Callable[..., dict[str, Any]]:
    """The settings of a short run in `folder`/run that saves and logs enough to look at."""

    def settings(dataset: Path, folder: Path, **trainer: Any) -> dict[str, Any]:
        fixed = {"learning_rate": 1e-2, "logging_steps": 1, "bf16": False, "disable_tqdm": True}
        return {
            "base": str(tiny_base),
            "dataset": dataset,
            "output_dir": folder / "run",
            "seed": 3,
            "max_length": 512,
            "trainer": fixed | trainer,
        }

    return settings


@pytest.fixture(scope="session")
def split_dataset(tiny_dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny data set with a test split of six of its dialogues."""
    folder = tmp_path_factory.mktemp("splits")
    text = (tiny_dataset / "train.jsonl").read_text(encoding="utf-8")
    (folder / "train.jsonl").write_text(text, encoding="utf-8")
    lines = text.splitlines(keepends=True)
    (folder / "test.jsonl").write_text("".join(lines[:6]), encoding="utf-8")
    return folder


@pytest.fixture
def evaluated(
    run_settings: Callable[..., dict[str, Any]], split_dataset: Path, tmp_path: Path
) -> dict[str, Any]:
    """The settings of a run of eight steps that is evaluated at each second."""
    steps = {"max_steps": 8, "per_device_train_batch_size": 3, "save_steps": 2}
    evaluation = {"turns": 5, "batch": 2, "max_new_tokens": 24}
    return run_settings(split_dataset, tmp_path, **steps) | {"evaluation": evaluation}


@pytest.fixture
def fail_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, int, BaseException], None]:
    """Let a kind of trainer raise an error in the step behind the given number of steps."""

    def patch(trainer: Any, finished: int, error: BaseException) -> None:
        original = trainer.training_step

        def training_step(self: Any, *args: Any, **kwargs: Any) -> Any:
            if self.state.global_step == finished:
                raise error
            return original(self, *args, **kwargs)

        monkeypatch.setattr(trainer, "training_step", training_step)

    return patch


class Killed(BaseException):
    """As a kill would, in the middle of a step."""


@pytest.fixture
def check_resumption(
    fail_at: Callable[[Any, int, BaseException], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Any, Any], None]:
    """Break a run off behind step 5 of a checkpoint each third, and hold it against a whole one."""
    import torch
    from safetensors.torch import load_file

    from haggle.core.storage import read_jsonl
    from training.checkpoints import last_checkpoint
    from training.run import train

    def losses(run: Path) -> list[float]:
        return [line["loss"] for line in read_jsonl(run / "metrics.jsonl")]

    def check(config: Any, trainer: Any) -> None:
        whole, run = tmp_path / "whole", config.output_dir
        result = train(config.model_copy(update={"output_dir": whole}), echo=lambda _: None)
        fail_at(trainer, 5, Killed())
        with pytest.raises(Killed):
            train(config, echo=lambda _: None)
        monkeypatch.undo()
        assert len(losses(run)) == 5
        assert last_checkpoint(run) == run / "checkpoint-3"
        assert train(config, echo=lambda _: None).steps == result.steps
        assert losses(run) == pytest.approx(losses(whole), abs=1e-6)
        one, two = (load_file(r / "adapter/adapter_model.safetensors") for r in (whole, run))
        assert one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)

    return check


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base of the small encoders."""
    from haggle.core.errors import HaggleError
    from training.encoder import unpacked_base

    try:
        return unpacked_base(tmp_path_factory.mktemp("encoder") / "base")
    except HaggleError as error:
        pytest.skip(str(error))
