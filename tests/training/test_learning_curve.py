"""The command that measures a run's checkpoints: each is answered once, over the same turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from data_gen.generate import DataConfig, generate
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, read_jsonl
from training.config import TrainConfig
from training.run import train


@pytest.fixture(scope="module")
def trained(
    run_settings: Callable[..., dict[str, Any]],
    split_dataset: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A run of six steps with a checkpoint at each second."""
    steps = {"max_steps": 6, "per_device_train_batch_size": 3, "save_steps": 2}
    steps["save_total_limit"] = 3
    settings = run_settings(split_dataset, tmp_path_factory.mktemp("curve"), **steps)
    config = TrainConfig(**settings)
    train(config, echo=lambda _: None)
    return config.output_dir


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two dialogues in small shops to draw turns from."""
    out = tmp_path_factory.mktemp("held_out") / "data"
    config = DataConfig(train=0, test=2, items=(2, 3), recommendation=0)
    generate(config, out, workers=1, progress=False)
    return out


def curve(run: Path, dataset: Path, out: Path, *more: str) -> Any:
    words = ["eval", "learning-curve", str(run), "--dataset", str(dataset), "--out", str(out)]
    words += ["--engine", "transformers", "--n", "3", "--quiet", *more]
    return CliRunner().invoke(app, words)


@pytest.mark.slow
def test_each_checkpoint_is_a_point_and_is_answered_once(
    trained: Path, held_out: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ran = curve(trained, held_out, out, "--before", "1000")
    assert ran.exit_code == 0, ran.output
    points = read_json(out / "learning_curve.json")["points"]
    told = {line["step"]: line["tokens"] for line in read_jsonl(trained / "metrics.jsonl")}
    assert [point["tokens"] for point in points] == [1000 + told[step] for step in (2, 4, 6)]
    assert (out / "learning_curve.png").is_file()
    assert not list(out.glob("*/model"))  # a merged model of each would fill a disk

    again = curve(trained, held_out, out, "--before", "1000")
    assert again.exit_code == 0
    assert "step 2" in ran.output and "step 2" not in again.output
    other = curve(trained, held_out, out, "--before", "1000", "--seed", "5").exception
    assert isinstance(other, HaggleError) and "over other turns" in str(other)
    assert read_json(out / "learning_curve.json")["points"] == points


def test_what_cannot_be_measured_is_told_first(
    trained: Path, held_out: Path, tmp_path: Path
) -> None:
    for run, more, told in (
        (tmp_path, (), "metrics.jsonl"),
        (trained, ("--engine", "gemini_flash"), "weights"),
        (trained, ("--goal", "96"), "between 0 and 1"),
    ):
        error = curve(run, held_out, tmp_path / "out", *more).exception
        assert isinstance(error, HaggleError) and told in str(error)
        assert not (tmp_path / "out").exists()
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "metrics.jsonl").write_bytes((trained / "metrics.jsonl").read_bytes())
    error = curve(bare, held_out, tmp_path / "out").exception
    assert isinstance(error, HaggleError) and "save_steps" in error.hint
