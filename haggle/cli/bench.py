"""`haggle bench serve`: how fast an engine serves simulated players."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from haggle.cli.options import Engine, Gguf, Model, Quiet

COLUMNS = {
    "players": (
        "players", "turns_per_s", "raw_turns_per_s", "first_word", "p50_s", "p95_s", "p99_s",
        "longest_s",
    ),
    "own": (
        "items", "turns", "own_p50_ms", "own_p95_ms", "cpu_p50_ms", "cpu_p95_ms", "turn_p50_s",
    ),
    "size": (
        "items", "turn", "turns", "prompt_tokens", "read_tokens", "read_s", "made_tokens",
        "write_s", "token_ms", "seconds",
    ),
}  # fmt: skip

bench_app = typer.Typer(no_args_is_help=True, help="Measure speed.")


@bench_app.callback()
def bench() -> None:
    """Measure speed."""


class Part(StrEnum):
    """What is measured."""

    GUARD = "guard"
    PLAYERS = "players"
    SIZE = "size"
    OWN = "own"
    ADAPTERS = "adapters"


@bench_app.command()
def serve(
    engine: Engine = "llamacpp",
    gguf: Gguf = None,
    model: Model = None,
    part: Annotated[
        list[Part] | None,
        typer.Option(help="guard, players, size, own, adapters; the first three, if not given."),
    ] = None,
    players: Annotated[str, typer.Option(help="How many players at once.")] = "1,16",
    turns: Annotated[int, typer.Option(min=1, help="Timed turns (of each talk).")] = 12,
    sizes: Annotated[str, typer.Option(help="Items of the shops.")] = "5,20,40",
    length: Annotated[int, typer.Option(min=1, help="Turns of each shop's dialogue.")] = 30,
    world: Annotated[
        str, typer.Option(help="A world for guard, players and adapters: a name or a file.")
    ] = "frontier_shop",
    out: Annotated[Path | None, typer.Option(help="Write the figures to this JSON file.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw what size and length cost (.png, .svg).")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Turns a second, waits; what guard, shop size, length, adapters and Haggle's own work cost.

    Interrupted with Ctrl-C, it shows and writes the parts that are done.
    """
    from functools import partial

    from rich.console import Console

    from eval.plots import plotter
    from eval.serving import (
        adapters_in_turns,
        guard_beside_none,
        own_work,
        players_at_once,
    )
    from eval.turn_cost import PICTURE, draw_cost, size_and_length
    from haggle.core.errors import HaggleError
    from haggle.core.storage import write_json
    from serving.engines import ask_below_of, method_of, open_engine

    parts = part or (Part.GUARD, Part.PLAYERS, Part.SIZE)
    if plot is not None and Part.SIZE not in parts:
        raise HaggleError("only size is drawn", where="--plot", hint="add --part size")
    draw = None if plot is None else plotter(plot, draw_cost, PICTURE)
    asked = method_of(engine, gguf, model), ask_below_of(engine, gguf, model)
    counts, items = _numbers(players, "--players"), _numbers(sizes, "--sizes")
    loaded = open_engine(engine, gguf, model)
    figures: dict[str, Any] = {"engine": loaded.name, "model": Path(loaded.model).name}
    try:
        with Console(stderr=True, quiet=quiet).status("starting") as status:
            measure: dict[Part, Callable[[Callable[[str], None]], Any]] = {
                Part.GUARD: partial(guard_beside_none, loaded, *asked, world, turns),
                Part.PLAYERS: partial(players_at_once, loaded, *asked, world, counts, turns),
                Part.SIZE: partial(size_and_length, loaded, *asked, items, length),
                Part.OWN: partial(own_work, loaded, *asked, items, turns),
                Part.ADAPTERS: partial(adapters_in_turns, loaded, asked[0], world, turns),
            }
            for chosen in parts:
                figures[chosen.value] = measure[chosen](status.update)
    finally:
        loaded.close()
        _show(figures)
        if out is not None:
            write_json(out, figures)
        if draw is not None and Part.SIZE in figures:
            draw(figures[Part.SIZE])


def _show(figures: dict[str, Any]) -> None:
    """Print each part that was measured."""
    from eval.turn_cost import cost_rows
    from haggle.cli.tables import print_columns, print_table

    for name, found in figures.items():
        if name == Part.SIZE:
            print_columns(name, cost_rows(found), COLUMNS[name])
            for talk in found:
                if talk["ended"]:
                    typer.echo(f"{talk['items']} items: the talk ended {talk['ended']}")
        elif isinstance(found, list):
            print_columns(name, found, COLUMNS[name])
        elif isinstance(found, dict):
            print_table(name, found)


@bench_app.command()
def load(
    urls: Annotated[list[str], typer.Argument(help="Servers that share one database.")],
    shop: Annotated[str, typer.Option(help="A shop that they serve.")] = "frontier_shop",
    sessions: Annotated[int, typer.Option(min=1, help="Customers at once.")] = 20,
    turns: Annotated[int, typer.Option(min=1, help="Turns in all.")] = 500,
    seed: Annotated[int, typer.Option(help="Which server is asked when.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the figures to this JSON file.")] = None,
    quiet: Quiet = False,
) -> None:
    """Let customers shop at running servers, a turn here and a turn there, and check the ledger.

    Fails where a sale is lost or doubled, or a turn ends in an error.
    """
    import asyncio

    from rich.console import Console

    from eval.load import load as run
    from haggle.cli.tables import print_table
    from haggle.core.errors import HaggleError
    from haggle.core.storage import write_json

    hosts = [url.rstrip("/") for url in urls]
    with Console(stderr=True, quiet=quiet).status("starting") as status:
        figures = asyncio.run(run(hosts, shop, sessions, turns, status.update, seed))
    for name, found in figures.items():
        if isinstance(found, dict) and found:
            print_table(name, found)
    print_table("memory", {"MiB, start to end": str(figures["memory_mib"])})
    if out is not None:
        write_json(out, figures)
    books = figures["books"]
    if figures["errors"] or books["lost"] or books["doubled"]:
        raise HaggleError("the servers did not keep up", where=", ".join(hosts), hint=str(books))


def _numbers(text: str, where: str) -> list[int]:
    from haggle.core.errors import HaggleError

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise HaggleError(f"no list of numbers: {text!r}", where=where, hint="write 1,4,16")
    return numbers
