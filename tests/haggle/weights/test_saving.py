"""Weights on disk: a model's directory is whole, or it is not there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from haggle.weights import saving
from haggle.weights.saving import write_model


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are files with their own name, so that no torch is needed."""
    monkeypatch.setattr(saving, "save_model_bf16", lambda model, folder: (folder / model).touch())


def test_a_model_is_written_with_its_tokenizer(tmp_path: Path) -> None:
    tokenizer = SimpleNamespace(save_pretrained=lambda folder: (folder / "tokenizer").touch())
    write_model(tmp_path / "made", "model", tokenizer)
    assert {path.name for path in (tmp_path / "made").iterdir()} == {"model", "tokenizer"}


def test_a_model_that_is_cut_off_is_not_there(tmp_path: Path) -> None:
    def full(folder: Path) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write_model(tmp_path / "made", "model", SimpleNamespace(save_pretrained=full))
    assert not (tmp_path / "made").exists()
