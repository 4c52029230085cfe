"""Adapters that grew from one are averaged."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from haggle.core.errors import HaggleError
from training.average import WEIGHTS, average


def adapter(folder: Path, **weights: list[float]) -> Path:
    """An adapter with these weights in bf16, and a note of its name."""
    folder.mkdir()
    save_file({k: torch.tensor(v, dtype=torch.bfloat16) for k, v in weights.items()},
              folder / WEIGHTS)  # fmt: skip
    (folder / "haggle_adapter.json").write_text(folder.name, encoding="utf-8")
    return folder


def test_weights_are_the_means_and_notes_the_last_ones(tmp_path: Path) -> None:
    one, two = adapter(tmp_path / "one", a=[1.0, 2.0]), adapter(tmp_path / "two", a=[3.0, 6.0])
    average([one, two], tmp_path / "mean")
    found = load_file(tmp_path / "mean" / WEIGHTS)
    assert found["a"].tolist() == [2.0, 4.0] and found["a"].dtype == torch.bfloat16
    assert (tmp_path / "mean" / "haggle_adapter.json").read_text(encoding="utf-8") == "two"


def test_adapters_of_other_shapes_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    one, two = adapter(tmp_path / "one", a=[1.0, 2.0]), adapter(tmp_path / "two", a=[3.0])
    with pytest.raises(HaggleError, match="no average with one"):
        average([one, two], tmp_path / "mean")
    with pytest.raises(HaggleError, match="no adapter_model"):
        average([one, tmp_path], tmp_path / "mean")
    assert not (tmp_path / "mean").exists()
