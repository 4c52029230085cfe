"""Sets of task definitions, and how they are split by task (PCA, 6.1)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from haggle.core.errors import HaggleError
from haggle.sop.definition import Definition
from haggle.sop.pca_d import read_definition
from haggle.sop.task import load_task

STATED = (31, 5, 17)  # tasks for training, validation and test, of 53 (PCA, Table 3)


def load_definitions(folder: str | Path) -> dict[str, Definition]:
    """The tasks of a directory by file name: public ones (JSON) and our own (YAML).

    Raises HaggleError for a file that is none, and where there are none.
    """
    files = sorted(path for path in Path(folder).glob("*.*") if path.suffix in {".json", ".yaml"})
    if not files:
        raise HaggleError(
            "holds no task (*.json, *.yaml)", where=str(folder), hint="check the path"
        )
    return {path.stem: _definition(path) for path in files}


def _definition(path: Path) -> Definition:
    return read_definition(path) if path.suffix == ".json" else load_task(str(path))


def in_folds(names: Sequence[str], folds: int, seed: int) -> list[list[str]]:
    """Names in groups of about one size, drawn by chance."""
    drawn = sorted(names)
    random.Random(seed).shuffle(drawn)
    return [sorted(drawn[fold::folds]) for fold in range(folds)]


def three_ways(names: Sequence[str], seed: int) -> tuple[list[str], list[str], list[str]]:
    """Names for training, validation and test, drawn by chance, in the shares of `STATED`."""
    drawn = sorted(names)
    random.Random(seed).shuffle(drawn)
    whole = sum(STATED)
    first = round(len(drawn) * STATED[0] / whole)
    second = round(len(drawn) * (STATED[0] + STATED[1]) / whole)
    return sorted(drawn[:first]), sorted(drawn[first:second]), sorted(drawn[second:])
