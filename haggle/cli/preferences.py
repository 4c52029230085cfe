"""`haggle preferences`: write pairs of a right and a wrong answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def preferences(
    config: Annotated[str, typer.Option(help="A config of pairs (name or file).")] = "preferences",
    out: Annotated[Path, typer.Option(help="Directory to write to.")] = Path(
        "runs/data/preferences"
    ),
    n: Annotated[int | None, typer.Option("--n", min=1, help="Number of train pairs.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed instead of the config's.")] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="Take the turns of this data set instead of the config's.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bars.")] = False,
) -> None:
    """Write preference pairs: right answers against answers with a mistake in them."""
    from data_gen.dataset.preferences import load_preference_config, make_preferences
    from haggle.cli import located, print_table
    from haggle.config import named_config

    with located("--config"):
        path = named_config("data", config)
    loaded = load_preference_config(path, train=n, seed=seed, dataset=dataset)
    with located(str(path)):
        summary = make_preferences(loaded, out, progress=not quiet)
    shown = ("pairs", "kinds", "short", "dialogues", "unfit_turns")
    table = {
        split: {name: counts[name] for name in shown if counts[name] != {}}
        for split, counts in summary["splits"].items()
    }
    print_table("preference pairs", table | {"seconds": summary["seconds"]})
