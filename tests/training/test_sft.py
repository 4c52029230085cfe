"""The trainer on a tiny model: its loss, its resumption, its refusals."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl
from haggle.weights.models import resolve_base
from training import sft
from training.checkpoints import last_checkpoint
from training.config import LoraSettings, TrainConfig
from training.data import Collator, read_dialogues, to_columns, tokenize
from training.loading import load_tokenizer
from training.run import train
from training.sft import build_trainer
from training.trainer import Clock, DialogueTrainer, supervised_log_probs

STEPS = 8


def quiet(_: str) -> None:
    """Nothing to say."""


@pytest.fixture
def config(run_settings: Any, tiny_dataset: Path, tmp_path: Path) -> TrainConfig:
    settings = run_settings(
        tiny_dataset, tmp_path, max_steps=STEPS, per_device_train_batch_size=3,
        gradient_accumulation_steps=2, warmup_steps=2, save_steps=3,
    )  # fmt: skip
    return TrainConfig(**settings, spoken_weight=0.5)


def with_trainer(config: TrainConfig, **changes: Any) -> TrainConfig:
    return config.model_copy(update={"trainer": config.trainer | changes})


def losses(run: Path) -> list[float]:
    return [line["loss"] for line in read_jsonl(run / "metrics.jsonl")]


def a_batch(config: TrainConfig, tokenizer: Any, weight: float = 1.0) -> dict[str, torch.Tensor]:
    data = tokenize(
        read_dialogues(config.dataset)[:3], tokenizer, max_length=512, spoken_weight=weight
    )
    columns = to_columns(data.rows)
    rows = [{key: values[i] for key, values in columns.items()} for i in range(3)]
    return Collator(tokenizer.pad_token_id)(rows)


def test_loss_at_supervised_positions_is_the_loss_of_the_full_logits(
    tiny_base: Path, config: TrainConfig, tokenizer: Any
) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.float32)
    batch = a_batch(config, tokenizer)
    log_probs, mask = supervised_log_probs(model, batch["input_ids"], batch["labels"])
    # Here with a padding mask, which the short way goes without.
    widths = (batch["labels"] != -100).int().cumsum(1).argmax(1) + 1
    seen = torch.arange(batch["input_ids"].shape[1])[None] < widths[:, None]
    full = model(input_ids=batch["input_ids"], attention_mask=seen.long(), labels=batch["labels"])
    assert int(mask.sum()) == int((batch["labels"] != -100).sum())
    torch.testing.assert_close(-log_probs.mean(), full.loss, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [1, 127, 128, 300])
def test_blocked_attention_is_causal_attention(length: int) -> None:
    from training.attention import blocked_attention

    torch.manual_seed(0)
    query = torch.randn(2, 6, length, 16, requires_grad=True)
    key, value = (torch.randn(2, 3, length, 16, requires_grad=True) for _ in range(2))
    inputs = (query, key, value)
    got, _ = blocked_attention(None, query, key, value)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *inputs, is_causal=True, enable_gqa=True
    ).transpose(1, 2)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    seed = torch.randn_like(got)
    ours = torch.autograd.grad(got, inputs, seed)
    theirs = torch.autograd.grad(expected, inputs, seed)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


def test_the_trainer_runs_the_blocked_attention_on_a_cpu(config: TrainConfig) -> None:
    base = resolve_base(config.base, echo=quiet)
    tokenizer = load_tokenizer(base)
    data = tokenize(read_dialogues(config.dataset), tokenizer, max_length=512)
    trainer = build_trainer(config, base, tokenizer, data, Clock())
    assert trainer.model.config._attn_implementation == "haggle_blocked"


def test_gradients_are_those_of_the_full_logits(
    tiny_base: Path, config: TrainConfig, tokenizer: Any
) -> None:
    from transformers import AutoModelForCausalLM

    batch = a_batch(config, tokenizer)
    gradients = []
    for short in (True, False):
        model = AutoModelForCausalLM.from_pretrained(tiny_base, dtype=torch.float32)
        if short:
            loss = -supervised_log_probs(model, batch["input_ids"], batch["labels"])[0].mean()
        else:
            loss = model(input_ids=batch["input_ids"], labels=batch["labels"]).loss
        loss.backward()
        gradients.append(model.model.layers[0].self_attn.q_proj.weight.grad)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-7)


def test_the_trainers_loss_weighs_tokens_as_the_data_say(
    config: TrainConfig, tokenizer: Any
) -> None:
    base = resolve_base(config.base, echo=quiet)
    data = tokenize(read_dialogues(config.dataset), tokenizer, max_length=512, spoken_weight=0.25)
    trainer = build_trainer(config, base, load_tokenizer(base), data, Clock())
    batch = a_batch(config, tokenizer, weight=0.25)
    model = trainer.model.get_base_model()
    log_probs, mask = supervised_log_probs(model, batch["input_ids"], batch["labels"])
    weights = batch["loss_weights"][:, 1:][mask]
    assert set(weights.tolist()) == {0.25, 1.0}
    expected = -(log_probs * weights).sum() / weights.sum()
    torch.testing.assert_close(trainer.compute_loss(trainer.model, dict(batch)), expected)
    half = trainer._get_num_items_in_batch([batch, batch], torch.device("cpu"))
    torch.testing.assert_close(half, 2 * weights.sum())


def test_training_learns_and_leaves_a_whole_run_behind(config: TrainConfig) -> None:
    result = train(config, echo=quiet)
    run = config.output_dir
    history = read_jsonl(run / "metrics.jsonl")
    assert [line["step"] for line in history] == list(range(1, STEPS + 1))
    assert history[-1]["loss"] < history[0]["loss"] - 0.5
    assert history[-1]["tokens"] == result.tokens > 0
    assert all(line["tokens_per_s"] > 0 for line in history)
    assert result.stopped == "finished" and result.steps == STEPS
    saved = load_file(result.weights / "adapter_model.safetensors")
    assert {tensor.dtype for tensor in saved.values()} == {torch.bfloat16}
    assert not any("lm_head" in name or "embed" in name for name in saved)
    settings = json.loads((result.weights / "adapter_config.json").read_text(encoding="utf-8"))
    assert settings["base_model_name_or_path"] == Path(config.base).name  # no path of this machine
    stored = yaml.safe_load((run / "config.resolved.yaml").read_text(encoding="utf-8"))
    assert stored["lora"]["r"] == 16 and stored["resolved"]["dialogues"] == 24


def test_a_killed_run_resumes_with_the_losses_of_an_uninterrupted_one(
    config: TrainConfig, check_resumption: Any
) -> None:
    check_resumption(config, DialogueTrainer)


def test_a_checkpoint_cut_off_while_being_written_is_passed_over(config: TrainConfig) -> None:
    train(config, echo=quiet)
    newest = last_checkpoint(config.output_dir)
    assert newest is not None
    weights = newest / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert last_checkpoint(config.output_dir) != newest


def test_a_finished_run_is_returned_and_not_trained_again(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = train(config, echo=quiet)
    monkeypatch.setattr(sft, "build_trainer", lambda *_: pytest.fail("trained again"))
    assert train(config, echo=quiet) == first


def test_a_fresh_start_forgets_the_old_run(config: TrainConfig) -> None:
    train(config, echo=quiet)
    before = losses(config.output_dir)
    train(config, resume=False, echo=quiet)
    assert losses(config.output_dir) == pytest.approx(before, abs=1e-6)


def test_another_config_in_the_same_directory_is_refused(config: TrainConfig) -> None:
    train(with_trainer(config, max_steps=1), echo=quiet)
    with pytest.raises(HaggleError, match="other settings: seed, trainer") as caught:
        train(config.model_copy(update={"seed": 4}), echo=quiet)
    assert "output_dir" in caught.value.hint


def test_other_data_in_the_same_directory_are_refused(config: TrainConfig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(config.dataset, data)
    config = with_trainer(config.model_copy(update={"dataset": data}), max_steps=1)
    train(config, echo=quiet)
    lines = (data / "train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (data / "train.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
    with pytest.raises(HaggleError, match="data_sha256"):
        train(config, echo=quiet)


def test_the_time_limit_stops_cleanly_and_more_time_goes_on(config: TrainConfig) -> None:
    limited = config.model_copy(update={"max_minutes": 1e-4})
    result = train(limited, echo=quiet)
    assert result.stopped == "time limit" and result.steps < STEPS
    assert (result.weights / "adapter_model.safetensors").is_file()
    assert train(limited, echo=quiet) == result
    more = train(config.model_copy(update={"max_minutes": 10.0}), echo=quiet)
    assert more.stopped == "finished" and more.steps == STEPS
    assert len(losses(config.output_dir)) == STEPS


def test_with_a_time_limit_the_learning_rate_follows_the_clock(config: TrainConfig) -> None:
    base = resolve_base(config.base, echo=quiet)
    data = tokenize(read_dialogues(config.dataset), load_tokenizer(base), max_length=512)
    clock = Clock(budget_s=100.0)
    trainer = build_trainer(config, base, load_tokenizer(base), data, clock)
    trainer.create_optimizer()
    schedule = trainer.create_scheduler(200)  # 2 of the 200 steps are warm-up
    peak = config.trainer["learning_rate"]
    assert set(schedule.get_last_lr()) == {0.0}
    for elapsed, rate in ((1.0, peak), (50.5, peak / 2), (100.0, 0.0)):
        clock.before_s = elapsed
        schedule.step()
        assert all(lr == pytest.approx(rate) for lr in schedule.get_last_lr())


def test_the_clock_knows_when_another_step_is_too_much() -> None:
    clock = Clock(budget_s=100.0, before_s=40.0)
    assert clock.share() == pytest.approx(0.4) and not clock.exhausted()
    assert Clock(budget_s=100.0, before_s=100.0).exhausted()
    assert not Clock(before_s=1e9).exhausted()


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_checkpoint(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    from training import trainer as module

    calls = 0

    def sometimes_nan(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        log_probs, mask = supervised_log_probs(*args)
        return (log_probs * math.nan if calls > 9 else log_probs), mask

    monkeypatch.setattr(module, "supervised_log_probs", sometimes_nan)
    with pytest.raises(HaggleError, match="loss is nan") as caught:
        train(config, echo=quiet)
    assert "checkpoint-3" in caught.value.hint and "learning_rate" in caught.value.hint
    kept = load_file(config.output_dir / "checkpoint-3" / "adapter_model.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in kept.values())
    assert not (config.output_dir / "adapter").exists()


def test_full_finetuning_saves_a_model_that_loads(config: TrainConfig) -> None:
    from transformers import AutoModelForCausalLM

    result = train(
        with_trainer(config.model_copy(update={"full_finetuning": True}), max_steps=2), echo=quiet
    )
    assert result.weights.name == "model"
    model = AutoModelForCausalLM.from_pretrained(result.weights)
    assert model.dtype == torch.bfloat16
    assert resolve_base(str(result.weights), echo=quiet).path == result.weights


def test_layers_that_the_base_lacks_are_an_error(config: TrainConfig) -> None:
    lora = config.lora.model_copy(update={"target_modules": ("c_attn",)})
    with pytest.raises(HaggleError, match="target_modules"):
        train(config.model_copy(update={"lora": lora}), echo=quiet)


def test_a_base_with_weights_cut_off_is_an_error_that_names_the_file(
    config: TrainConfig, tiny_base: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tiny_base, broken)
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(HaggleError, match="cut off") as caught:
        train(config.model_copy(update={"base": str(broken)}), echo=quiet)
    assert "model.safetensors" in caught.value.where


def test_a_run_can_start_from_the_adapter_of_another(config, tmp_path):
    first = train(with_trainer(config, max_steps=2), echo=quiet).weights
    again = config.model_copy(update={"start_from": first, "output_dir": tmp_path / "again"})
    second = train(with_trainer(again, max_steps=1, learning_rate=0.0), echo=quiet).weights
    name = "adapter_model.safetensors"
    one, two = load_file(first / name), load_file(second / name)
    assert one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.parametrize(
    ("wrong", "words"), [("rank", "adapter does not fit"), ("nothing", "no such adapter directory")]
)
def test_an_adapter_that_does_not_fit_is_told(config, tmp_path, wrong, words):
    directory = tmp_path / "elsewhere"
    if wrong == "rank":
        other = config.model_copy(update={"lora": LoraSettings(r=4), "output_dir": directory})
        directory = train(with_trainer(other, max_steps=1), echo=quiet).weights
    again = config.model_copy(update={"start_from": directory, "output_dir": tmp_path / "again"})
    with pytest.raises(HaggleError, match=words):
        train(again, echo=quiet)
