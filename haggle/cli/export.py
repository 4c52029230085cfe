"""`haggle export` and `haggle card`: a trained model as files that others can use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from haggle.core.errors import HaggleError

NONE = "none"


def export(
    adapter: Annotated[Path, typer.Argument(help="Directory of the trained adapter.")],
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    base: Annotated[str | None, typer.Option(help="Base model instead of the adapter's.")] = None,
    quantizations: Annotated[
        list[str] | None,
        typer.Option(help="GGUF types, e.g. F16,Q8_0,Q4_0 (the last two if not given), or none."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every GGUF type.")] = False,
    verify: Annotated[
        bool, typer.Option(help="Reload every file, compare logits and llama.cpp's answers.")
    ] = True,
) -> None:
    """Write adapter, merged safetensors, GGUF, LoRA as GGUF, Ollama's Modelfiles, each verified."""
    from dataclasses import asdict

    from haggle.cli.tables import print_table
    from haggle.core.config import located
    from training.export import DEFAULT_QUANTIZATIONS
    from training.export import export as run
    from training.gguf_file import QUANTIZATIONS

    wanted = _wanted(quantizations or [], everything, QUANTIZATIONS) or DEFAULT_QUANTIZATIONS
    with located("haggle export"):
        result = asdict(run(adapter, out, base, [q for q in wanted if q != NONE], verify))
    checks = result.pop("checks")
    print_table("exported", {k: v for k, v in result.items() if v})
    if checks:
        print_checks(checks)


def card(
    run: Annotated[Path, typer.Argument(help="Directory of a training run, or its adapter/.")],
    measures: Annotated[
        list[Path] | None,
        typer.Option(help="Output of an evaluation or an export; as often as there are."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="README.md in the run if not given.")] = None,
    name: Annotated[str | None, typer.Option(help="The model's name; the run's otherwise.")] = None,
) -> None:
    """Write a model card from the run's files and what was measured."""
    from training.model_card import read_run, write_card

    target = out if out is not None else read_run(run).directory / "README.md"
    if target.is_dir():
        target = target / "README.md"
    typer.echo(f"card: {write_card(run, target, measures or [], name)}")


def _wanted(given: list[str], everything: bool, known: tuple[str, ...]) -> list[str]:
    """The types asked for, each once, in whatever way they were separated."""
    words = [word.strip() for text in given for word in text.split(",") if word.strip()]
    if everything:
        if words:
            raise HaggleError("names every type; give one of both", where="--all, --quantizations")
        return list(known)
    named = [NONE if word.lower() == NONE else word.upper() for word in words]
    if NONE in named and len(set(named)) > 1:
        raise HaggleError("'none' stands alone", where="--quantizations")
    return list(dict.fromkeys(named))


def print_checks(checks: dict[str, dict[str, float | None]]) -> None:
    """The figures of each file read back: logits in transformers, answers in llama.cpp."""
    from rich.console import Console
    from rich.table import Table

    columns = {
        "top1_agreement": ("same top token", "{:.1%}"),
        "mean_kl": ("KL, nats", "{:.2g}"),
        "greedy_prefix": ("same greedy start", "{:.0%}"),
        "next_token": ("same next token", "{:.0%}"),
        "tokens_per_s": ("tokens/s", "{:.0f}"),
    }
    table = Table(title="read back, against the merged model")
    table.add_column("file", no_wrap=True)
    for title, _ in columns.values():
        table.add_column(title)
    for name, check in checks.items():
        values = [(check[key], form) for key, (_, form) in columns.items()]
        table.add_row(name, *("" if v is None else form.format(v) for v, form in values))
    Console().print(table)
