"""`haggle stats` and `haggle inspect`: a data set in figures, and its dialogues to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from haggle.cli.options import Quiet

if TYPE_CHECKING:
    from data_gen.dataset.card import Papers
    from data_gen.dataset.records import Comparison, Statistics

Dataset = Annotated[Path, typer.Argument(help="Directory of a data set, or one file of it.")]
SHOWN, SHOWN_IN_PAGE = 5, 300
FIGURE = "Figure 4"  # of the ASTP paper: the matrices that stand beside ours


def stats(
    dataset: Dataset,
    out: Annotated[
        Path | None,
        typer.Option(help="Write statistics.json and README.md (the data set's card) there."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Another data set to stand beside it, at equal size.")
    ] = None,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option(help="Measure token lengths: a directory or hub id; may be repeated."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many dialogues a split, drawn at random.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Count, measure and compare data sets; write a data set's card."""
    from data_gen.dataset.card import write_card
    from data_gen.dataset.lengths import cached_tokenizer
    from data_gen.dataset.statistics import collect, compare

    comparison: Comparison | None = None
    if baseline is not None:
        comparison = compare(dataset, baseline, limit=limit, progress=not quiet)
        _print_comparison(comparison)
        if out is None:
            return
    default = cached_tokenizer()
    names = tokenizer or ([default] if default else [])
    if not names:
        typer.echo(
            "token lengths left out: no --tokenizer, and the base model is not here", err=True
        )
    statistics = collect(dataset, limit=limit, tokenizers=names, progress=not quiet)
    if out is None:
        _print_statistics(statistics)
        return
    write_card(
        statistics,
        out,
        files=_patterns(dataset, list(statistics.splits)),
        papers=_papers(),
        comparison=comparison,
    )
    typer.echo(f"card: {out / 'README.md'}")


def inspect(
    dataset: Dataset,
    split: Annotated[str | None, typer.Option(help="train, if not given.")] = None,
    n: Annotated[
        int | None,
        typer.Option("--n", min=1, help=f"How many; {SHOWN}, or {SHOWN_IN_PAGE} with --html."),
    ] = None,
    act: Annotated[str | None, typer.Option(help="With a turn of this player act.")] = None,
    state: Annotated[
        str | None, typer.Option(help="With a turn in this state (of that act, if given).")
    ] = None,
    world: Annotated[str | None, typer.Option(help="Of this shop, or genre of shops.")] = None,
    seed: Annotated[
        int | None, typer.Option(help="Draw them at random; the first ones, if not given.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write one page with filters instead of printing.")
    ] = None,
) -> None:
    """Show dialogues of a data set, in the terminal or as a web page."""
    from data_gen.dataset.browse import Wanted, print_dialogue, select, write_page
    from data_gen.dataset.statistics import splits_of

    split = split or next(iter(splits_of(dataset)))
    wanted = Wanted(act=act, state=state, world=world)
    number = n or (SHOWN_IN_PAGE if html else SHOWN)
    rows = select(dataset, split, wanted, number, seed=seed)
    if html is not None:
        write_page(rows, html, title=f"{dataset.resolve().name}: {split}")
        typer.echo(f"page: {html} ({len(rows)} dialogues)")
        return
    from rich.console import Console

    console = Console()
    for row in rows:
        print_dialogue(row, console, wanted)


def _patterns(dataset: Path, splits: list[str]) -> dict[str, str]:
    """The files of each split as a pattern for the hub."""
    from haggle.dataset import dataset_files

    patterns = {}
    for split in splits:
        files = dataset_files(dataset, split)
        sharded = len(files) > 1 or files[0].stem != split
        patterns[split] = f"{split}-*{files[0].suffix}" if sharded else files[0].name
        if dataset.is_file():
            patterns[split] = dataset.name
    return patterns


def _papers() -> Papers:
    """The papers' rounds and, of the ASTP paper, Figure 4."""
    from data_gen.dataset.card import PaperRounds, Papers, PaperTransitions
    from eval.reference import Transitions, load_reference

    reference = load_reference()

    def filled(table: Transitions) -> PaperTransitions:
        counts = [list(line) for line in table.counts]
        derived = []
        for cell in table.derived:
            _, row, column = cell.field.split(".")
            counts[int(row)][int(column)] = int(cell.value)
            derived.append((int(row), int(column)))
        return PaperTransitions(
            title=f"{table.name} paper, {table.source}",
            scenario=reference.scenarios[table.scenario],
            dialogues=table.dialogues,
            labels=["Start" if label == "<start>" else label for label in table.labels],
            counts=counts,
            derived=derived,
        )

    return Papers(
        rounds=[
            PaperRounds(
                paper=row.paper, source=row.source, scenario=reference.scenarios[row.scenario],
                n=row.n, mean=row.mean, sd=row.sd,
            )
            for row in reference.dialogue_length
        ],
        transitions=[
            filled(t) for t in reference.transitions if t.paper == "astp" and FIGURE in t.source
        ],
    )  # fmt: skip


def _print_statistics(statistics: Statistics) -> None:
    """The main figures of each split side by side."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    splits = statistics.splits.values()
    table = Table(title=Text(statistics.name))
    table.add_column("")
    for name in statistics.splits:
        table.add_column(Text(name), justify="right")

    def add(label: str, values: list[object]) -> None:
        table.add_row(label, *(Text("–" if value is None else str(value)) for value in values))

    def percent(value: float | None) -> str | None:
        return None if value is None else f"{100 * value:.2f}%"

    add("dialogues", [f"{s.dialogues:,}" for s in splits])
    add("turns", [f"{s.turns:,}" for s in splits])
    for scenario in dict.fromkeys(name for s in splits for name in s.rounds):
        rounds = [s.rounds.get(scenario) for s in splits]
        shown = [r and f"{r.mean:.2f} ({r.low:.2f} to {r.high:.2f})" for r in rounds]
        add(f"rounds, {scenario}", list(shown))
    add("acts", [len(s.acts) for s in splits])
    add("voices", [len(s.voices) for s in splits])
    add("genres of shops", [len(s.shops.genres) for s in splits])
    add("dialogues with a sale", [percent(s.with_sale.share) for s in splits])
    for side in ("player", "merchant"):
        lines = [getattr(s, side) for s in splits]
        add(f"{side}: vocabulary", [f"{line.vocabulary:,}" for line in lines])
        for order in (1, 2, 3):
            add(f"{side}: distinct-{order}", [f"{line.distinct[order]:.4f}" for line in lines])
        add(f"{side}: self-BLEU", [line.self_bleu and f"{line.self_bleu:.1f}" for line in lines])
    add("near-duplicate dialogues", [percent(s.near_dialogues.near.share) for s in splits])
    add("near-duplicate player turns", [percent(s.near_player_turns.near.share) for s in splits])
    add("orders with something not sold", [percent(s.orders.unsold.share) for s in splits])
    add("orders above the stock", [percent(s.orders.over_stock.share) for s in splits])
    add("invented item names", [percent(s.shops.invented.share) for s in splits])
    for at, name in enumerate(t.tokenizer for t in next(iter(splits)).tokens):
        add(f"tokens a dialogue, {name}", [f"{s.tokens[at].dialogues.mean:.0f}" for s in splits])
    Console().print(table)


def _print_comparison(comparison: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from data_gen.dataset.card import comparison_rows

    table = Table(title=Text(f"{comparison.dialogues:,} dialogues of each, {comparison.split}"))
    table.add_column("")
    for name in (*comparison.names, "times"):
        table.add_column(Text(name), justify="right")
    for label, *values in comparison_rows(comparison):
        table.add_row(label, *map(Text, values))
    Console().print(table)
