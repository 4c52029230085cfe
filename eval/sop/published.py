"""What the PCA paper reports (`published.yaml`), to stand beside our own figures."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from haggle.core.config import Record, load_config

FILE = Path(__file__).parent / "published.yaml"


class Automatic(Record):
    """A row of Table 5: accuracies of turns, SOP actions, proactive actions and whole dialogues, in
    percent, and BLEU."""

    model: str
    method: str
    acc_t: float
    acc_c: float
    acc_p: float
    acc_d: float
    bleu_2: float
    bleu_4: float


class Human(Record):
    """A row of Table 6: judged by people, in percent; tokens of a turn."""

    model: str
    method: str
    controllability: float
    knowledge: float
    proactivity: float
    goal: float
    coherence: float
    tokens: int


class Predicted(Record):
    """A row of Table 4: predicted procedures, in percent; `ged` in vertices and edges."""

    model: str
    method: str
    path_precision: float
    path_recall: float
    path_f1: float
    ged: float
    gedr: float


class Published(Record):
    """`published.yaml`."""

    schema_version: int
    paper: str
    predicted: list[Predicted]
    automatic: list[Automatic]
    human: list[Human]


@cache
def load_published(path: Path = FILE) -> Published:
    """Read the published figures. Raises HaggleError naming file and field."""
    return load_config(path, Published)


def published(method: str) -> list[Predicted | Automatic | Human]:
    """The paper's figures for a method, of each table that has it; none for best-of-k and `order`,
    which are ours."""
    found = load_published()
    rows: list[Predicted | Automatic | Human] = [*found.predicted, *found.automatic, *found.human]
    return [row for row in rows if row.method == method]
