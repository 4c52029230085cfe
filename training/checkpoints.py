"""Checkpoints in a run's directory: which there are, and which is whole."""

from __future__ import annotations

from pathlib import Path

from haggle.errors import HaggleError
from haggle.models import check_safetensors
from haggle.storage import read_json

PREFIX = "checkpoint-"


def step_of(checkpoint: Path) -> int:
    """The number of steps behind a checkpoint, by its name; -1 for what is none."""
    digits = checkpoint.name.removeprefix(PREFIX)
    return int(digits) if digits.isdigit() else -1


def last_checkpoint(run: Path) -> Path | None:
    """The newest checkpoint that was written to its end."""
    found = [path for path in run.glob(f"{PREFIX}*") if step_of(path) >= 0]
    for path in sorted(found, key=step_of, reverse=True):
        try:
            # The trainer writes its state last, so a readable one says that the rest is there.
            read_json(path / "trainer_state.json")
            for weights in path.glob("*.safetensors"):
                check_safetensors(weights)
        except (OSError, ValueError, HaggleError):
            continue
        return path
    return None
