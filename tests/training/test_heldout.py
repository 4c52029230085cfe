"""Held-out accuracy while training: what is asked, how it is scored, what is refused."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl
from haggle.trade.agreement import agreement
from haggle.weights.chat_template import render
from haggle.weights.models import resolve_base
from training import heldout, sft
from training import trainer as trainer_module
from training.arguments import trainer_arguments
from training.config import DpoConfig, EvaluationSettings, TrainConfig
from training.data import read_dialogues, tokenize
from training.heldout import answer, draw, read_held_out, score
from training.loading import load_tokenizer
from training.recipes import load_train_config
from training.run import train
from training.sft import build_trainer
from training.trainer import Clock, DialogueTrainer, causal_model

RIGHT = '{"last":"","state":"OFFER_SELL","cart":[["Clay Jug",2]],"say":"Fine."}'


def quiet(_: str) -> None:
    """Nothing to say."""


@pytest.fixture
def config(evaluated: dict[str, Any]) -> TrainConfig:
    return TrainConfig(**evaluated)


def evaluating(config: TrainConfig, **changes: Any) -> TrainConfig:
    assert config.evaluation is not None
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update=changes)})


def with_trainer(config: TrainConfig, **changes: Any) -> TrainConfig:
    return config.model_copy(update={"trainer": config.trainer | changes})


def test_no_two_turns_are_of_one_dialogue_until_all_have_given_one() -> None:
    turn = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    dialogues = [[{"role": "system", "content": "s"}, *turn * rounds] for rounds in (3, 1, 2)]
    drawn = draw(dialogues, 5, seed=1)
    assert {number for number, _ in drawn[:3]} == {0, 1, 2}
    assert {number for number, _ in drawn[3:]} == {0, 2}
    assert len(set(drawn)) == 5
    assert all(dialogues[number][at]["role"] == "assistant" for number, at in drawn)
    assert draw(dialogues, 5, seed=1) == drawn and draw(dialogues, 3, seed=1) == drawn[:3]
    assert len(draw(dialogues, 100, seed=1)) == 6
    assert len({tuple(draw(dialogues, 3, seed=seed)) for seed in range(9)}) > 1


def test_prompts_are_those_that_serving_sends(config: TrainConfig, tokenizer: Any) -> None:
    held_out = read_held_out(evaluating(config, turns=100), tokenizer)
    rows = read_jsonl(config.dataset / "test.jsonl")
    expected = {
        render(row["messages"][:at]): row["messages"][at]["content"]
        for row in rows
        for at, message in enumerate(row["messages"])
        if message["role"] == "assistant"
    }
    assert {tokenizer.decode(turn.prompt): turn.right for turn in held_out.turns} == expected
    dialogues = [ids.ids for ids in tokenize([row["messages"] for row in rows], tokenizer, max_length=9999).rows]  # fmt: skip
    for turn in held_out.turns:
        assert any(ids[: len(turn.prompt)] == turn.prompt for ids in dialogues)
    assert held_out.dialogues == 6 and "6 dialogues" in held_out.describe()


def test_scores_are_shares_with_an_interval() -> None:
    wrong_cart = RIGHT.replace("2", "3")
    found = score([agreement(RIGHT, text, "") for text in (RIGHT, RIGHT, wrong_cart, "{")])
    assert found["n"] == 4 and found["joint"] == 0.5 and found["state"] == found["valid"] == 0.75
    assert found["cart"] == 0.5 and found["bid"] is None
    assert found["low"] == pytest.approx(0.15, abs=0.01)  # Wilson, 2 of 4
    assert found["high"] == pytest.approx(0.85, abs=0.01)


@pytest.mark.parametrize("perfect", [True, False])
def test_a_model_that_knows_the_answers_is_told_from_one_that_does_not(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch, perfect: bool
) -> None:
    def known(_: Any, __: Any, held_out: Any, prompts: list[list[int]]) -> list[str]:
        right = {tuple(turn.prompt): turn.right for turn in held_out.turns}
        wrong = '{"last":"","state":"CASUAL","say":"Hm."}'
        return [right[tuple(prompt)] if perfect else wrong for prompt in prompts]

    monkeypatch.setattr(heldout, "_generate", known)
    result = train(with_trainer(config, max_steps=2), echo=quiet)
    (line,) = [
        line for line in read_jsonl(config.output_dir / "metrics.jsonl") if "heldout" in line
    ]
    assert line["heldout"]["joint"] == line["heldout"]["state"] == float(perfect)
    assert line["heldout"]["valid"] == 1.0 and line["heldout"]["n"] == 5
    assert result.best["joint"] == float(perfect)


def test_the_answered_line_says_what_a_change_starts_from(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change of another good leaves another cart, which the note above the line alone tells."""
    right = '{"last":"OFFER_SELL","state":"OFFER_SELL","change":[["Axe",0]],"say":"Gone."}'
    line = 'cart [["Axe",1],["Map",1]] price 9\nplayer: not that one'
    messages = [{"role": "user", "content": line}, {"role": "assistant", "content": right}]
    (tmp_path / "test.jsonl").write_text(json.dumps({"messages": messages}) + "\n", "utf-8")
    answers = iter([right.replace("Axe", "Map"), right])
    monkeypatch.setattr(heldout, "_generate", lambda *_: [next(answers)])
    result = train(with_trainer(evaluating(config, dataset=tmp_path), max_steps=4), echo=quiet)
    logged = read_jsonl(config.output_dir / "metrics.jsonl")
    found = [line["heldout"] for line in logged if "heldout" in line]
    assert [one["joint"] for one in found] == [0.0, 1.0]
    assert [one["state"] for one in found] == [1.0, 1.0] and found[0]["cart"] == 0.0
    assert result.best["step"] == 4 and result.best["joint"] == 1.0


def test_a_character_with_a_procedure_is_measured_as_its_domain_says(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = '{"user":"Greeting","act":"AskName","say":"Your name?"}'
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": right}]
    (tmp_path / "test.jsonl").write_text(json.dumps({"messages": messages}) + "\n", "utf-8")
    answers = iter([right.replace("AskName", "Farewell"), right])
    monkeypatch.setattr(heldout, "_generate", lambda *_: [next(answers)])
    train(with_trainer(evaluating(config, dataset=tmp_path), max_steps=4), echo=quiet)
    logged = read_jsonl(config.output_dir / "metrics.jsonl")
    found = [line["heldout"] for line in logged if "heldout" in line]
    assert [one["joint"] for one in found] == [0.0, 1.0]
    assert all(one["last"] == 1.0 and one["cart"] is None for one in found)


def test_a_model_that_has_learnt_its_dialogues_answers_them(
    config: TrainConfig, split_dataset: Path, tmp_path: Path
) -> None:
    text = (split_dataset / "train.jsonl").read_text(encoding="utf-8").splitlines()[0] + "\n"
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text(text, encoding="utf-8")
    changed = evaluating(config, max_new_tokens=80).model_copy(
        update={"dataset": tmp_path, "full_finetuning": True}
    )
    told: list[str] = []
    result = train(
        with_trainer(changed, max_steps=40, save_steps=40, learning_rate=5e-3), echo=told.append
    )
    assert result.best["joint"] == 1.0 and result.best["step"] == 40
    assert any("100.0%" in line and "step 40" in line for line in told)


def build(config: TrainConfig) -> tuple[DialogueTrainer, Any]:
    base = resolve_base(config.base, echo=quiet)
    tokenizer = load_tokenizer(base)
    data = tokenize(read_dialogues(config.dataset), tokenizer, max_length=512)
    return build_trainer(config, base, tokenizer, data, Clock()), tokenizer


def test_answers_are_those_of_the_whole_prompt_alone(config: TrainConfig) -> None:
    """A batch padded on the left, with a cache, against one prompt at a time without either."""
    trainer, tokenizer = build(config)
    held_out = read_held_out(evaluating(config, turns=9, batch=4, max_new_tokens=12), tokenizer)
    model = causal_model(trainer.model)
    trainer.model.eval()
    assert model.config._attn_implementation == "haggle_blocked"
    forward = model.forward
    got = answer(model, tokenizer, held_out, held_out.turns)
    assert len(set(got)) > 1 and len({len(turn.prompt) for turn in held_out.turns}) > 1
    assert model.forward == forward
    assert model.config._attn_implementation == "haggle_blocked"
    for turn, text in zip(held_out.turns, got, strict=True):
        ids = list(turn.prompt)
        for _ in range(12):
            with torch.no_grad():
                following = int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())
            if following in held_out.ends:
                break
            ids.append(following)
        assert text == tokenizer.decode(ids[len(turn.prompt) :], skip_special_tokens=True)


def test_time_spent_on_evaluation_is_no_training_time(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(verdicts: Any) -> Any:
        time.sleep(1.0)
        return score(verdicts)

    monkeypatch.setattr(trainer_module, "score", slow)
    began = time.monotonic()
    result = train(with_trainer(evaluating(config, every_steps=1), max_steps=3), echo=quiet)
    took = time.monotonic() - began
    assert result.minutes * 60 < took - 2.9
    found = read_jsonl(config.output_dir / "metrics.jsonl")
    assert all(line["heldout"]["seconds"] >= 1.0 for line in found if "heldout" in line)


def test_the_clock_stands_still_while_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(trainer_module.time, "monotonic", lambda: now)
    clock = Clock(budget_s=50.0)
    clock.start()
    now += 10
    with clock.paused():
        now += 1000
        assert clock.elapsed_s == 10
    now += 5
    assert clock.elapsed_s == 15 and not clock.exhausted()


def test_preference_training_is_evaluated_on_dialogues(
    run_settings: Any, pair_dataset: Path, split_dataset: Path, tmp_path: Path
) -> None:
    settings = run_settings(pair_dataset, tmp_path, max_steps=2, save_steps=1, learning_rate=1e-4)
    evaluation = EvaluationSettings(dataset=split_dataset, turns=2, max_new_tokens=8)
    config = DpoConfig(**settings, method="dpo", evaluation=evaluation)
    result = train(config, echo=quiet)
    found = read_jsonl(config.output_dir / "metrics.jsonl")
    assert [line["step"] for line in found if "heldout" in line] == [1, 2]
    assert all("margin" in line for line in found if "loss" in line)
    assert result.best["n"] == 2
    own = config.model_copy(update={"evaluation": EvaluationSettings(split="train")})
    with pytest.raises(HaggleError, match="needs dialogues, these are preference pairs") as caught:
        train(own, echo=quiet)
    assert "evaluation.dataset" in caught.value.hint


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("{every_steps: 0}", "every_steps"),
        ("{turns: 0}", "turns"),
        ("{patience: 0}", "patience"),
        ("{every_step: 5}", "every_steps"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path: Path, settings: str, words: str) -> None:
    path = tmp_path / "train.yaml"
    text = f"dataset: x\noutput_dir: y\nevaluation: {settings}\n"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HaggleError, match=words):
        load_train_config(path)


def test_what_the_trainer_must_not_be_told_twice_is_refused(config: TrainConfig) -> None:
    with pytest.raises(HaggleError, match="eval_strategy") as caught:
        trainer_arguments(with_trainer(config, eval_strategy="steps"))
    assert "'evaluation'" in caught.value.hint
    with pytest.raises(HaggleError, match="evaluation needs checkpoints"):
        trainer_arguments(with_trainer(config, save_strategy="no"))


def test_a_data_set_to_measure_on_is_asked_for_before_anything_is_loaded(
    config: TrainConfig, tiny_dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sft, "tokenize", lambda *_, **__: pytest.fail("read before it was told"))
    with pytest.raises(HaggleError, match=r"evaluation: .*test") as caught:
        train(config.model_copy(update={"dataset": tiny_dataset}), echo=quiet)
    assert "splits there: train" in caught.value.hint
    with pytest.raises(HaggleError, match="no such dataset"):
        train(evaluating(config, dataset=tmp_path / "none"), echo=quiet)
    with pytest.raises(HaggleError, match="single file"):
        train(config.model_copy(update={"dataset": tiny_dataset / "train.jsonl"}), echo=quiet)
    (tmp_path / "test.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(HaggleError, match="empty"):
        train(evaluating(config, dataset=tmp_path), echo=quiet)


def test_answers_in_another_format_are_named(config: TrainConfig, tmp_path: Path) -> None:
    row = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]}
    (tmp_path / "test.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(HaggleError, match=r"messages\[1\] is no compact answer") as caught:
        train(evaluating(config, dataset=tmp_path), echo=quiet)
    assert "row 1" in caught.value.where and "astp-compact" in caught.value.hint


def test_memory_that_runs_out_names_the_batch_to_lower(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(heldout, "_generate", full)
    with pytest.raises(HaggleError, match="held-out") as caught:
        train(config, echo=quiet)
    assert "evaluation.batch (2)" in caught.value.hint


def test_a_reporter_that_is_not_there_is_named_with_its_extra(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers.integrations as integrations

    monkeypatch.setattr(integrations, "get_available_reporting_integrations", list)
    for name in ("tensorboard", "trackio"):
        with pytest.raises(HaggleError, match=f"{name} is not installed") as caught:
            train(with_trainer(config, report_to=name), echo=quiet)
        assert f".[{name}]" in caught.value.hint
    with pytest.raises(HaggleError, match="unknown 'tensorbord'") as caught:
        train(with_trainer(config, report_to="tensorbord"), echo=quiet)
    assert "tensorboard" in caught.value.hint


def test_tensorboard_is_told_the_losses_and_the_held_out_accuracy(config: TrainConfig) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(with_trainer(config, report_to="tensorboard", max_steps=4), echo=quiet)
    (folder,) = {path.parent for path in config.output_dir.rglob("events.out.tfevents.*")}
    events = EventAccumulator(str(folder))
    events.Reload()
    assert [event.step for event in events.Scalars("train/loss")] == [1, 2, 3, 4]
    assert [event.step for event in events.Scalars("eval/joint")] == [2, 4]
