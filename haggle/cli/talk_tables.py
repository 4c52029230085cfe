"""Measures of conversations, and of runs held against each other, in tables of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROWS = {
    "goals": "goals reached",
    "wrong": "wrong turns (harmful too)",
    "harmful": "harmful turns",
    "cosmetic": "cosmetic turns",
    "questions_answered": "questions on goods answered",
    "relevant": "lines that answer the player",
    "contradicts": "words contradict outcome",
    "distinct_lines": "distinct lines of all lines",
    "repeats_last": "lines that repeat the last",
}
OWN_RATES = ("cart", "same_text", "same_decision")  # not of pairs
KINDS = {"talk": "goals", "turns": "turns", "cases": "cases"}


def print_measures(metrics: Mapping[str, Any]) -> None:
    """The measures of a run as rows, with their 95% intervals; judges and agreement below."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from eval.usage import describe
    from haggle.rates import rate_text

    console = Console()
    console.print(Text(f"{metrics['model']}, guard {metrics['guard']}"))
    console.print(Text(f"player: {metrics['player']}"))
    table = Table(title=f"{metrics['n']} conversations, {metrics['turns']} turns")
    for column in ("measure", "value (95%)", "n"):
        table.add_column(column, overflow="fold")
    for key, label in ROWS.items():
        table.add_row(label, rate_text(metrics[key]), str(metrics[key]["n"]))
    extra, latency = metrics["extra_turns"], metrics["latency_s"]
    table.add_row("extra turns to a goal", _mean_text(extra), str(extra["n"]))
    if latency["p50"] is not None:
        shown = f"{latency['p50']:.2f} / {latency['p95']:.2f}"
        table.add_row("latency in s, p50 / p95", shown, str(metrics["turns"]))
    console.print(table)
    ended = ", ".join(f"{why} {number}" for why, number in sorted(metrics["ended"].items()))
    console.print(Text(f"ended by: {ended or 'none yet'}; turns judged: {metrics['judged']}"))
    for name, judge in metrics["judges"].items():
        console.print(Text(f"judge {name}: wrong {rate_text(judge['wrong'])} of {judge['n']}"))
    for pair in metrics["agreement"]:
        console.print(Text(f"kappa {' and '.join(pair['judges'])}: {_kappa_text(pair)}"))
    for who, usage in metrics.get("usage", {}).items():
        console.print(Text(f"{who}: {'; '.join(describe(usage))}"))


def print_compared(compared: Mapping[str, Any]) -> None:
    """Runs over the same turns or goals: measures as rows, a table for each run against the first.

    `points` are differences in pairs of the same turn or goal, with their 95% intervals.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from haggle.rates import points_text, rate_text

    console = Console()
    first, kind = compared["runs"][0], KINDS[compared["kind"]]
    for run in compared["runs"][1:]:
        console.print(Text(f"{compared['n']} {kind}: {run['name']} against {first['name']}"))
        table = Table()
        for column in ("measure", "reference", "this run", "points"):
            table.add_column(column, overflow="fold")
        for key, difference in run["differences"].items():
            points = "n/a" if difference["value"] is None else points_text(difference)
            table.add_row(ROWS.get(key, key), rate_text(first[key]), rate_text(run[key]), points)
        for key in OWN_RATES:
            if key in run:
                before = rate_text(first[key]) if key == "cart" else ""
                table.add_row(key.replace("_", " "), before, rate_text(run[key]), "")
        console.print(table)
    if compared["left_out"]:
        console.print(f"left out: {compared['left_out']} {kind} that not all runs have to the end")


def _mean_text(mean: Mapping[str, Any]) -> str:
    if mean["value"] is None:
        return "n/a"
    if mean["low"] is None:
        return f"{mean['value']:.2f}"
    return f"{mean['value']:.2f} ({mean['low']:.2f} to {mean['high']:.2f})"


def _kappa_text(pair: Mapping[str, Any]) -> str:
    if pair["agreed"] is None:
        return "no turn in common"
    kappa = "n/a" if pair["value"] is None else _mean_text(pair)
    return f"{kappa}, same label for {100 * pair['agreed']:.0f}% of {pair['n']} turns"
