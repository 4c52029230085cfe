"""Training configs: what is accepted, and what a mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from haggle.core.config import CONFIGS
from haggle.core.errors import HaggleError
from training.arguments import trainer_arguments
from training.config import TrainConfig, differing_keys, resolved_yaml
from training.recipes import load_stages, load_train_config

MINIMAL = {"dataset": "data/x", "output_dir": "runs/x"}


def write(path: Path, data: dict) -> Path:
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    return path


@pytest.mark.parametrize("path", sorted((CONFIGS / "train").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_shipped_config_is_valid_and_says_how_to_run_it(path: Path, tmp_path: Path) -> None:
    for stage in load_stages(path):
        config = stage.config.model_copy(update={"output_dir": tmp_path})
        assert trainer_arguments(config).report_to in ([], "none", ["none"])
    assert f"haggle train --config configs/train/{path.name}" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "key", "nearest"),
    [
        ({"max_lenght": 5}, "max_lenght", "max_length"),
        ({"lora": {"rank_alpha": 3, "alpah": 1}}, "lora.", "alpha"),
        ({"trainer": {"learning_rat": 1e-3}}, "trainer.learning_rat", "learning_rate"),
    ],
)
def test_a_misspelt_key_is_named_with_the_nearest_right_one(
    tmp_path: Path, change: dict, key: str, nearest: str
) -> None:
    path = write(tmp_path / "run.yaml", MINIMAL | change)
    with pytest.raises(HaggleError) as caught:
        load_train_config(path)
    assert key in str(caught.value)
    assert nearest in caught.value.hint
    assert "run.yaml" in caught.value.where


def test_a_key_set_elsewhere_says_where(tmp_path: Path) -> None:
    path = write(tmp_path / "run.yaml", MINIMAL | {"trainer": {"seed": 3}})
    with pytest.raises(HaggleError, match="'seed' at the top level"):
        load_train_config(path)


def test_a_value_that_trl_refuses_is_an_error_for_people(tmp_path: Path) -> None:
    config = TrainConfig(
        dataset="x", output_dir=tmp_path, trainer={"lr_scheduler_type": "sideways"}
    )
    with pytest.raises(HaggleError, match="trainer"):
        trainer_arguments(config)


def test_trainer_arguments_are_passed_through(tmp_path: Path) -> None:
    config = TrainConfig(dataset="x", output_dir=tmp_path, trainer={"learning_rate": 3e-4})
    arguments = trainer_arguments(config)
    assert arguments.learning_rate == 3e-4
    assert not arguments.gradient_checkpointing and not arguments.push_to_hub


def test_the_resolved_config_tells_runs_apart(tmp_path: Path) -> None:
    facts = {"data_sha256": "abc"}
    config = TrainConfig(dataset="x", output_dir="run")
    stored = yaml.safe_load(resolved_yaml(config, facts))
    assert differing_keys(config, facts, stored) == []
    assert differing_keys(config.model_copy(update={"seed": 3}), facts, stored) == ["seed"]
    assert differing_keys(config, {"data_sha256": "x"}, stored) == ["resolved.data_sha256"]
    longer = config.model_copy(update={"max_minutes": 60.0})
    assert differing_keys(longer, facts, stored) == []
