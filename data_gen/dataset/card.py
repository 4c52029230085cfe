"""A data set's README in the form of the Hugging Face hub, written from its statistics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from data_gen.dataset.counting import HAND_WRITTEN, MAX_COMPARED, START, UNKNOWN
from data_gen.dataset.records import Comparison, SplitStatistics, Statistics
from haggle.core.config import Record
from haggle.core.storage import atomic_write_text, write_json
from haggle.trade.procedure import load_procedure

LICENCE = "apache-2.0"
PRETTY_NAME = "Haggle trading dialogues"
MISSING = "–"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
OWN_TEACHERS = {"oracle", "corpus", UNKNOWN}
REWRITER = "rewriter:"
LARGEST = "1M<n<10M"
MOST_NAMED = 25  # genres and voices listed by name
COMPARED_WORDS = (10_000, 100_000)


class PaperRounds(Record):
    """Rounds per dialogue as a paper reports them for a scenario of ours."""

    paper: str
    source: str
    scenario: str
    n: int
    mean: float
    sd: float


class PaperTransitions(Record):
    """A paper's matrix of transitions (row: previous state) for a scenario of ours.

    None is a cell that cannot be read; `derived` are cells (row, column) that follow from others.
    """

    title: str
    scenario: str
    dialogues: int
    labels: list[str]
    counts: list[list[int | None]]
    derived: list[tuple[int, int]] = []


class Papers(Record):
    """What stands beside our figures."""

    rounds: list[PaperRounds] = []
    transitions: list[PaperTransitions] = []


def write_card(
    statistics: Statistics,
    out: Path,
    *,
    files: dict[str, str] | None = None,
    papers: Papers | None = None,
    comparison: Comparison | None = None,
) -> None:
    """Write `statistics.json`, `README.md` and, with a comparison, `comparison.json` into `out`.

    `files` are the data files by split, as patterns relative to `out`, for the hub to find.
    """
    text = render_card(statistics, files=files, papers=papers, comparison=comparison)
    write_json(out / "statistics.json", statistics.model_dump(mode="json"))
    if comparison is not None:
        write_json(out / "comparison.json", comparison.model_dump(mode="json"))
    atomic_write_text(out / "README.md", text)


def render_card(
    statistics: Statistics,
    *,
    files: dict[str, str] | None = None,
    papers: Papers | None = None,
    comparison: Comparison | None = None,
) -> str:
    """The card as Markdown behind its YAML front matter."""
    papers = papers or Papers()
    main = next(iter(statistics.splits.values()))
    sources = {kind for split in statistics.splits.values() for kind in split.sources}
    teachers = {name for split in statistics.splits.values() for name in split.teachers}
    body = _environment().get_template("card.jinja").render(
        s=statistics,
        main=main,
        main_name=next(iter(statistics.splits)),
        sources=sources,
        scripted="scripted" in sources or sources == {UNKNOWN},
        rewriters=sorted(t.removeprefix(REWRITER) for t in teachers if t.startswith(REWRITER)),
        models=sorted(t for t in teachers - OWN_TEACHERS if not t.startswith(REWRITER)),
        rounds=_rounds(statistics, papers),
        states=list(load_procedure().states),
        matrices=[_matrix(main, name, papers) for name in main.transitions],
        comparison=comparison,
        comparison_rows=comparison_rows(comparison) if comparison else [],
        hand_written=HAND_WRITTEN,
        max_compared=MAX_COMPARED,
        most_named=MOST_NAMED,
    )  # fmt: skip
    head = yaml.safe_dump(front_matter(statistics, files or {}), sort_keys=False)
    return f"---\n{head}---\n\n{body.strip()}\n"


def front_matter(statistics: Statistics, files: dict[str, str]) -> dict[str, Any]:
    """The metadata that the hub reads."""
    total = sum(split.of for split in statistics.splits.values())
    hand_written = any("corpus" in split.sources for split in statistics.splits.values())
    makers = ("machine-generated", *(["expert-generated"] if hand_written else []))
    head: dict[str, Any] = {
        "license": LICENCE,
        "language": ["en"],
        "pretty_name": PRETTY_NAME,
        "size_categories": [next((name for most, name in SIZES if total < most), LARGEST)],
        "task_categories": ["text-generation"],
        "annotations_creators": [*makers],
        "language_creators": [*makers],
        "multilinguality": ["monolingual"],
        "source_datasets": ["original"],
        "tags": ["dialogue", "task-oriented", "state-tracking", "trading", "game-npc", "synthetic"],
    }
    if files:
        data_files = [{"split": split, "path": pattern} for split, pattern in files.items()]
        head["configs"] = [{"config_name": "default", "data_files": data_files}]
    return head


def comparison_rows(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    """Figure, ours, the baseline's, and ours as a multiple of it, as texts."""
    ours, theirs = comparison.ours, comparison.baseline
    rows: list[tuple[str, Any, Any, str]] = [
        ("dialogues", ours.dialogues, theirs.dialogues, "count"),
        ("turns", ours.turns, theirs.turns, "count"),
    ]
    for scenario in (*ours.rounds, *(n for n in theirs.rounds if n not in ours.rounds)):
        pair = [s.rounds[scenario].mean if scenario in s.rounds else None for s in (ours, theirs)]
        rows.append((f"rounds, {scenario}", pair[0], pair[1], "number"))
    for side in ("player", "merchant"):
        a, b = getattr(ours, side), getattr(theirs, side)
        rows.append((f"{side}: words", a.words, b.words, "count"))
        rows.append((f"{side}: vocabulary", a.vocabulary, b.vocabulary, "count"))
        rows += [
            (f"{side}: distinct-{n}", a.distinct[n], b.distinct[n], "ratio") for n in a.distinct
        ]
        rows.append((f"{side}: different 2-grams", a.different[2], b.different[2], "count"))
        for mark in _common_marks(a.distinct_at, b.distinct_at):
            label = f"{side}: distinct-2 at {mark:,} words"
            rows.append((label, a.distinct_at[mark][2], b.distinct_at[mark][2], "ratio"))
        rows.append((f"{side}: repeated lines", a.repeated.share, b.repeated.share, "percent"))
        rows.append((f"{side}: self-BLEU", a.self_bleu, b.self_bleu, "number"))
    rows += [
        ("near-duplicate dialogues", ours.near_dialogues.near.share,
         theirs.near_dialogues.near.share, "percent"),
        ("near-duplicate player turns", ours.near_player_turns.near.share,
         theirs.near_player_turns.near.share, "percent"),
        ("player acts", len(ours.acts), len(theirs.acts), "count"),
        ("genres of shops", len(ours.shops.genres), len(theirs.shops.genres), "count"),
        ("invented item names", ours.shops.invented.share, theirs.shops.invented.share, "percent"),
        ("orders with something not sold", ours.orders.unsold.share,
         theirs.orders.unsold.share, "percent"),
        ("orders above the stock", ours.orders.over_stock.share,
         theirs.orders.over_stock.share, "percent"),
    ]  # fmt: skip
    return [(label, _FORMS[form](a), _FORMS[form](b), _times(a, b)) for label, a, b, form in rows]


def _common_marks(a: dict[int, Any], b: dict[int, Any]) -> list[int]:
    """Numbers of words at which both were measured: a few fixed ones and the largest."""
    common = sorted(set(a) & set(b))
    return sorted({*common[-1:], *(mark for mark in COMPARED_WORDS if mark in common)})


def _times(a: float | None, b: float | None) -> str:
    return f"{a / b:.2f}" if a is not None and b else MISSING


def _rounds(statistics: Statistics, papers: Papers) -> list[dict[str, Any]]:
    """Rounds by split and scenario, with every paper's figure for that scenario."""
    return [
        {
            "split": split,
            "scenario": scenario,
            "ours": ours,
            "papers": [
                (paper, ours.mean / paper.mean - 1)
                for paper in papers.rounds
                if paper.scenario == scenario
            ],
        }
        for split, figures in statistics.splits.items()
        for scenario, ours in figures.rounds.items()
    ]


def _matrix(figures: SplitStatistics, scenario: str, papers: Papers) -> dict[str, Any]:
    """Shares of each row of our matrix beside the paper's."""
    paper = next((p for p in papers.transitions if p.scenario == scenario), None)
    states = list(load_procedure().states)
    counts = figures.transitions[scenario]
    lines = []
    for row in (START, *states):
        own = [counts.get(row, {}).get(column, 0) for column in states]
        theirs = _paper_row(paper, row, states) if paper else None
        lines.append(
            {
                "label": row,
                "n": sum(own),
                "paper_n": sum(n or 0 for n in theirs) if theirs else None,
                "cells": [
                    (
                        _of(own[i], sum(own)),
                        _of(theirs[i], sum(n or 0 for n in theirs)) if theirs else None,
                        paper is not None and _is_derived(paper, row, column),
                    )
                    for i, column in enumerate(states)
                ],
            }
        )
    return {"scenario": scenario, "columns": states, "lines": lines, "paper": paper}


def _paper_row(paper: PaperTransitions, row: str, states: Sequence[str]) -> list[int | None] | None:
    if row not in paper.labels:
        return None
    counts = paper.counts[paper.labels.index(row)]
    return [counts[paper.labels.index(s)] if s in paper.labels else 0 for s in states]


def _is_derived(paper: PaperTransitions, row: str, column: str) -> bool:
    labels = paper.labels
    if row not in labels or column not in labels:
        return False
    return (labels.index(row), labels.index(column)) in paper.derived


def _of(count: int | None, total: int) -> float | None:
    return count / total if total and count is not None else None


def _count(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f}"


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.2f}"


def _ratio(value: float | None) -> str:
    return MISSING if value is None else f"{value:.4f}"


def _percent(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{100 * value:.2f}%" if 0 < value < 0.1 else f"{100 * value:.1f}%"


def _cell(value: object) -> str:
    """Text that cannot break a Markdown table."""
    return " ".join(str(value).replace("|", "\\|").split())


_FORMS = {"count": _count, "number": _number, "ratio": _ratio, "percent": _percent}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,  # Markdown; what comes from the data goes through `cell`
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        **_FORMS,
        "cell": _cell,
        "json": partial(json.dumps, ensure_ascii=False),
    }
    return environment
