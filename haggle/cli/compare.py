"""`haggle eval compare`: the same turns through several models, files or engines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    from haggle.cli.talk_tables import print_compared
    from haggle.core.storage import write_json

    talks = any(is_talk(path) for path in runs)
    compared = compare_talks(runs, run_names(runs)) if talks else compare_runs(runs)
    if out is not None:
        write_json(out, compared)
    print_compared(compared)
    if out is not None:
        typer.echo(f"figures and ids that differ: {out}")
