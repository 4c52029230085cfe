"""Whether a run fits: estimated before it starts, lowered without another result, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl
from training import memory
from training.arguments import trainer_arguments
from training.config import GrpoConfig, TrainConfig
from training.estimate import GIB, PROCESS_GIB, Estimate
from training.memory import fitted, free_gib, lower_settings
from training.run import train

SetFree = Callable[[float], None]


@pytest.fixture
def config(run_settings: Any, tiny_dataset: Path, tmp_path: Path) -> TrainConfig:
    settings = run_settings(tiny_dataset, tmp_path, max_steps=4, per_device_train_batch_size=4)
    return TrainConfig(**settings)


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> SetFree:
    """Sets the usable GiB of a machine where 1,000 tokens take 1 GiB, a quarter with
    checkpointing."""

    def estimate(config: Any, *_: Any, **__: Any) -> Estimate:
        part = 0.25 if config.settings["gradient_checkpointing"] else 1.0
        return Estimate(1, 1, fixed_gib=PROCESS_GIB, batch_gib=part, flop_per_token=1.0)

    def set_free(gib: float) -> None:
        monkeypatch.setattr(memory, "free_gib", lambda cpu: gib / memory.USABLE)

    monkeypatch.setattr(memory, "estimate", estimate)
    return set_free


def fit(config: Any, tokens: int = 1000) -> tuple[int, int, bool, list[str]]:
    """Batch, accumulation and checkpointing that a run of rows of so many tokens goes with."""
    said: list[str] = []
    made = fitted(
        config,
        trainer_arguments(config),
        Path(config.base),
        lambda arguments: (arguments.per_device_train_batch_size, tokens),
        said.append,
    )
    size, steps = made.per_device_train_batch_size, made.gradient_accumulation_steps
    return size, steps, made.gradient_checkpointing, said


def test_no_more_is_lowered_than_the_memory_asks_for(config: TrainConfig, free: SetFree) -> None:
    free(4.1)
    assert fit(config) == (4, 1, False, [])
    free(2.5)
    size, steps, checkpointing, said = fit(config)
    assert (size, steps, checkpointing) == (2, 2, False)
    assert "2.5 GiB are free" in said[0] and "gradient_accumulation_steps: 2" in said[0]
    free(0.9)
    assert fit(config)[:3] == (2, 2, True)  # the largest that fits with checkpointing
    free(0.3)
    assert fit(config)[:3] == (1, 4, True)


def test_memory_too_small_for_the_smallest_setting_is_told_before_anything_runs(
    config: TrainConfig, free: SetFree
) -> None:
    free(0.01)
    with pytest.raises(
        HaggleError, match=r"needs about 0\.\d GiB even with the smallest"
    ) as caught:
        train(config, echo=lambda _: None)
    assert caught.value.where == "trainer" and "lower max_length (512)" in caught.value.hint
    assert not config.output_dir.exists()


def test_a_batch_taken_in_parts_comes_to_the_same_losses(
    config: TrainConfig, free: SetFree, tmp_path: Path
) -> None:
    free(100.0)
    train(config, echo=lambda _: None)
    parts = config.model_copy(update={"output_dir": tmp_path / "parts"})
    free(0.5)  # rows of up to 250 tokens
    said: list[str] = []
    train(parts, echo=said.append)
    assert any(line.startswith("Memory: ") for line in said)
    whole, split = (read_jsonl(c.output_dir / "metrics.jsonl") for c in (config, parts))
    for one, two in zip(whole, split, strict=True):
        assert two["tokens"] == one["tokens"]
        assert two["loss"] == pytest.approx(one["loss"], abs=1e-4)
    # The same run, so more memory may finish it.
    free(100.0)
    said.clear()
    train(parts, echo=said.append)
    assert any(line.startswith("Already finished") for line in said)


def test_answers_drawn_together_stay_together() -> None:
    config = GrpoConfig(method="grpo", dataset="x", output_dir="x")
    least = list(lower_settings(config))[3]
    assert least == {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8}
    fixed = config.model_copy(update={"trainer": {"steps_per_generation": 2}})
    assert list(lower_settings(fixed)) == [{}, {"gradient_checkpointing": True}]


@pytest.mark.parametrize("version", [1, 2])
def test_a_containers_limit_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    machine = free_gib(cpu=True)
    assert machine > 0
    (tmp_path / "memory").mkdir()
    for name, text in zip(
        memory.LIMITS[2 - version], (str(300 << 20), str(200 << 20), "x 1\ninactive_file 52428800\n"),
        strict=True,
    ):  # fmt: skip
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert free_gib(cpu=True) == pytest.approx(150 * 2**20 / GIB)
    (tmp_path / memory.LIMITS[2 - version][0]).write_text("max\n", encoding="utf-8")
    assert free_gib(cpu=True) > 0.2
