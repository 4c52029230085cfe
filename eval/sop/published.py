"""What the PCA paper reports of dialogues (`published.yaml`), to stand beside our own figures."""

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


class Published(Record):
    """`published.yaml`."""

    schema_version: int
    paper: str
    automatic: list[Automatic]
    human: list[Human]


@cache
def load_published(path: Path = FILE) -> Published:
    """Read the published figures. Raises HaggleError naming file and field."""
    return load_config(path, Published)


def published(method: str) -> list[Automatic | Human]:
    """The paper's figures for a method, of both tables; none for best-of-k, which is ours."""
    found = load_published()
    rows: list[Automatic | Human] = [*found.automatic, *found.human]
    return [row for row in rows if row.method == method]
