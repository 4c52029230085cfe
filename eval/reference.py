"""What the ASTP and SIBP papers report (`reference.yaml`), to stand beside our own figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from haggle.core.config import Record, load_config
from haggle.core.errors import HaggleError, nearest

FILE = Path(__file__).parent / "reference.yaml"


class Paper(Record):
    """How a paper measured."""

    dialogues: int
    model: str
    temperature: float
    thinking_budget: int
    measured: str | None = None
    note: str = ""


class Derived(Record):
    """A number that follows from others of the same paper, and how."""

    field: str
    value: float
    how: str


class Row(Record):
    """What every published figure says about itself. `method` is our name of it, if we have it."""

    name: str
    paper: str
    source: str
    method: str | None
    model: str
    scenario: str


class StcrRow(Row):
    """State transition compliance, in percent of `n` dialogues that reached the sale."""

    elements: list[int]
    n: int
    stcr: float


class SirrRow(Row):
    """Sellable item response rate, in percent of `n` trade answers."""

    n: int
    sirr: float
    no_item_information: float | None = None


class Spread(Record):
    """Mean and standard deviation; None where the paper's cell cannot be read."""

    mean: float | None
    sd: float | None


class Cell(Record):
    """Price accuracy in percent, tokens per answer and seconds, of `n` answers."""

    n: int | None
    price_accuracy: float | None
    completion_tokens: Spread
    thought_tokens: Spread
    time_s: Spread


class Configuration(Row):
    """A row of the papers' Table 2."""

    offer_sell: Cell
    others: Cell
    derived: list[Derived] = []
    note: str = ""


class DialogueLength(Record):
    """Rounds per dialogue."""

    paper: str
    source: str
    scenario: str
    n: int
    mean: float
    sd: float
    min: int
    max: int


class Transitions(Row):
    """Counts of transitions, row = previous state; None where a cell cannot be read."""

    dialogues: int
    labels: list[str]
    counts: list[list[int | None]]
    derived: list[Derived] = []


class Reference(Record):
    """`reference.yaml`."""

    schema_version: int
    papers: dict[str, Paper]
    scenarios: dict[str, str]
    stcr: list[StcrRow]
    sirr: list[SirrRow]
    configurations: list[Configuration]
    dialogue_length: list[DialogueLength]
    transitions: list[Transitions]


@dataclass
class Published:
    """One method and model of a paper on one scenario, from all of its tables."""

    name: str
    paper: str
    method: str | None
    model: str
    sources: list[str] = field(default_factory=list)
    stcr: StcrRow | None = None
    sirr: SirrRow | None = None
    table: Configuration | None = None


@cache
def load_reference(path: Path = FILE) -> Reference:
    """Read and check the published figures. Raises HaggleError naming file and field."""
    reference = load_config(path, Reference)
    rows: Iterable[Row | DialogueLength] = (
        *reference.stcr, *reference.sirr, *reference.configurations,
        *reference.dialogue_length, *reference.transitions,
    )  # fmt: skip
    for row in rows:
        for key, value, known in (
            ("paper", row.paper, reference.papers),
            ("scenario", row.scenario, reference.scenarios),
        ):
            if value not in known:
                hint = nearest(value, known)
                raise HaggleError(f"unknown {key} {value!r}", where=str(path), hint=hint)
    for table in reference.transitions:
        size = len(table.labels)
        if len(table.counts) != size or any(len(line) != size for line in table.counts):
            raise HaggleError(
                f"transitions of {table.source} are not {size} by {size}",
                where=str(path),
                hint="give one row and one column per label",
            )
    return reference


def published(scenario: str, reference: Reference | None = None) -> list[Published]:
    """The published figures on a scenario of ours, one entry per paper, method and model.

    A row with a method of ours is matched by it, another by its name.
    """
    reference = reference or load_reference()
    found: dict[tuple[str, str, str], Published] = {}

    def entry(row: Row) -> Published:
        key = (row.paper, row.method or row.name, row.model)
        kept = found.setdefault(key, Published(row.name, row.paper, row.method, row.model))
        if row.source not in kept.sources:
            kept.sources.append(row.source)
        return kept

    def ours(row: Row) -> bool:
        return reference.scenarios[row.scenario] == scenario

    for configuration in filter(ours, reference.configurations):
        entry(configuration).table = configuration
    for compliance in filter(ours, reference.stcr):
        entry(compliance).stcr = compliance
    for sellable in filter(ours, reference.sirr):
        entry(sellable).sirr = sellable
    return list(found.values())


def published_transitions(scenario: str, reference: Reference | None = None) -> list[Transitions]:
    """The papers' transition counts on a scenario of ours."""
    reference = reference or load_reference()
    return [t for t in reference.transitions if reference.scenarios[t.scenario] == scenario]
