"""The command that trains a recipe once for each change and compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from haggle.cli import app
from haggle.core.config import CONFIGS, load_config, merged
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json

DATA = {"train": 6, "test": 0, "items": [2, 3], "recommendation": 0}
MEASURED = {"train": 0, "test": 2, "items": [2, 3], "recommendation": 0}
ARMS: dict[str, Any] = {
    "reference": {},
    "bare": {"data": {"method": "astp-bare"}},
    "rank-2": {"train": {"lora": {"r": 2}}},
}


@pytest.fixture
def arms(tiny_base: Path, tmp_path: Path) -> Path:
    """A config of three arms on the tiny base."""
    recipe = {
        "base": str(tiny_base), "dataset": "unused", "output_dir": "unused",
        "lora": {"r": 4, "alpha": 8}, "max_length": 4096,
        "trainer": {"max_steps": 2, "logging_steps": 1, "use_cpu": True},
    }  # fmt: skip
    files = {"data": DATA, "measured": MEASURED, "recipe": recipe}
    for name, content in files.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    config = {name: str(tmp_path / f"{name}.yaml") for name in files} | {"n": 3, "arms": ARMS}
    path = tmp_path / "arms.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return path


def ablate(config: Path, out: Path, *more: str) -> Any:
    words = ["ablate", "--config", str(config), "--out", str(out), "--engine", "transformers"]
    return CliRunner().invoke(app, [*words, "--quiet", *more])


def changed(config: Path, **keys: Any) -> Path:
    data = yaml.safe_load(config.read_text(encoding="utf-8")) | keys
    other = config.with_name("changed.yaml")
    other.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return other


@pytest.mark.slow
@pytest.mark.long
def test_each_arm_is_trained_and_asked_once(arms: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    alone = ablate(arms, out, "--arm", "rank-2")
    assert alone.exit_code == 0, alone.output
    told = read_json(out / "ablation.json")["arms"]
    assert list(told) == ["rank-2"] and told["rank-2"]["joint_difference"] is None

    ran = ablate(arms, out)
    assert ran.exit_code == 0, ran.output
    assert "arm reference" in ran.output and "arm rank-2" not in ran.output  # it is there already
    told = read_json(out / "ablation.json")["arms"]
    assert list(told) == list(ARMS)
    assert all(arm["steps"] == 2 and arm["joint"]["n"] == 3 for arm in told.values())
    assert told["bare"]["changes"] == {"data": {"method": "astp-bare"}}
    assert told["bare"]["joint_difference"] is not None
    settings = yaml.safe_load((out / "rank-2/train/config.resolved.yaml").read_text())
    assert settings["lora"]["r"] == 2 and settings["lora"]["alpha"] == 8
    assert sorted(path.name for path in (out / "data").iterdir()) == ["bare", "reference"]
    assert not list(out.glob("*/turns/model"))

    again = ablate(arms, out)
    assert again.exit_code == 0 and "arm " not in again.output.replace("arm  ", "")
    other = ablate(changed(arms, seed=1), out).exception
    assert isinstance(other, HaggleError) and "another config" in str(other)
    recipe = arms.with_name("recipe.yaml")
    recipe.write_text(recipe.read_text(encoding="utf-8").replace("r: 4", "r: 8"), encoding="utf-8")
    edited = ablate(arms, out).exception
    assert isinstance(edited, HaggleError) and "another config" in str(edited)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"arms": {"a": {"train": {"lora": {"rank": 2}}}}}, "lora.rank"),
        ({"arms": {"a": {"data": {"crops": 1}}}}, "crops"),
        ({"arms": {"a": {"trian": {}}}}, "trian"),
        ({"arms": {}}, "arms"),
        ({"arms": {"../a": {}}}, "arms"),
        ({"arms": {"a": {"data": {"method": "astp"}}}}, "astp"),
        ({"arms": {"a": {"data": {"train": 0, "test": 1}}}}, "train on"),
        ({"arms": {"a": {"train": {"method": "dpo"}}}}, "dpo"),
        ({"measured": "own"}, "test split"),
        ({"recipe": "smollm2_135n"}, "smollm2_135m"),
    ],
)
def test_a_wrong_key_is_told_before_any_arm_starts(
    keys: dict[str, Any], told: str, arms: Path, tmp_path: Path
) -> None:
    error = ablate(changed(arms, **keys), tmp_path / "out").exception
    assert isinstance(error, HaggleError) and told in str(error)
    assert not (tmp_path / "out").exists()


def test_an_unknown_arm_or_engine_is_told(arms: Path, tmp_path: Path) -> None:
    for more, told in (
        (("--arm", "bear"), "bare"),
        (("--engine", "gemini_flash"), "weights"),
    ):
        error = ablate(arms, tmp_path / "out", *more).exception
        assert isinstance(error, HaggleError) and told in str(error)


def test_changes_are_merged_key_by_key() -> None:
    base = {"lora": {"r": 16, "alpha": 32}, "seed": 7}
    assert merged(base, {"lora": {"r": 4}, "n": 1}) == {
        "lora": {"r": 4, "alpha": 32}, "seed": 7, "n": 1,
    }  # fmt: skip
    assert base["lora"] == {"r": 16, "alpha": 32}


@pytest.mark.parametrize(
    "path", sorted((CONFIGS / "ablation").glob("*.yaml")), ids=lambda p: p.stem
)
def test_shipped_ablations_are_valid(path: Path, tmp_path: Path) -> None:
    from pipeline.ablation import AblationConfig, prepared

    config = load_config(path, AblationConfig)
    assert f"haggle ablate --config {path.stem}" in path.read_text(encoding="utf-8")
    made = prepared(config, tmp_path)
    assert len({arm.train.output_dir for arm in made.values()}) == len(made)
    assert all(arm.measured.method == arm.data.method for arm in made.values())
    assert all(arm.measured.train == 0 for arm in made.values())
