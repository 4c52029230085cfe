"""`report.html` of an experiment: one file, no network, our figures beside the papers'."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from eval.metrics import as_meant
from eval.reference import (
    Cell,
    Published,
    Spread,
    load_reference,
    published,
    published_transitions,
)
from eval.usage import describe
from haggle.core.storage import atomic_write_text
from haggle.trade.procedure import load_procedure
from haggle.trade.records import Dialogue

PROPOSED = "astp"
SAMPLES = 2
MISSING = "–"
START = "Start"
Dialogues = Mapping[str, Mapping[str, Sequence[Dialogue]]]


def write_report(
    metrics: Mapping[str, Any], path: Path, dialogues: Dialogues | None = None
) -> None:
    """Write `metrics` (what `run_experiment` returns) as a self-contained page.

    `dialogues` by run and scenario gives the sample dialogues; without them the page has none.
    """
    page = _environment().get_template("report.jinja").render(**_view(metrics, dialogues or {}))
    atomic_write_text(path, page)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=True,  # players' and models' words end up in the page
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    environment.filters["interval"] = interval
    return environment


def percent(rate: Mapping[str, Any]) -> str:
    """`97.7%`, or `n/a (0 of 0)` without observations."""
    return "n/a (0 of 0)" if rate["value"] is None else f"{100 * rate['value']:.1f}%"


def interval(rate: Mapping[str, Any]) -> str:
    """`86 of 88, 95% CI 92.1 to 99.4`; empty without observations."""
    if rate["value"] is None:
        return ""
    low, high = 100 * rate["low"], 100 * rate["high"]
    return f"{rate['passed']} of {rate['n']}, 95% CI {low:.1f} to {high:.1f}"


def mean_sd(spread: Mapping[str, Any], digits: int = 1) -> str:
    """`398.0 (78.0)`, or `n/a`."""
    if spread["mean"] is None:
        return "n/a"
    return f"{spread['mean']:.{digits}f} ({spread['sd']:.{digits}f})"


def counted(counts: Mapping[str, int]) -> str:
    """`degraded 3, safe_line 1`, or `none`."""
    named = sorted((name, number) for name, number in counts.items() if number)
    return ", ".join(f"{name} {number}" for name, number in named) or "none"


def _view(metrics: Mapping[str, Any], dialogues: Dialogues) -> dict[str, Any]:
    results = metrics["results"]
    names = list(results[0]["scenarios"])
    return {
        "version": metrics["version"],
        "machine": metrics["machine"],
        "config": yaml.safe_dump(metrics["config"], sort_keys=False, allow_unicode=True),
        "total": sum(result["all"]["dialogues"] for result in results),
        "runs": [_heading(result) for result in results],
        "scenarios": [_scenario(name, results) for name in names],
        "overall": _rows([result["all"] for result in results], []) if len(names) > 1 else [],
        "samples": _samples(results, dialogues),
        "papers": load_reference().papers,
    }


def _heading(result: Mapping[str, Any]) -> dict[str, Any]:
    run = result["run"]
    return {
        "name": run["name"],
        "guard": run["guard"],
        "method": run["method"],
        "model": str(result["model"]),
        "usage": list(describe(result.get("usage", {}))),
    }


def _scenario(name: str, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    summaries = [result["scenarios"][name] for result in results]
    papers = published(name)
    proposed = [p for p in papers if p.method == PROPOSED]
    acts = sorted({act for summary in summaries for act in summary["by_act"]})
    ours = [
        {
            "title": r["run"]["name"],
            "note": f"guard {r['run']['guard']}",
            "published": False,
            **_heatmap(s),
        }
        for r, s in zip(results, summaries, strict=True)
    ]
    return {
        "name": name,
        "published": proposed,
        "rows": _rows(summaries, proposed),
        "others": [p for p in papers if p.method != PROPOSED],
        "other_rows": OTHER_COLUMNS,
        "acts": [{"act": act, "rates": [s["by_act"].get(act) for s in summaries]} for act in acts],
        "heatmaps": [*ours, *_published_heatmaps(name)],
    }


# One line of the summary: label, our value and its small print, the papers' value.
Ours = Callable[[Mapping[str, Any]], tuple[str, str]]
Theirs = Callable[[Published], str]


def _rate(*keys: str) -> Ours:
    def show(summary: Mapping[str, Any]) -> tuple[str, str]:
        value: Any = summary
        for key in keys:
            value = value[key]
        return percent(value), interval(value)

    return show


def _plain(text: Callable[[Mapping[str, Any]], str]) -> Ours:
    return lambda summary: (text(summary), "")


def _missing(_: Published) -> str:
    return MISSING


def _stcr(row: Published) -> str:
    return f"{row.stcr.stcr:.2f}% of {row.stcr.n}" if row.stcr else MISSING


def _sirr(row: Published) -> str:
    return f"{row.sirr.sirr:.2f}% of {row.sirr.n}" if row.sirr else MISSING


def _price(cell: Cell | None) -> str:
    if cell is None or cell.price_accuracy is None:
        return MISSING
    return f"{cell.price_accuracy:.1f}%" + (f" of {cell.n}" if cell.n else "")


def _offer(row: Published) -> str:
    return _price(row.table.offer_sell if row.table else None)


def _others(row: Published) -> str:
    return _price(row.table.others if row.table else None)


def _both(part: Callable[[Cell], Spread]) -> Theirs:
    """Mean (sd) of both columns of the papers' Table 2."""

    def show(row: Published) -> str:
        if row.table is None:
            return MISSING
        shown = [
            f"{label} {spread.mean:g}" + (f" ({spread.sd:g})" if spread.sd is not None else "")
            for label, cell in (("OS", row.table.offer_sell), ("Others", row.table.others))
            if (spread := part(cell)).mean is not None
        ]
        return ", ".join(shown) or MISSING

    return show


_tokens = _both(lambda cell: cell.completion_tokens)
_time = _both(lambda cell: cell.time_s)


def _latency(summary: Mapping[str, Any]) -> tuple[str, str]:
    latency = summary["latency_s"]
    if latency["p50"] is None:
        return "n/a", ""
    return f"{latency['p50']:.2f} / {latency['p95']:.2f}", f"mean (sd) {mean_sd(latency, 2)}"


LINES: list[tuple[str, Ours, Theirs]] = [
    ("State transition compliance (STCR)", _rate("stcr"), _stcr),
    ("Sales that the player agreed to", _rate("agreed_to"), _missing),
    ("Price accuracy, OFFER_SELL", _rate("price_accuracy", "offer"), _offer),
    ("Price accuracy, others", _rate("price_accuracy", "others"), _others),
    ("Sellable item response rate (SIRR)", _rate("sirr"), _sirr),
    ("Valid JSON", _rate("valid_json"), _missing),
    ("Inference consistency", _rate("inference_consistency"), _missing),
    ("State accuracy", _rate("accuracy", "state"), _missing),
    ("Cart accuracy", _rate("accuracy", "cart"), _missing),
    ("Joint accuracy", _rate("accuracy", "joint"), _missing),
    ("Price haggled to, of turns to haggle in", _rate("accuracy", "price_goal"), _missing),
    ("Dialogues that reach a sale", _rate("reached_commit"), _missing),
    ("Dialogues, turns", _plain(lambda s: f"{s['dialogues']}, {s['turns']}"), _missing),
    ("Rounds a dialogue, mean (sd)", _plain(lambda s: mean_sd(s["rounds"])), _missing),
    (
        "Completion tokens, mean (sd)",
        _plain(lambda s: mean_sd(s["completion_tokens"])),
        _tokens,
    ),
    ("Prompt tokens, mean (sd)", _plain(lambda s: mean_sd(s["prompt_tokens"])), _missing),
    ("Latency in s, p50 / p95", _latency, _time),
    ("Code stepped in (turns)", _plain(lambda s: counted(s["interventions"])), _missing),
    (
        "Checks failed by the model (turns)",
        _plain(lambda s: counted(s["proposed_failed"])),
        _missing,
    ),
    ("Checks failed by the answer given", _plain(lambda s: counted(s["failed"])), _missing),
]

OTHER_COLUMNS: list[tuple[str, Theirs]] = [
    ("STCR", _stcr),
    ("Price accuracy, OS", _offer),
    ("Others", _others),
    ("Completion tokens", _tokens),
    ("Time in s", _time),
]


def _rows(
    summaries: Sequence[Mapping[str, Any]], papers: Sequence[Published]
) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "ours": [ours(summary) for summary in summaries],
            "papers": [theirs(paper) for paper in papers],
        }
        for label, ours, theirs in LINES
    ]


def _heatmap(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A transition matrix as the papers print it: END last, shading by share of the row."""
    counts = summary["transitions"]
    states = sorted(next(iter(counts.values())), key=_resets)
    rows = [START, *states]
    return _cells(rows, states, [[counts[a][b] for b in states] for a in rows])


def _published_heatmaps(scenario: str) -> list[dict[str, Any]]:
    maps = []
    for table in published_transitions(scenario):
        rows = [START if label == "<start>" else label for label in table.labels]
        use = [i for i, label in enumerate(rows) if label != START]
        keep = [i for i, label in enumerate(rows) if label != "<end>"]
        grid = [[table.counts[i][j] for j in use] for i in keep]
        cells = _cells([rows[i] for i in keep], [rows[j] for j in use], grid)
        source = f"{table.source}, {table.dialogues} dialogues, {table.model}"
        title = f"{table.name} (published)"
        maps.append({"title": title, "note": source, "published": True, **cells})
    return maps


def _resets(state: str) -> bool:
    known = load_procedure().states.get(state)
    return known is not None and known.resets


def _cells(
    rows: Sequence[str], columns: Sequence[str], grid: Sequence[Sequence[int | None]]
) -> dict[str, Any]:
    lines = []
    for name, counts in zip(rows, grid, strict=True):
        total = sum(count or 0 for count in counts)
        cells = [
            {
                "count": MISSING if count is None else count,
                "share": round((count or 0) / total, 3) if total else 0,
                "skips": bool(count) and _skips(name, column),
            }
            for column, count in zip(columns, counts, strict=True)
        ]
        lines.append({"label": name, "cells": cells})
    return {"columns": list(columns), "lines": lines}


def _skips(previous: str, new: str) -> bool:
    """Whether this pair surely skips a mandatory state; behind small talk it may not."""
    procedure = load_procedure()
    if new not in procedure.states:
        return False
    if previous == START:
        return procedure.breaks_critical(procedure.start, new)
    known = procedure.states.get(previous)
    if known is None or known.transparent:
        return False
    return procedure.breaks_critical(procedure.track("", previous), new)


def _samples(results: Sequence[Mapping[str, Any]], dialogues: Dialogues) -> list[dict[str, Any]]:
    """Of each run and scenario the first dialogue with a mistake and the first without."""
    samples = []
    for result in results:
        run = result["run"]["name"]
        for scenario, group in dialogues.get(run, {}).items():
            wrong = [d for d in group if _has_mistake(d)]
            right = [d for d in group if not _has_mistake(d)]
            for dialogue in [*wrong[:1], *right[:1]][:SAMPLES]:
                samples.append({"run": run, "scenario": scenario, "dialogue": dialogue})
    return samples


def _has_mistake(dialogue: Dialogue) -> bool:
    return any(
        turn.failed or (turn.truth is not None and not as_meant(turn, turn.truth))
        for turn in dialogue.turns
    )
