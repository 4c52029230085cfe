"""What follows from held-out accuracy: the same curve after a break, the best weights, an end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, read_jsonl
from training import heldout
from training import trainer as trainer_module
from training.config import EvaluationSettings, TrainConfig
from training.heldout import out_of_patience, score
from training.run import train
from training.trainer import DialogueTrainer

STEPS = 8
WEIGHTS = "adapter_model.safetensors"


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


def lines(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's metrics, without what the clock had a part in."""
    found = []
    for line in read_jsonl(run / "metrics.jsonl"):
        line = {k: v for k, v in line.items() if k not in {"elapsed_s", "tokens_per_s"}}
        if "heldout" in line:
            line["heldout"] = {k: v for k, v in line["heldout"].items() if k != "seconds"}
        found.append(line)
    return found


def same_weights(one: Path, two: Path) -> bool:
    a, b = load_file(one), load_file(two)
    return a.keys() == b.keys() and all(torch.equal(a[k].bfloat16(), b[k].bfloat16()) for k in a)


@pytest.fixture
def joints(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[float]], None]:
    """Let the evaluations of a run come to these joint accuracies, whatever is answered."""

    def patch(values: list[float]) -> None:
        left = list(values)

        def scripted(verdicts: Any) -> Any:
            return score(verdicts) | {"joint": left.pop(0)}

        monkeypatch.setattr(trainer_module, "score", scripted)
        monkeypatch.setattr(heldout, "_generate", lambda *a: [""] * len(a[3]))

    return patch


def test_training_is_the_same_with_and_without_evaluation(
    config: TrainConfig, tmp_path: Path
) -> None:
    lora = config.lora.model_copy(update={"dropout": 0.2})  # draws random numbers
    config = config.model_copy(update={"lora": lora})
    without = config.model_copy(update={"evaluation": None, "output_dir": tmp_path / "without"})
    one = train(evaluating(config, keep_best=False), echo=quiet)
    two = train(without, echo=quiet)
    assert [line for line in lines(config.output_dir) if "loss" in line] == lines(tmp_path / "without")  # fmt: skip
    assert same_weights(one.weights / WEIGHTS, two.weights / WEIGHTS)
    assert [line["step"] for line in lines(config.output_dir) if "heldout" in line] == [2, 4, 6, 8]
    assert two.best == {} and two.weights_step == STEPS


def test_every_evaluation_stands_at_a_checkpoint_and_the_last_step_has_one(
    config: TrainConfig,
) -> None:
    config = with_trainer(evaluating(config, every_steps=3), save_total_limit=None, save_steps=4)
    train(config, echo=quiet)
    assert [line["step"] for line in lines(config.output_dir) if "heldout" in line] == [3, 6, 8]
    saved = {path.name for path in config.output_dir.glob("checkpoint-*")}
    assert saved == {f"checkpoint-{step}" for step in (3, 4, 6, 8)}


@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_broken_off_run_resumes_with_the_same_lines(
    config: TrainConfig, tmp_path: Path, fail_at: Any, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    whole = config.model_copy(update={"output_dir": tmp_path / "whole"})
    first = train(whole, echo=quiet)
    fail_at(DialogueTrainer, at, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        train(config, echo=quiet)
    monkeypatch.undo()
    second = train(config, echo=quiet)
    assert lines(config.output_dir) == lines(whole.output_dir)
    assert second.best == first.best and second.weights_step == first.weights_step
    assert same_weights(first.weights / WEIGHTS, second.weights / WEIGHTS)


def test_a_run_broken_off_in_an_evaluation_measures_again(
    config: TrainConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = config.model_copy(update={"output_dir": tmp_path / "whole"})
    train(whole, echo=quiet)
    calls = 0

    def broken(verdicts: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return score(verdicts)

    monkeypatch.setattr(trainer_module, "score", broken)
    with pytest.raises(KeyboardInterrupt):
        train(config, echo=quiet)
    monkeypatch.undo()
    train(config, echo=quiet)
    assert lines(config.output_dir) == lines(whole.output_dir)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.long
def test_a_run_killed_outright_at_any_moment_comes_to_the_same_curve(
    config: TrainConfig, tmp_path: Path
) -> None:
    whole = config.model_copy(update={"output_dir": tmp_path / "whole"})
    first = train(whole, echo=quiet)
    path = tmp_path / "train.json"
    path.write_text(json.dumps(config.model_dump(mode="json")), encoding="utf-8")
    command = [sys.executable, "-m", "haggle", "train", "--config", str(path)]
    metrics, rng = config.output_dir / "metrics.jsonl", random.Random(5)
    for wanted in (2, 5, 9):  # lines of metrics; then some moment after
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and process.poll() is None:
            if metrics.is_file() and metrics.read_text(encoding="utf-8").count("\n") >= wanted:
                break
            time.sleep(0.002)
        time.sleep(rng.random() * 0.2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run(command, check=True, capture_output=True)
    assert lines(config.output_dir) == lines(whole.output_dir)
    assert read_json(config.output_dir / "result.json")["best"] == first.best


@pytest.mark.parametrize("limit", [1, 2])
def test_the_best_checkpoint_is_kept_and_its_weights_are_saved(
    config: TrainConfig, joints: Any, limit: int
) -> None:
    joints([0.2, 0.8, 0.4, 0.8])
    told: list[str] = []
    result = train(with_trainer(config, save_total_limit=limit), echo=told.append)
    run = config.output_dir
    assert sorted(path.name for path in run.glob("checkpoint-*")) == ["checkpoint-4", "checkpoint-8"]  # fmt: skip
    assert result.best["step"] == result.weights_step == 4 and result.best["joint"] == 0.8
    assert same_weights(result.weights / WEIGHTS, run / "checkpoint-4" / WEIGHTS)
    assert not same_weights(result.weights / WEIGHTS, run / "checkpoint-8" / WEIGHTS)
    assert any("80.0%" in line and "weights of step 4 of 8" in line for line in told)
    stored = read_json(run / "result.json")
    assert stored["best"]["step"] == 4 and stored["weights_step"] == 4 and stored["steps"] == 8


def test_the_last_weights_are_saved_where_that_is_asked_for(
    config: TrainConfig, joints: Any
) -> None:
    joints([0.2, 0.8, 0.4, 0.3])
    result = train(evaluating(config, keep_best=False), echo=quiet)
    assert result.best["step"] == 4 and result.weights_step == STEPS
    last = config.output_dir / "checkpoint-8" / WEIGHTS
    assert same_weights(result.weights / WEIGHTS, last)


def test_the_best_of_full_finetuning_is_saved(config: TrainConfig, joints: Any) -> None:
    joints([0.8, 0.2])
    config = config.model_copy(update={"full_finetuning": True})
    result = train(with_trainer(config, max_steps=4), echo=quiet)
    name = "model.safetensors"
    assert result.weights_step == 2
    assert same_weights(result.weights / name, config.output_dir / "checkpoint-2" / name)


def test_the_best_is_known_again_after_a_break(
    config: TrainConfig, joints: Any, fail_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = with_trainer(config, save_total_limit=1)
    joints([0.8, 0.2, 0.3])
    fail_at(DialogueTrainer, 7, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        train(config, echo=quiet)
    monkeypatch.undo()
    joints([0.4])
    result = train(config, echo=quiet)
    assert result.best["step"] == result.weights_step == 2
    best = config.output_dir / "checkpoint-2" / WEIGHTS
    assert same_weights(result.weights / WEIGHTS, best)


def test_a_run_that_gets_no_better_stops(config: TrainConfig, joints: Any) -> None:
    joints([0.2, 0.8, 0.4, 0.8])
    config = with_trainer(evaluating(config, patience=2), max_steps=40)
    result = train(config, echo=quiet)
    assert result.stopped == "no better for 2 evaluations"
    assert result.steps == 8 and result.total_steps == 40 and result.weights_step == 4
    assert train(config, echo=quiet) == result


def test_a_run_broken_off_behind_its_early_stop_takes_no_step_more(
    config: TrainConfig, joints: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    joints([0.8, 0.2])
    config = with_trainer(evaluating(config, patience=1), max_steps=40)
    first = train(config, echo=quiet)
    (config.output_dir / "result.json").unlink()
    monkeypatch.setattr(DialogueTrainer, "training_step", lambda *_: pytest.fail("trained on"))
    again = train(config, echo=quiet)
    assert again.steps == 4 and again.stopped == "no better for 1 evaluation"
    assert again.weights_step == first.weights_step == 2 and again.best == first.best


def test_patience_counts_from_the_first_best() -> None:
    def history(*values: float) -> list[dict[str, Any]]:
        figures = {"eval_low": 0.0, "eval_high": 1.0, "eval_n": 5}
        found = [{"step": i, "eval_joint": v, **figures} for i, v in enumerate(values, 1)]
        return [*found, {"step": 9, "train_loss": 0.1}]

    two = EvaluationSettings(patience=2)
    assert out_of_patience(two, history(0.5, 0.6, 0.6)) is None
    assert out_of_patience(two, history(0.5, 0.6, 0.6, 0.1))
    assert out_of_patience(EvaluationSettings(), history(0.9, 0.1, 0.1, 0.1)) is None
    assert out_of_patience(None, []) is None and out_of_patience(two, []) is None


def test_a_time_limit_ends_with_an_evaluation_and_more_time_goes_on(config: TrainConfig) -> None:
    limited = config.model_copy(update={"max_minutes": 1e-4})
    result = train(limited, echo=quiet)
    assert result.stopped == "time limit" and result.best["step"] == result.steps
    more = train(config.model_copy(update={"max_minutes": 10.0}), echo=quiet)
    assert more.stopped == "finished" and more.steps == STEPS


def test_other_held_out_turns_make_another_run_but_another_batch_does_not(
    config: TrainConfig,
) -> None:
    config = with_trainer(config, max_steps=1)
    result = train(config, echo=quiet)
    assert train(evaluating(config, batch=1), echo=quiet) == result
    with pytest.raises(HaggleError, match="other settings: evaluation"):
        train(evaluating(config, turns=4), echo=quiet)
