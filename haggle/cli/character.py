"""`haggle eval character`: simulated users before a character with a procedure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from haggle.cli.options import CharacterEngine, Gguf, Guard, Quiet


def character(
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    character: Annotated[str, typer.Option(help="Its name, or a task file.")] = "gatekeeper",
    engine: CharacterEngine = "character",
    guard: Guard = "state",
    gguf: Gguf = None,
    n: Annotated[int, typer.Option("--n", min=1, help="How many dialogues.")] = 20,
    seed: Annotated[int, typer.Option(help="Which users.")] = 0,
    quiet: Quiet = False,
) -> None:
    """Play simulated users before a character, and write metrics.json; resumes."""
    from eval.characters import run_characters
    from haggle.cli.levels import check_level
    from haggle.cli.tables import print_rates
    from haggle.core.config import located
    from haggle.sop.task import load_task
    from serving.engines import for_characters, open_engine

    level = check_level(guard)
    with located("--character"):
        task = load_task(character)
    loaded = open_engine(engine, gguf)
    try:
        playing = for_characters(loaded)
        metrics = run_characters(task, playing, level, out, n=n, seed=seed, progress=not quiet)
    finally:
        loaded.close()
    print_rates("character", metrics, ("turns", "latency_s"))
