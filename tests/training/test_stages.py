"""Recipes that extend others and have several stages: what they come to, what is refused."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from data_gen.config import DataConfig, check
from haggle.cli import app, main
from haggle.core.config import CONFIGS, ROOT, parse
from haggle.core.errors import HaggleError
from training.config import DpoConfig
from training.recipes import check_sources, later_versions, load_stages, load_train_config

LINEAGE = CONFIGS / "train" / "shipped.yaml"


def write(path: Path, **data: Any) -> Path:
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return path


def test_a_recipe_is_laid_over_the_file_it_extends(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    write(tmp_path / "shared" / "base.yaml", seed=5, trainer={"save_steps": 7, "max_steps": 2})
    middle = {"extends": "shared/base.yaml", "dataset": "d", "trainer": {"max_steps": 3}}
    write(tmp_path / "middle.yaml", **middle)
    write(tmp_path / "run.yaml", extends="middle.yaml", output_dir="o", dataset="other")
    config = load_train_config(tmp_path / "run.yaml")
    assert (config.seed, config.dataset) == (5, Path("other"))
    assert config.trainer == {"save_steps": 7, "max_steps": 3}


def test_a_file_that_is_not_there_cannot_be_extended(tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", seed=5)
    path = write(tmp_path / "run.yaml", extends="bsae.yaml", dataset="d", output_dir="o")
    with pytest.raises(HaggleError, match=r"extends: no such file: .*bsae.yaml") as caught:
        load_train_config(path)
    assert caught.value.where == str(path) and "'base.yaml'" in caught.value.hint
    with pytest.raises(HaggleError, match=r"extends: must be the path of one file \(got \['x'\]"):
        load_train_config(write(path, extends=["x"]))


def test_files_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "one.yaml", extends="two.yaml")
    write(tmp_path / "two.yaml", extends="one.yaml")
    with pytest.raises(HaggleError, match=r"circle: one.yaml -> two.yaml -> one.yaml") as caught:
        load_train_config(tmp_path / "one.yaml")
    assert caught.value.where == str(tmp_path / "two.yaml")


def staged(folder: Path, **stages: Any) -> Path:
    top = {"dataset": "data", "output_dir": str(folder / "runs"), "data": {"train": 3, "seed": 1}}
    return write(folder / "stages.yaml", **top, trainer={"max_steps": 2}, stages=stages)


def test_a_stage_goes_on_from_the_one_before(tmp_path: Path) -> None:
    path = staged(
        tmp_path,
        first={"seed": 8, "data": {"seed": 2}},
        pairs={"method": "dpo", "dataset": "pairs", "trainer": {"beta": 0.5}},
        anew={"start_from": None, "about": {"version": "2", "commit": "abc"}},
    )
    first, pairs, anew = load_stages(path)
    assert first.config.output_dir == tmp_path / "runs" / "first" and first.config.seed == 8
    assert first.config.start_from is None and first.data == {"train": 3, "seed": 2}
    assert isinstance(pairs.config, DpoConfig) and pairs.data == {}
    assert pairs.config.start_from == tmp_path / "runs" / "first" / "adapter"
    assert pairs.config.trainer == {"max_steps": 2, "beta": 0.5}
    assert anew.config.start_from is None and anew.about.commit == "abc"
    assert load_stages(path, "pairs") == [pairs]


@pytest.mark.parametrize(
    ("change", "words", "hint"),
    [
        ({"sead": 1}, "unknown key 'sead'", "'seed'"),
        ({"trainer": {"max_step": 1}}, "unknown key 'trainer.max_step'", "'max_steps'"),
        ({"about": {"comit": "x"}}, "unknown key 'comit'", "'commit'"),
        ({"method": "ppo"}, "unknown method 'ppo'", "'dpo'"),
        ("nothing", "must be a plain name", ""),
    ],
)
def test_a_mistake_in_a_stage_is_told_with_its_name(
    tmp_path: Path, change: Any, words: str, hint: str
) -> None:
    path = staged(tmp_path, first={}, second=change)
    with pytest.raises(HaggleError, match=words) as caught:
        load_stages(path)
    assert caught.value.where.startswith(f"{path}: stages.second")
    assert hint in caught.value.hint


def test_a_stage_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = staged(tmp_path, first={}, second={})
    with pytest.raises(HaggleError, match="no stage is named 'third'") as caught:
        load_stages(path, "third")
    assert "first, second" in caught.value.hint
    with pytest.raises(HaggleError, match="recipe of several runs"):
        load_train_config(path)
    with pytest.raises(HaggleError, match="stages: must be names"):
        load_stages(write(path, dataset="d", output_dir="o", stages=[]))


def test_missing_data_of_a_later_stage_are_told_before_the_first_is_trained(
    tmp_path: Path, tiny_dataset: Path
) -> None:
    path = staged(
        tmp_path,
        first={"dataset": str(tiny_dataset)},
        second={"dataset": str(tmp_path / "none"), "data": {}},
    )
    with pytest.raises(HaggleError, match=r"dataset: .*none") as caught:
        check_sources(load_stages(path))
    assert caught.value.where == f"{path}: stages.second"
    assert caught.value.hint == f"haggle generate --config {path} --stage second"
    third = staged(tmp_path, first={"dataset": str(tiny_dataset)}, third={})
    with pytest.raises(HaggleError, match="start_from: no such adapter"):
        alone = [load_stages(third)[1]]
        alone[0] = load_stages(staged(tmp_path, a={}, b={"dataset": str(tiny_dataset)}), "b")[0]
        check_sources(alone)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=True)


@pytest.fixture
def two_stages(tmp_path: Path, tiny_base: Path, tiny_dataset: Path) -> Path:
    trainer = {"max_steps": 2, "save_steps": 1, "bf16": False, "disable_tqdm": True}
    data = tmp_path / "data"
    shutil.copytree(tiny_dataset, data)
    return write(
        tmp_path / "two.yaml",
        base=str(tiny_base), dataset=str(data), output_dir=str(tmp_path / "runs"), max_length=512,
        trainer=trainer, stages={"first": {"seed": 1}, "second": {"seed": 2}},
    )  # fmt: skip


def test_stages_are_trained_one_after_the_other_and_once(two_stages: Path) -> None:
    done = run("train", "--config", str(two_stages))
    assert done.exit_code == 0, done.output
    runs = two_stages.with_name("runs")
    stored = yaml.safe_load((runs / "second" / "config.resolved.yaml").read_text(encoding="utf-8"))
    assert stored["start_from"] == str(runs / "first" / "adapter")
    assert "adapter_sha256" in stored["resolved"]
    again = run("train", "--config", str(two_stages))
    assert again.output.count("Already finished") == 2
    # The first stage trained anew is another start: the second would be another run.
    run("train", "--config", str(two_stages), "--stage", "first", "--fresh")
    weights = runs / "first" / "adapter" / "adapter_model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    refused = run("train", "--config", str(two_stages), "--stage", "second")
    assert isinstance(refused.exception, HaggleError)
    assert "resolved.adapter_sha256" in refused.exception.message


def test_a_stage_resumed_with_other_settings_or_data_is_refused(two_stages: Path) -> None:
    assert run("train", "--config", str(two_stages), "--stage", "first").exit_code == 0
    text = two_stages.read_text(encoding="utf-8")
    two_stages.write_text(text.replace("seed: 1", "seed: 9"), encoding="utf-8")
    other = run("train", "--config", str(two_stages), "--stage", "first")
    assert isinstance(other.exception, HaggleError)
    assert "other settings: seed" in other.exception.message
    two_stages.write_text(text, encoding="utf-8")
    rows = two_stages.with_name("data") / "train.jsonl"
    lines = rows.read_text(encoding="utf-8").splitlines(keepends=True)
    rows.write_text("".join(lines[1:]), encoding="utf-8")
    fewer = run("train", "--config", str(two_stages), "--stage", "first")
    assert isinstance(fewer.exception, HaggleError)
    assert "resolved.data_sha256" in fewer.exception.message


def test_one_data_set_for_all_stages_is_refused(
    two_stages: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["haggle", "train", "--config", str(two_stages), "--dataset", "x"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit):
        main()
    assert "--stage: first, second" in capsys.readouterr().err


def test_the_lineage_names_what_each_version_was() -> None:
    stages = load_stages(LINEAGE)
    assert [stage.about.version for stage in stages] == ["", "4", "5", "6", "", "7"]
    for stage in stages:
        check(parse(stage.data, DataConfig, stage.where))
        assert {"tokens", "time", "loss"} <= stage.about.figures.keys()
        assert bool(stage.about.commit) == bool(stage.about.version)
        assert f"`{stage.name}`" in (ROOT / "docs" / "log.md").read_text(encoding="utf-8")
    shipped = yaml.safe_load(
        (ROOT / "models" / "merchant-smollm2-135m" / "train.yaml").read_text(encoding="utf-8")
    )
    now = json.loads(stages[-1].config.model_dump_json())
    same = ("base", "seed", "lora", "max_length", "overlong", "spoken_weight", "max_minutes")
    assert {key: now[key] for key in same} == {key: shipped[key] for key in same}
    assert stages[-1].config.settings | shipped["trainer"] == stages[-1].config.settings


def test_the_lineage_goes_on_to_the_version_that_ships() -> None:
    later = later_versions(LINEAGE)
    assert [about.version for about in later] == ["8", "9", "10", "11"]
    log = (ROOT / "docs" / "log.md").read_text(encoding="utf-8")
    for about in later:
        (LINEAGE.parent / about.recipe).resolve(strict=True)
        assert {"tokens", "time", "hand-written", "held-out"} <= about.figures.keys()
        assert re.fullmatch(r"[0-9a-f]{7}", about.commit)
        joint, _, interval = about.figures["hand-written"].partition(" ")
        assert f"| {joint} {interval} |" in log
    shipped = [stage.config for stage in load_stages(LINEAGE.parent / later[-1].recipe)]
    assert Path("models/merchant-smollm2-135m-stepwise/adapter") in {c.start_from for c in shipped}


def test_a_mistake_in_a_later_version_is_told_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "run.yaml", later=[{"version": "8"}, {"comit": "x"}])
    with pytest.raises(HaggleError, match="unknown key 'comit'") as caught:
        later_versions(path)
    assert caught.value.where == f"{path}: later[1]"


def test_data_of_a_stage_are_generated_where_it_looks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = staged(
        tmp_path, first={"data": {"items": [4, 6], "test": 1}, "dataset": "made"}, bare={}
    )
    done = run("generate", "--config", str(path), "--stage", "first", "--quiet")
    assert done.exit_code == 0, done.output
    assert list((tmp_path / "made").glob("train*"))
    bare = run("generate", "--config", str(path), "--stage", "bare")
    assert isinstance(bare.exception, HaggleError) and "names no data" in bare.exception.message
