"""A run's directory: the names in it, which checkpoints there are, and which is whole."""

from __future__ import annotations

from pathlib import Path

from haggle.core.errors import HaggleError
from haggle.core.storage import read_json
from haggle.weights.models import check_safetensors

PREFIX = "checkpoint-"
CONFIG_FILE = "config.resolved.yaml"
METRICS_FILE = "metrics.jsonl"
RESULT_FILE = "result.json"


def step_of(checkpoint: Path) -> int:
    """The number of steps behind a checkpoint, by its name; -1 for what is none."""
    digits = checkpoint.name.removeprefix(PREFIX)
    return int(digits) if digits.isdigit() else -1


def last_checkpoint(run: Path) -> Path | None:
    """The newest checkpoint that was written to its end."""
    found = whole_checkpoints(run)
    return found[-1][1] if found else None


def whole_checkpoints(run: Path) -> list[tuple[int, Path]]:
    """The checkpoints that were written to their end, each with its steps, the earliest first."""
    found = sorted((step_of(path), path) for path in run.glob(f"{PREFIX}*"))
    return [(step, path) for step, path in found if step >= 0 and _whole(path)]


def _whole(checkpoint: Path) -> bool:
    try:
        # The trainer writes its state last, so a readable one says that the rest is there.
        read_json(checkpoint / "trainer_state.json")
        for weights in checkpoint.glob("*.safetensors"):
            check_safetensors(weights)
    except (OSError, ValueError, HaggleError):
        return False
    return True
