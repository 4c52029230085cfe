"""The trainer's throughput beside a bare loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haggle.core.errors import HaggleError
from training.benchmark import GOAL, benchmark, main


def test_both_loops_are_timed_over_the_same_tokens(
    tiny_base: Path, tiny_dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "figures.json"
    options = f"--dataset {tiny_dataset} --base {tiny_base} --steps 2 --rounds 2 --batch-size 2"
    monkeypatch.setattr("sys.argv", ["benchmark", *options.split(), "--json", str(out)])
    code = main()
    found = json.loads(out.read_text(encoding="utf-8"))
    assert len(found["trainer"]) == len(found["bare"]) == 2
    assert all(speed > 0 for speed in (*found["trainer"], *found["bare"]))
    assert found["tokens_per_round"] > 0 and code == int(found["ratio"] < GOAL)


def test_too_few_dialogues_are_told(tiny_base: Path, tiny_dataset: Path) -> None:
    with pytest.raises(HaggleError, match="24 dialogues are too few for 13 batches of 2"):
        benchmark(tiny_dataset, str(tiny_base), steps=13, batch_size=2)
