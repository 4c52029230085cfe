"""`haggle curves`: draw how training runs went."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SEVERAL = Path("runs/curves")


def curves(
    runs: Annotated[list[Path], typer.Argument(help="Directories of training runs.")],
    out: Annotated[
        Path | None,
        typer.Option(help=f"Directory to write to: the run's own; of several, {SEVERAL}."),
    ] = None,
) -> None:
    """Write curves.png and curves.html of one training run, or of several over each other."""
    from training.curves import write_curves

    if out is None:
        out = runs[0] if len(runs) == 1 else SEVERAL
    for path in write_curves(runs, out):
        typer.echo(str(path))
