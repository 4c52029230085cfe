"""`haggle eval planner`: planners before simulated users, or on labelled dialogues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from haggle.cli.options import CharacterEngine, Gguf, Guard, Quiet
from haggle.core.config import located
from haggle.core.errors import HaggleError

DEFAULT_CHARACTERS = ["gatekeeper"]


def planner(
    method: Annotated[
        str,
        typer.Option(help="cot, cot+sop, tot, tot+sop, mcts, mcts+sop or best-of-k+sop."),
    ],
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    character: Annotated[
        list[str] | None, typer.Option(help="Its name, or a task file; as often as there are.")
    ] = None,
    engine: CharacterEngine = "character",
    guard: Guard = "state",
    gguf: Gguf = None,
    settings: Annotated[
        str | None,
        typer.Option(help="A plan config (a name in configs/plan, or a file); else the paper's."),
    ] = None,
    users: Annotated[int, typer.Option(min=1, help="Simulated users of each character.")] = 8,
    trials: Annotated[int, typer.Option(min=1, help="Talks with each user, for pass^k.")] = 1,
    against: Annotated[
        Path | None, typer.Option(help="Compare with the run in this directory, talk by talk.")
    ] = None,
    labelled: Annotated[
        Path | None,
        typer.Option(help="Plan the turns of labelled dialogues instead: PCA-D's JSON files."),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(min=1, help="Of these, so many of the test tasks (17 of 53), not all."),
    ] = None,
    made: Annotated[
        int | None,
        typer.Option(min=1, help="The same with so many made dialogues of each character."),
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, help="Labelled dialogues side by side; 1 for honest times.")
    ] = 1,
    seed: Annotated[int, typer.Option(help="Which users.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Let a planner choose a character's steps, and write metrics.json; resumes.

    It talks to simulated users, or plans the turns of labelled dialogues with the true history
    (--labelled, --made).
    """
    from haggle.cli.levels import check_level, check_planner
    from haggle.core.config import load_config, named_config
    from haggle.planning.config import PlanConfig
    from haggle.sop.task import load_task
    from serving.engines import for_characters, open_engine

    level, chosen = check_level(guard), check_planner(method)
    if (labelled or made) and (against or trials > 1):
        raise HaggleError("--against and --trials go with simulated users", where="eval planner")
    if n and not labelled:
        raise HaggleError("--n goes with --labelled", where="eval planner")
    with located("--character"):
        tasks = [load_task(name) for name in character or DEFAULT_CHARACTERS]
    with located("--settings"):
        file = named_config("plan", settings) if settings else None
    config = load_config(file, PlanConfig) if file else PlanConfig()
    dialogues = _dialogues(labelled, n, made, tasks, seed)
    loaded = open_engine(engine, gguf)
    playing = for_characters(loaded)
    try:
        if dialogues is None:
            from eval.sop.talks import run_talks

            metrics = run_talks(
                tasks, chosen, playing, level, out, config=config, users=users, trials=trials,
                seed=seed, against=against, progress=not quiet,
            )  # fmt: skip
        else:
            from eval.sop.labelled import run_labelled

            metrics = run_labelled(
                dialogues, chosen, playing, out, config=config, constrained=level != "off",
                seed=seed, batch=batch, progress=not quiet,
            )  # fmt: skip
    finally:
        loaded.close()
    _print(metrics)


def _dialogues(
    labelled: Path | None, n: int | None, made: int | None, tasks: Any, seed: int
) -> Any:
    """The labelled dialogues, or None where users are to be talked to."""
    if labelled is None and made is None:
        return None
    from data_gen.sop.labelled import held_out, read_labelled
    from eval.sop.labelled import made as make

    found = []
    with located("--labelled"):
        if labelled is not None:
            found = held_out(labelled, n) if n else read_labelled(labelled)
    return found + (make(tasks, made, seed) if made is not None else [])


def _print(metrics: dict[str, Any]) -> None:
    """Our figures, the differences to another run, and the paper's figures beside them."""
    from haggle.cli.tables import print_published, print_rates, print_table
    from haggle.rates import points_text

    passes = metrics.get("pass", {})
    print_rates(f"planner {metrics['method']}", metrics | passes, ("turns", "bleu_2", "bleu_4"))
    print_table("a turn takes", {k: v["value"] for k, v in metrics["per_turn"].items()})
    if "against" in metrics:
        other = dict(metrics["against"])
        told = {k: points_text(v) if isinstance(v, dict) else v for k, v in other.items()}
        print_table("difference in points", told)
    print_published(metrics["published"])
