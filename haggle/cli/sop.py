"""`haggle sop`: procedures shown, drawn and planned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from haggle.sop.definition import Definition

sop_app = typer.Typer(no_args_is_help=True, help="Procedures (SOPs): show, draw, plan.")

TaskName = Annotated[str, typer.Argument(help="A task by its name, a task file, or a PCA-D file.")]


@sop_app.command()
def show(
    task: TaskName,
    svg: Annotated[Path | None, typer.Option(help="Draw the graph to this SVG file.")] = None,
    mermaid: Annotated[
        Path | None, typer.Option(help="Write the graph to this file as Mermaid.")
    ] = None,
) -> None:
    """Print a procedure as a graph, with its mandatory steps and what is wrong with it."""
    import sys

    from haggle.core.storage import atomic_write_text
    from haggle.sop.definition import problems
    from haggle.sop.drawing import outline, write_svg
    from haggle.sop.mermaid import mermaid_of

    shown = definition(task)
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    typer.echo(f"{shown.task}: {shown.conversation_profile.agent_identity}")
    typer.echo(f"goal: {shown.conversation_profile.agent_goal}\n")
    typer.echo(outline(shown, ascii_only=not unicode))
    typer.echo(f"\nnever skipped: {', '.join(shown.mandatory) or 'nothing'}")
    typer.echo(f"at any time: {', '.join((*shown.asides, *shown.proactive)) or 'nothing'}")
    for message, _ in problems(shown):
        typer.echo(f"problem: {message}")
    if svg is not None:
        write_svg(shown, svg)
        typer.echo(f"drawn: {svg}")
    if mermaid is not None:
        atomic_write_text(mermaid, mermaid_of(shown.sop.adjacency_list))
        typer.echo(f"written: {mermaid}")


def definition(name: str) -> Definition:
    """The task of a name or file: one that can be played, or a public definition (JSON)."""
    from haggle.core.config import located
    from haggle.sop.pca_d import read_definition
    from haggle.sop.task import load_task

    with located("TASK"):
        return read_definition(name) if name.endswith(".json") else load_task(name)
