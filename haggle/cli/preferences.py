"""`haggle preferences`: write pairs of a right and a wrong answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from haggle.cli.options import Quiet


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
    answers: Annotated[
        Path | None,
        typer.Option(
            help="Take the wrong answers of this run of `haggle eval turns --split train`, which "
            "was asked the --dataset; no config, --n or --seed then."
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write preference pairs: right answers against answers with a mistake in them."""
    if answers is not None:
        _own(answers, dataset, out, given=n is not None or seed is not None)
        return
    from data_gen.dataset.preferences import load_preference_config, make_preferences
    from haggle.cli.tables import print_table
    from haggle.core.config import located, named_config

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


def _own(answers: Path, dataset: Path | None, out: Path, *, given: bool) -> None:
    """Pairs from a model's own wrong answers."""
    from eval.own_mistakes import make_own_pairs
    from haggle.cli.tables import print_table
    from haggle.core.errors import HaggleError

    if dataset is None:
        raise HaggleError(
            "which data set was answered?", where="--answers", hint="name it with --dataset"
        )
    if given:
        raise HaggleError(
            "every wrong answer makes a pair: --n and --seed have no effect", where="--answers"
        )
    summary = make_own_pairs(answers, dataset, out)
    print_table("preference pairs", summary["splits"] | {"answers": summary["answers"]})
