"""`haggle sop`: procedures shown, drawn and planned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from haggle.cli.options import Engine, Gguf, Quiet

if TYPE_CHECKING:
    from haggle.sop.definition import Definition

sop_app = typer.Typer(no_args_is_help=True, help="Procedures (SOPs): show, draw, plan.")

TaskName = Annotated[str, typer.Argument(help="A task by its name, a task file, or a PCA-D file.")]

PlanMethod = Annotated[
    str,
    typer.Option(
        "--method",
        help="al (adjacency list), tcot (words first), vertex (one vertex after another), or order "
        "(no model: order of vertices).",
    ),
]
Constrained = Annotated[
    bool,
    typer.Option("--constrained", help="Let the model write adjacency lists of the task alone."),
]


@sop_app.command(name="list")
def list_tasks() -> None:
    """List the tasks that Haggle brings."""
    from haggle.sop.task import TASKS, load_task

    for path in sorted(TASKS.glob("*.yaml")):
        task = load_task(path.stem)
        held = ", held out" if task.split == "test" else ""
        identity = task.conversation_profile.agent_identity
        typer.echo(f"{task.task:20} {identity} ({task.domain}{held})")


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


@sop_app.command()
def plan(
    task: TaskName,
    method: PlanMethod = "al",
    engine: Engine = "llamacpp",
    gguf: Gguf = None,
    constrained: Constrained = False,
    mermaid: Annotated[
        Path | None, typer.Option(help="Write the predicted graph to this file as Mermaid.")
    ] = None,
) -> None:
    """Predict a procedure from its vertices alone, and compare it with the true one."""
    from eval.sop.measures import compare
    from eval.sop.planners import open_planner
    from haggle.cli.tables import print_table
    from haggle.core.storage import atomic_write_text
    from haggle.sop.mermaid import mermaid_of

    shown = definition(task)
    with opened(method, engine, gguf) as loaded:
        predicted = open_planner(method, loaded, constrained).plan(shown)
    likeness = compare(predicted.adjacency_list, shown.sop.adjacency_list)
    text = mermaid_of(predicted.adjacency_list)
    typer.echo(text)
    told = likeness.model_dump(exclude={"missing", "extra"}) | {"f1": likeness.f1}
    edges = {
        name: ", ".join(f"{one} -> {two}" for one, two in getattr(likeness, name)) or "none"
        for name in ("missing", "extra")
    }
    print_table(f"plan of {shown.task}", told | {"valid_json": predicted.valid} | edges)
    if mermaid is not None:
        atomic_write_text(mermaid, text)


def sop(
    tasks: Annotated[Path, typer.Option(help="Directory of task files (YAML, or PCA-D's JSON).")],
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    method: PlanMethod = "al",
    engine: Engine = "llamacpp",
    gguf: Gguf = None,
    constrained: Constrained = False,
    folds: Annotated[int, typer.Option(min=2, help="Folds of the cross-validation.")] = 5,
    stated: Annotated[
        bool, typer.Option("--stated", help="No folds: the paper's 17 test tasks of 53 alone.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Which folds.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Predict the procedure of every task in a directory (PCA, Task 1); resumes."""
    from eval.sop.run import load_definitions, run_plans
    from haggle.cli.tables import print_published, print_table
    from haggle.core.config import located

    with located("--tasks"):
        found = load_definitions(tasks)
    with opened(method, engine, gguf) as loaded:
        metrics = run_plans(
            found, method, out, engine=loaded, constrained=constrained, seed=seed,
            folds=None if stated else folds, progress=not quiet,
        )  # fmt: skip
    print_table("SOP prediction", {k: v for k, v in metrics.items() if k != "published"})
    print_published(metrics["published"])


@contextmanager
def opened(method: str, engine: str, gguf: Path | None) -> Iterator[Any]:
    """The engine that a method needs, or None; closed in the end."""
    from eval.sop.planners import check_method
    from serving.engines import open_engine

    loaded = open_engine(engine, gguf) if check_method(method) != "order" else None
    try:
        yield loaded
    finally:
        if loaded is not None:
            loaded.close()


def definition(name: str) -> Definition:
    """The task of a name or file: one that can be played, or a public definition (JSON)."""
    from haggle.core.config import located
    from haggle.sop.pca_d import read_definition
    from haggle.sop.task import load_task

    with located("TASK"):
        return read_definition(name) if name.endswith(".json") else load_task(name)
