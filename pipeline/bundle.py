"""A training run as one directory for a bare machine: `haggle bundle`.

    haggle bundle --config fast --out runs/bundle --python 3.12
    python runs/bundle/run.py --minutes 20        # there

In it are base model, packages, code and data in parts of bounded size, a manifest with the sum of
each, and `run.py` (`pipeline/bundle_start.py`), which needs PyTorch and transformers alone.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from data_gen.config import DataConfig, check, override
from data_gen.generate import generate
from data_gen.opening import open_source
from haggle import __version__
from haggle.core.config import ROOT, located, parse
from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_dir, read_json, write_json, write_jsonl
from haggle.dataset import located_rows
from haggle.weights.adapters import check_adapter
from haggle.weights.gguf_file import SOURCE_FILE, unpack_weights
from haggle.weights.models import BaseModel, resolve_base
from pipeline import bundle_start
from pipeline.bundle_parts import MB, copy_packages, pack, tag_of
from pipeline.bundle_run import WEIGHTS, weight_names, weights_sum
from training.data import messages_in
from training.fast_config import FastConfig, FixedRows

ROOMS = ("haggle", "serving", "data_gen", "training", "pipeline", "configs")
Weights = Literal["auto", "gguf", "safetensors"]
Echo = Callable[[str], None]


def make_bundle(
    config: FastConfig,
    out: Path,
    *,
    pythons: Sequence[str],
    wheels: Path | None = None,
    part_mb: float = 60,
    weights: Weights = "auto",
    echo: Echo = print,
) -> dict[str, Any]:
    """Write the bundle of a run to `out`, in the place of one that is there; returns its manifest.

    `pythons` are the versions of Python that it is for. Raises HaggleError for a config that no run
    can be made of, and where `out` holds something else.
    """
    tags = [tag_of(python) for python in pythons]
    data, held_out = data_configs(config)
    _check_target(out)
    base = resolve_base(config.base, echo=echo)
    echo(f"Base: {base.describe()}")
    if config.start_from is not None:
        check_adapter(config.start_from, base)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".bundle-") as folder:
        stage = Path(folder)
        _copy_code(stage / "code")
        copy_packages(stage / "site", pythons, wheels)
        _copy_base(base, stage, weights)
        if config.start_from is not None:
            shutil.copytree(config.start_from, stage / "start")
        told = _write_data(config, held_out, stage / "data", echo)
        write_json(stage / "config.json", _inside(config, data))
        echo("Packing ...")
        with atomic_dir(out) as directory:
            parts = pack(stage, directory, "part", int(part_mb * MB))
            manifest = {
                "haggle": __version__,
                "pythons": tags,
                "rows": told,
                "parts": parts,
            }
            write_json(directory / bundle_start.MANIFEST, manifest)
            shutil.copyfile(bundle_start.__file__, directory / "run.py")
    size = sum(part["bytes"] for part in parts)
    echo(f"{out}: {len(parts)} parts, {size / MB:.0f} MB")
    return manifest


def data_configs(config: FastConfig) -> tuple[DataConfig, DataConfig]:
    """What fresh and held-out dialogues are made from. Raises HaggleError for what cannot be."""
    with located("data"):
        data = _scripted(config.data)
    with located("held_out.data"):
        changes = {**config.held_out.data, "test": config.held_out.dialogues}
        held_out = override(data, **changes)
        check(held_out)
    return data, held_out


def _scripted(told: dict[str, Any]) -> DataConfig:
    """A data config without models. Raises HaggleError for one with."""
    data = parse(told, DataConfig, "data")
    check(data)
    if not data.scripted:
        raise HaggleError(
            "a model cannot make dialogues while another trains",
            hint="leave teacher and player out; put what models wrote under `fixed`",
        )
    return data


def _check_target(out: Path) -> None:
    """Raise HaggleError where `out` holds something that is no bundle."""
    held = out.exists() and (not out.is_dir() or any(out.iterdir()))
    if held and not (out / bundle_start.MANIFEST).is_file():
        raise HaggleError("is no bundle, and not empty", where=str(out), hint="choose another")
    if (out / "run").exists():
        raise HaggleError(
            "a run lies in there", where=str(out / "run"), hint="move it, or choose another --out"
        )


def _copy_code(target: Path) -> None:
    """Copy the rooms that a run needs, with the data beside their code."""
    skip = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
    for room in ROOMS:
        shutil.copytree(ROOT / room, target / room, ignore=skip)


def _copy_base(base: BaseModel, stage: Path, weights: Weights) -> None:
    """Put the base model in: its GGUF, a third of the size, where it was unpacked from one and
    unpacks to the very same weights."""
    facts = {
        "name": base.name,
        "licence": base.licence,
        "sha256": weights_sum(base.path),
        "tensors": weight_names(base.path),
    }
    write_json(stage / "base.json", facts)
    target, note = stage / "base", base.path / SOURCE_FILE
    shutil.copytree(base.path, target, ignore=shutil.ignore_patterns("*.gguf", "*.safetensors"))
    source = Path(read_json(note).get("gguf", "")) if note.is_file() else Path()
    if source.suffix == ".gguf" and source.is_file() and weights != "safetensors":
        unpack_weights(source, target / WEIGHTS, facts["tensors"])
        same = weights_sum(target) == facts["sha256"]
        (target / WEIGHTS).unlink()
        if same:
            shutil.copyfile(source, target / "model.gguf")
            return
    if weights == "gguf":
        raise HaggleError(
            "the base is not what a GGUF unpacks to", where=str(base.path), hint="--weights auto"
        )
    for file in base.path.glob("*.safetensors"):
        shutil.copyfile(file, target / file.name)


def _write_data(
    config: FastConfig, held_out: DataConfig, folder: Path, echo: Echo
) -> dict[str, int]:
    """Write held-out dialogues and fixed rows; returns how many of each."""
    echo(f"Making {config.held_out.dialogues} held-out dialogues ...")
    rows = open_source(held_out).rows("test", range(config.held_out.dialogues))
    counts = {"held_out": _write(folder / "held_out.jsonl", (row["messages"] for row in rows))}
    for number, fixed in enumerate(config.fixed):
        with located(f"fixed[{number}]"):
            counts[f"fixed-{number}"] = _write_fixed(fixed, folder, number, echo)
    return counts


def _write_fixed(fixed: FixedRows, folder: Path, number: int, echo: Echo) -> int:
    file = folder / f"fixed-{number}.jsonl"
    if fixed.dataset is not None:
        return _write(file, _messages(fixed.dataset, fixed.split))
    echo(f"Making fixed[{number}] ...")
    with tempfile.TemporaryDirectory() as made:
        generate(_scripted(fixed.data), Path(made) / "rows", progress=False)
        return _write(file, _messages(Path(made) / "rows", fixed.split))


def _messages(dataset: Path, split: str) -> Iterable[list[dict[str, str]]]:
    for where, row in located_rows(dataset, split, ["messages"]):
        yield messages_in(row, "messages", where)


def _write(file: Path, dialogues: Iterable[list[dict[str, str]]]) -> int:
    """Write dialogues as rows of messages; returns how many. Raises HaggleError for none."""
    rows = [{"messages": messages} for messages in dialogues]
    if not rows:
        raise HaggleError("no dialogue is in it")
    write_jsonl(file, rows)
    return len(rows)


def _inside(config: FastConfig, data: DataConfig) -> dict[str, Any]:
    """The config as it stands in the bundle: what it named lies in there."""
    told: dict[str, Any] = json.loads(config.model_dump_json())
    told["data"] = data.model_dump(mode="json")
    told["held_out"]["data"] = {}
    told["start_from"] = "start" if config.start_from is not None else None
    for number, fixed in enumerate(told["fixed"]):
        fixed |= {"dataset": f"data/fixed-{number}.jsonl", "split": "train", "data": {}}
    return told
