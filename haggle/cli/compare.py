"""`haggle eval compare`: the same turns through several models, files or engines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Output directories of `eval turns`, `eval cases` or `eval talk`; the first is "
            "the reference."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="A JSON file for the figures and ids.")] = None,
) -> None:
    """Compare runs over the same turns, or goals, with the first: what was lost, what was won."""
    from eval.compare import compare_runs, run_names
    from eval.talk.compare import compare_talks, is_talk
    from haggle.cli.talk_tables import print_talks
    from haggle.core.storage import write_json

    talks = any(is_talk(path) for path in runs)
    compared = compare_talks(runs, run_names(runs)) if talks else compare_runs(runs)
    if out is not None:
        write_json(out, compared)
    (print_talks if talks else print_comparison)(compared)
    if out is not None:
        typer.echo(f"figures and ids that differ: {out}")


def print_comparison(compared: dict[str, Any]) -> None:
    """A line for each run, rates with their 95% intervals."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from haggle.rates import points_text, rate_text

    title = f"{compared['n']} {compared['kind']}, against {compared['reference']}"
    table = Table(title=title)
    measures = ("joint", "state", "cart", "same_text", "same_decision")
    for column in ("run", *(name.replace("_", " ") for name in measures), "joint, points"):
        table.add_column(column)
    for run in compared["runs"]:
        rates = [rate_text(run[name]) for name in measures]
        points = points_text(run["joint_difference"])
        if run["name"] == compared["reference"]:
            rates[3:], points = ["", ""], ""
        table.add_row(Text(run["name"]), *rates, points)
    Console().print(table)
    if compared["left_out"]:
        typer.echo(f"left out: {compared['left_out']} turns that not all runs answered")
