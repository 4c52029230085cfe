"""A bundle on a bare machine: unpacked, trained, resumed, shipped; and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, read_jsonl, write_json
from haggle.weights.adapters import check_adapter
from haggle.weights.models import resolve_base
from pipeline import bundle_start
from pipeline.bundle import make_bundle
from pipeline.bundle_parts import pack, running_python
from pipeline.fresh import Recipe, fresh_pools
from training.fast_config import FastConfig

# What a machine with PyTorch and transformers alone does not have; the bundle brings some of it.
ABSENT = (
    "accelerate datasets peft trl gguf inflection platformdirs pydantic pydantic_core rapidfuzz "
    "annotated_types typing_inspection scipy pyarrow pandas matplotlib psutil xllamacpp outlines "
    "haggle serving data_gen training pipeline eval"
).split()
BARE = f"""
import sys
from importlib.machinery import PathFinder

ABSENT = {ABSENT!r}
found_by = list(sys.meta_path)

def brought(paths):
    return [path for path in paths if "bundle-work" in str(path)]

class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            return PathFinder.find_spec(name, brought(path or sys.path))
        specs = (finder.find_spec(name, path, target) for finder in found_by)
        return next((spec for spec in specs if spec is not None), None)

    def find_distributions(self, context):
        for found in PathFinder.find_distributions(context):
            own = brought([found.locate_file("")])
            if own or found.name.lower().replace("-", "_") not in ABSENT:
                yield found

sys.meta_path[:] = [Bare()]
"""
SHOP = {"items": [4, 5], "recommendation": 0.0, "invented": 0.0}


def quiet(_: str) -> None:
    """Nothing to say."""


def settings(base: Path, **changes: Any) -> FastConfig:
    fixed: dict[str, Any] = {
        "base": str(base), "seed": 5, "full_finetuning": True, "adapter_rank": 4,
        "max_length": 2048, "batch_tokens": 2048, "accumulate": 1, "learning_rate": 3e-3,
        "warmup_steps": 5, "minutes": 5, "max_steps": 40, "log_steps": 10, "average": 2,
        "save_minutes": 0.02, "pool": 16, "workers": 1, "data": SHOP,
        "fixed": [{"share": 0.25, "data": {"train": 0, "test": 0, "corpus": 1, "voices": ["terse"]}}],
        "held_out": {"dialogues": 4, "turns": 4, "batch": 4, "max_new_tokens": 16},
    }  # fmt: skip
    return FastConfig(**{**fixed, **changes})


@pytest.fixture(scope="module")
def made(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle in several parts."""
    out = tmp_path_factory.mktemp("bundles") / "bundle"
    make_bundle(settings(tiny_base), out, pythons=[running_python()], part_mb=1, echo=quiet)
    return out


@pytest.fixture
def bundle(made: Path, tmp_path: Path) -> Path:
    """A copy of it to do harm to."""
    return Path(shutil.copytree(made, tmp_path / "bundle"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine with PyTorch and transformers alone."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "sitecustomize.py").write_text(BARE, encoding="utf-8")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "HAGGLE"))}
    return kept | {"PYTHONPATH": str(folder), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def run(bare: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a bundle as its user does."""

    def call(bundle: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        folders = ["--work", str(tmp_path / "bundle-work"), "--run", str(tmp_path / "run")]
        command = [sys.executable, str(bundle / "run.py"), *folders, *arguments]
        return subprocess.run(
            command,
            env=bare,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )

    return call


def test_a_bare_machine_trains_resumes_and_ships(
    made: Path, run: Any, tmp_path: Path, tiny_base: Path
) -> None:
    first = run(made, "--stop-after", "0.001", "--results", str(tmp_path / "out"))
    assert first.returncode == 0, first.stderr
    assert "Unpacked" in first.stdout and "the same command again goes on" in first.stdout
    early = read_json(tmp_path / "out" / "run" / "result.json")
    assert not early["over"] and early["steps"] == 1 and early["adapter"]["rank"] == 4

    second = run(made, "--results", str(tmp_path / "out"))
    assert second.returncode == 0, second.stderr
    assert "Going on from step 1" in second.stdout
    assert "Unpacked" not in second.stdout
    result = read_json(tmp_path / "run" / "result.json")
    assert result["over"] and result["steps"] == 40 and result["device"] == "CPU"
    assert result["base_as_made"] is True
    assert result["accuracy"]["n"] == result["adapter_accuracy"]["n"] == 4
    assert {"joint", "state"} <= result["accuracy"].keys()
    assert result["held_out_loss"] < early["held_out_loss"]

    base = resolve_base(str(tiny_base), echo=quiet)
    check_adapter(tmp_path / "run" / "adapter", base)
    sent = tmp_path / "out" / "run"
    assert {p.name for p in sent.iterdir()} == {
        "result.json", "metrics.jsonl", "adapter.tar.gz-000",
    }  # fmt: skip
    with tarfile.open(sent / "adapter.tar.gz-000") as archive:
        assert "adapter_model.safetensors" in archive.getnames()
    steps = [line["step"] for line in read_jsonl(sent / "metrics.jsonl")]
    assert steps == sorted(steps) and steps[-1] == 40

    config = tmp_path / "bundle-work" / "config.json"
    told = read_json(config)
    write_json(config, {**told, "data": {**told["data"], "noise": 1.0}})
    other = run(made)
    assert other.returncode == 2 and "began with other data: data, generator_sha256" in other.stderr


def test_parts_are_small_and_hold_what_the_manifest_says(made: Path, run: Any) -> None:
    manifest = read_json(made / "manifest.json")
    assert len(manifest["parts"]) > 2
    assert all(part["bytes"] <= 1_000_000 for part in manifest["parts"])
    assert manifest["rows"]["held_out"] == 4 and manifest["rows"]["fixed-0"] > 4
    checked = run(made, "--check")
    assert checked.returncode == 0 and "all whole" in checked.stdout


def test_a_missing_a_cut_and_an_altered_part_are_told(bundle: Path, run: Any) -> None:
    (bundle / "part-001").unlink()
    with (bundle / "part-000").open("r+b") as file:
        file.write(b"another")
    last = sorted(bundle.glob("part-*"))[-1]
    last.write_bytes(last.read_bytes()[:-5])
    outcome = run(bundle)
    assert outcome.returncode == 2
    for told in ("part-000: altered", "part-001: missing", f"{last.name}: "):
        assert told in outcome.stderr
    assert not (bundle.parent / "bundle-work").exists()


def test_another_python_and_a_torn_manifest_are_told(bundle: Path, run: Any) -> None:
    manifest = read_json(bundle / "manifest.json")
    write_json(bundle / "manifest.json", {**manifest, "pythons": ["cp399"]})
    assert f"--python {running_python()}" in run(bundle).stderr
    text = (bundle / "manifest.json").read_text(encoding="utf-8")
    (bundle / "manifest.json").write_text(text[:40], encoding="utf-8")
    assert "no manifest" in run(bundle).stderr


def test_what_is_no_bundle_is_not_overwritten(tiny_base: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept", encoding="utf-8")
    with pytest.raises(HaggleError, match="no bundle"):
        make_bundle(settings(tiny_base), tmp_path, pythons=[running_python()], echo=quiet)
    assert (tmp_path / "mine.txt").is_file()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"data": {"itemz": [1, 2]}}, "itemz"),
        ({"data": {"teacher": {"engine": "openai"}}}, "while another trains"),
        ({"fixed": [{"share": 0.1, "dataset": "nowhere"}]}, "no such dataset"),
        ({"held_out": {"data": {"noise": 9}}}, "noise"),
    ],
)
def test_a_config_of_which_nothing_can_be_made_is_told(
    changes: dict[str, Any], told: str, tiny_base: Path, tmp_path: Path
) -> None:
    with pytest.raises(HaggleError, match=told):
        config = settings(tiny_base, **changes)
        make_bundle(config, tmp_path / "out", pythons=[running_python()], echo=quiet)
    assert not (tmp_path / "out").exists()


def test_a_wheel_that_is_not_there_is_named(tiny_base: Path, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with pytest.raises(HaggleError, match=r"no wheel of pydantic_core .* Python 3\.99"):
        make_bundle(
            settings(tiny_base), tmp_path / "out", pythons=["3.99"], wheels=wheels, echo=quiet
        )


def test_rows_do_not_depend_on_how_many_make_them(tiny_base: Path) -> None:
    from data_gen.config import DataConfig

    recipe = Recipe(DataConfig(**SHOP), tiny_base, 2048, "cut", 1.0)
    found = []
    for workers in (0, 2):
        with fresh_pools(recipe, 40, workers) as pools:
            found.append([pools(pool) for pool in (3, 4)])
    assert found[0] == found[1]
    first, second = ({tuple(row.ids) for row in pool} for pool in found[0])
    assert len(first) == len(second) == 40 and not first & second


def test_the_same_files_give_the_same_parts(tmp_path: Path) -> None:
    def packed(name: str) -> Iterator[dict[str, Any]]:
        source = tmp_path / name
        source.mkdir()
        for number in range(3):
            (source / f"{number}.bin").write_bytes(os.urandom(0) + bytes([number]) * 5000)
        (tmp_path / f"{name}-out").mkdir()
        yield from pack(source, tmp_path / f"{name}-out", "part", 100)

    one, two = list(packed("one")), list(packed("two"))
    assert json.dumps(one) == json.dumps(two) and len(one) > 1
    joined = bundle_start.Joined([tmp_path / "one-out" / part["name"] for part in one])
    assert len(joined.readall()) == sum(part["bytes"] for part in one)
