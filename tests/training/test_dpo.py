"""Preference training on a tiny model: its loss, its resumption, its refusals."""

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
from training import dpo
from training.config import DpoConfig, LoraSettings
from training.dpo import build_trainer
from training.loading import load_tokenizer
from training.pair_trainer import PairTrainer
from training.pairs import read_pairs, tokenize_pairs
from training.run import train
from training.trainer import Clock, causal_model

STEPS = 8


def quiet(_: str) -> None:
    """Nothing to say."""


@pytest.fixture
def config(run_settings: Any, pair_dataset: Path, tmp_path: Path) -> DpoConfig:
    settings = run_settings(
        pair_dataset, tmp_path, max_steps=STEPS, per_device_train_batch_size=4,
        warmup_steps=1, beta=0.5, save_steps=3,
    )  # fmt: skip
    return DpoConfig(method="dpo", **settings)


@pytest.fixture(scope="module")
def adapter(tiny_base: Path, pair_dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter of rank 4 that has learnt something, to start from."""
    config = DpoConfig(
        method="dpo",
        base=str(tiny_base),
        dataset=pair_dataset,
        output_dir=tmp_path_factory.mktemp("first") / "run",
        lora=LoraSettings(r=4, alpha=8),
        max_length=512,
        trainer={"max_steps": 3, "learning_rate": 1e-2, "bf16": False, "disable_tqdm": True},
    )
    return train(config, echo=quiet).weights


def with_trainer(config: DpoConfig, **changes: Any) -> DpoConfig:
    return config.model_copy(update={"trainer": config.trainer | changes})


def history(run: Path) -> list[dict[str, Any]]:
    return read_jsonl(run / "metrics.jsonl")


def make_trainer(config: DpoConfig) -> Any:
    base = resolve_base(config.base, echo=quiet)
    tokenizer = load_tokenizer(base)
    data = tokenize_pairs(read_pairs(config.dataset), tokenizer, max_length=config.max_length)
    return build_trainer(config, base, tokenizer, data, Clock())


def a_batch(trainer: Any, rows: int = 3) -> dict[str, torch.Tensor]:
    return trainer.data_collator([trainer.train_dataset[i] for i in range(rows)])


def answer_logps(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Sums of the answers' log-probabilities, each row run by itself through the full model."""
    sums = []
    for ids, seen, own in zip(
        batch["input_ids"], batch["attention_mask"], batch["completion_mask"], strict=True
    ):
        length = int(seen.sum())
        logits = model(input_ids=ids[None, :length]).logits[0, :-1].float()
        picked = logits.log_softmax(-1).gather(1, ids[1:length, None])[:, 0]
        sums.append((picked * own[1:length]).sum())
    return torch.stack(sums)


def test_log_probabilities_and_gradients_are_those_of_each_answer_by_itself(
    config: DpoConfig,
) -> None:
    trainer = make_trainer(config)
    model = trainer.model
    batch = a_batch(trainer)
    labels = batch["input_ids"].masked_fill(batch["completion_mask"] == 0, -100)
    weights = torch.tensor([1.0, 2.0, 3.0, -1.0, -2.0, -3.0])
    short = model(
        input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels,
        fused_lm_head=True, use_cache=False,
    )  # fmt: skip
    assert short.log_probs.shape == labels[:, 1:].shape
    assert (short.log_probs[labels[:, 1:] == -100] == 0).all()
    expected = answer_logps(model, batch)
    torch.testing.assert_close(short.log_probs.sum(1), expected, rtol=1e-4, atol=1e-4)
    trained = [p for p in model.parameters() if p.requires_grad]
    ours = torch.autograd.grad((short.log_probs.sum(1) * weights).sum(), trained)
    theirs = torch.autograd.grad((expected * weights).sum(), trained)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)


def test_the_figures_beside_the_log_probabilities_are_trls_own(config: DpoConfig) -> None:
    from trl.trainer.utils import add_fused_lm_head

    trainer = make_trainer(config)
    plain = causal_model(trainer.model)
    batch = a_batch(trainer)
    labels = batch["input_ids"].masked_fill(batch["completion_mask"] == 0, -100)
    asked = {"input_ids": batch["input_ids"], "labels": labels, "fused_lm_head": True}
    with torch.no_grad():
        ours = plain(**asked)
        del plain.forward  # back to the model's own
        names = ("entropy", "log_sum_sq_probs", "mean_logits", "is_top1")
        add_fused_lm_head(plain, outputs=("log_probs", *names))
        theirs = plain(**asked)
    for name in ("loss", "log_probs", "label_mask", *names):
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-4, atol=1e-4, msg=name)


def test_the_loss_is_that_of_the_paper(config: DpoConfig) -> None:
    """Rafailov et al. 2023, equation 7; the reference is the model without its adapter."""
    trainer = make_trainer(config)
    batch = a_batch(trainer)
    with torch.no_grad():
        at_first = trainer.compute_loss(trainer.model, dict(batch))
    assert float(at_first) == pytest.approx(math.log(2), abs=1e-5)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, weight in trainer.model.named_parameters():
            if "lora_B" in name:
                weight.add_(0.1 * torch.randn_like(weight))
        policy = answer_logps(trainer.model, batch)
        with trainer.model.disable_adapter():
            reference = answer_logps(trainer.model, batch)
    chosen, rejected = (policy - reference).chunk(2)
    expected = -torch.nn.functional.logsigmoid(0.5 * (chosen - rejected)).mean()
    assert abs(float(expected) - math.log(2)) > 0.01
    torch.testing.assert_close(
        trainer.compute_loss(trainer.model, dict(batch)), expected, rtol=1e-3, atol=1e-4
    )


def test_the_loss_falls_and_right_answers_draw_away_from_wrong_ones(config: DpoConfig) -> None:
    result = train(config, echo=quiet)
    lines = history(config.output_dir)
    assert [line["step"] for line in lines] == list(range(1, STEPS + 1))
    assert lines[0]["loss"] == pytest.approx(math.log(2), abs=1e-4)
    assert lines[0]["margin"] == pytest.approx(0, abs=1e-4)
    assert lines[-1]["loss"] < 0.6 < lines[0]["loss"]
    assert lines[-1]["margin"] > 0.3 and lines[-1]["accuracy"] > 0.7
    assert result.figures["margin"] == lines[-1]["margin"]
    assert result.stopped == "finished" and result.steps == STEPS
    assert lines[-1]["tokens"] == result.tokens > 0
    saved = load_file(result.weights / "adapter_model.safetensors")
    assert {tensor.dtype for tensor in saved.values()} == {torch.bfloat16}
    stored = yaml.safe_load((config.output_dir / "config.resolved.yaml").read_text("utf-8"))
    assert stored["method"] == "dpo" and stored["resolved"]["pairs"] == 12


def test_a_run_counts_the_tokens_of_prompts_once(config: DpoConfig) -> None:
    config = with_trainer(config, max_steps=3)  # 3 batches of 4 are all pairs
    data = tokenize_pairs(
        read_pairs(config.dataset), load_tokenizer(resolve_base(config.base, echo=quiet)),
        max_length=512,
    )  # fmt: skip
    assert train(config, echo=quiet).tokens == data.tokens


def test_an_adapter_to_start_from_is_the_reference_and_goes_on(
    config: DpoConfig, adapter: Path
) -> None:
    config = config.model_copy(update={"start_from": adapter})
    trainer = make_trainer(config)
    first, now = load_file(adapter / "adapter_model.safetensors"), trainer.model.state_dict()
    for name, tensor in first.items():
        for copy in ("default", "ref"):
            held = now[name.replace(".weight", f".{copy}.weight")]
            torch.testing.assert_close(held.to(torch.bfloat16), tensor)
    result = train(config, echo=quiet)
    lines = history(config.output_dir)
    assert lines[0]["loss"] == pytest.approx(math.log(2), abs=1e-4), "the reference is the adapter"
    assert lines[-1]["loss"] < lines[0]["loss"]
    saved = load_file(result.weights / "adapter_model.safetensors")
    assert saved.keys() == first.keys()
    assert not any(torch.equal(saved[name], first[name]) for name in saved if "lora_B" in name)
    settings = json.loads((result.weights / "adapter_config.json").read_text(encoding="utf-8"))
    assert settings["r"] == 4
    assert not (result.weights / "ref").exists()


@pytest.mark.parametrize("started_from", ["base", "adapter"])
def test_a_killed_run_resumes_with_the_losses_of_an_uninterrupted_one(
    config: DpoConfig, adapter: Path, check_resumption: Any, started_from: str
) -> None:
    if started_from == "adapter":
        config = config.model_copy(update={"start_from": adapter})
    check_resumption(config, PairTrainer)


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_checkpoint(
    config: DpoConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    from training import pair_trainer

    scored, calls = pair_trainer._scored, 0

    def sometimes_nan(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        output = scored(*args)
        if calls > 8:  # two passes a step: model and reference
            output.log_probs = output.log_probs * math.nan
        return output

    monkeypatch.setattr(pair_trainer, "_scored", sometimes_nan)
    with pytest.raises(HaggleError, match="loss is nan") as caught:
        train(config, echo=quiet)
    assert "checkpoint-3" in caught.value.hint and "learning_rate" in caught.value.hint
    kept = load_file(config.output_dir / "checkpoint-3" / "adapter_model.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in kept.values())
    assert not (config.output_dir / "adapter").exists()


def test_a_finished_run_is_returned_and_not_trained_again(
    config: DpoConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = with_trainer(config, max_steps=1)
    first = train(config, echo=quiet)
    monkeypatch.setattr(dpo, "build_trainer", lambda *_: pytest.fail("trained again"))
    assert train(config, echo=quiet) == first


def test_the_time_limit_stops_cleanly(config: DpoConfig) -> None:
    result = train(config.model_copy(update={"max_minutes": 1e-4}), echo=quiet)
    assert result.stopped == "time limit" and result.steps < STEPS
    assert (result.weights / "adapter_model.safetensors").is_file()


def test_another_adapter_in_the_same_directory_is_refused(
    config: DpoConfig, adapter: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "adapter"
    shutil.copytree(adapter, copy)
    config = with_trainer(config.model_copy(update={"start_from": copy}), max_steps=1)
    train(config, echo=quiet)
    other = train(
        with_trainer(config, max_steps=2).model_copy(update={"output_dir": tmp_path / "other"}),
        echo=quiet,
    )
    shutil.rmtree(copy)
    shutil.copytree(other.weights, copy)
    with pytest.raises(HaggleError, match="adapter_sha256"):
        train(config, echo=quiet)


def test_an_adapter_of_another_base_or_none_at_all_is_refused(
    config: DpoConfig, adapter: Path, other_base: Path, tmp_path: Path
) -> None:
    wider = config.model_copy(update={"base": str(other_base), "start_from": adapter})
    with pytest.raises(HaggleError, match="another base"):
        train(wider, echo=quiet)
    missing = config.model_copy(update={"start_from": tmp_path / "nowhere"})
    with pytest.raises(HaggleError, match="no such adapter"):
        train(missing, echo=quiet)
    assert not config.output_dir.exists()


def test_all_weights_can_be_trained(config: DpoConfig) -> None:
    config = with_trainer(
        config.model_copy(update={"full_finetuning": True}), max_steps=3, learning_rate=1e-3
    )
    result = train(config, echo=quiet)
    lines = history(config.output_dir)
    assert lines[0]["loss"] == pytest.approx(math.log(2), abs=1e-4)
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert resolve_base(str(result.weights), echo=quiet).path == result.weights


@pytest.mark.slow
@pytest.mark.long
def test_the_real_small_model_takes_a_few_steps_on_real_pairs(tmp_path: Path) -> None:
    from data_gen.config import DataConfig
    from data_gen.dataset.preferences import PreferenceConfig, make_preferences

    make_preferences(
        PreferenceConfig(train=2, test=0, data=DataConfig(seed=2, items=(4, 5))),
        tmp_path / "pairs",
        progress=False,
    )
    config = DpoConfig(
        method="dpo",
        dataset=tmp_path / "pairs",
        output_dir=tmp_path / "run",
        max_length=768,
        trainer={
            "max_steps": 3,
            "per_device_train_batch_size": 2,
            "learning_rate": 1e-3,
            "warmup_steps": 0,
            "logging_steps": 1,
            "save_strategy": "no",
            "disable_tqdm": True,
        },
    )
    result = train(config, echo=quiet)
    lines = history(config.output_dir)
    assert result.steps == 3
    # In bf16 the two passes at the start agree to a few hundredths.
    assert lines[0]["loss"] == pytest.approx(math.log(2), abs=0.05)
    assert all(math.isfinite(line["loss"]) for line in lines)
    assert lines[-1]["margin"] > 0  # of the two pairs that every step sees
    assert (result.weights / "adapter_model.safetensors").is_file()
