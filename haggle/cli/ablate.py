"""`haggle ablate`: the same short training with one thing changed at a time, on the same turns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from haggle.cli.options import Batch, Quiet, WeightsEngine


def ablate(
    config: Annotated[str, typer.Option(help="A config of arms (a name in configs/ablation).")],
    out: Annotated[Path, typer.Option(help="Directory to write to.")] = Path("runs/ablation"),
    arm: Annotated[
        list[str] | None, typer.Option(help="Run this arm only; as often as there are.")
    ] = None,
    engine: WeightsEngine = "llamacpp_batch",
    batch: Batch = 8,
    quiet: Quiet = False,
) -> None:
    """Train a recipe once for each arm, each with one thing changed, and compare; resumes."""
    from haggle.core.config import load_config, located, named_config
    from pipeline.ablation import AblationConfig, run_ablation

    path = named_config("ablation", config)
    asked = load_config(path, AblationConfig)
    with located(str(path)):
        compared = run_ablation(
            asked, out, arms=arm or (), engine=engine, batch=batch, progress=not quiet,
            where=str(path),
        )  # fmt: skip
    _print(compared)


def _print(compared: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from haggle.rates import points_text, rate_text

    rates = ("joint", "state", "cart")
    table = Table(title=f"{compared['n']} turns of {compared['measured']}")
    for column in ("arm", "tokens", "minutes", "loss", *rates, "joint, points"):
        table.add_column(column)
    for index, (name, arm) in enumerate(compared["arms"].items()):
        difference = arm["joint_difference"]
        table.add_row(
            Text(name),
            f"{arm['tokens']:,}",
            f"{arm['minutes']:.1f}",
            f"{arm['loss']:.2f}",
            *(rate_text(arm[rate]) for rate in rates),
            points_text(difference) if index and difference else "",
        )
    Console().print(table)
