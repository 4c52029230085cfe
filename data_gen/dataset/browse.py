"""Read dialogues of a data set: in the terminal, or in one self-contained web page with filters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from data_gen.dataset.counting import UNKNOWN, check_parts, genre_of, source_of
from data_gen.dataset.diversity import Reservoir
from haggle.core.errors import HaggleError, nearest
from haggle.core.storage import atomic_write_text
from haggle.dataset import decisions, located_rows, whole_answers
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import UNLISTED

if TYPE_CHECKING:
    from rich.console import Console

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which dialogues to show: those with a turn of this act and state, in this shop or genre."""

    act: str | None = None
    state: str | None = None
    world: str | None = None

    def turn(self, turn: Row) -> bool:
        """Whether a turn has the act and the state asked for."""
        return (self.act is None or turn.get("act") == self.act) and (
            self.state is None or turn["state"] == self.state
        )

    def row(self, row: Row) -> bool:
        """Whether a dialogue is wanted."""
        world = str(row.get("world"))
        here = self.world is None or self.world in {world, genre_of(world)}
        return here and any(map(self.turn, row["turns"]))

    @property
    def marks(self) -> bool:
        """Whether single turns are asked for."""
        return self.act is not None or self.state is not None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One round as it is shown. `cart` is the ledger after it in words, `raw` what a model says."""

    player: str
    act: str
    last: str
    state: str
    cart: str
    npc: str
    raw: str


@dataclass(frozen=True, slots=True)
class View:
    """A dialogue as it is shown."""

    id: str
    scenario: str
    world: str
    source: str
    voice: str
    teacher: str
    system: str
    exchanges: list[Exchange] = field(default_factory=list)


def select(
    path: Path, split: str, wanted: Wanted, number: int, *, seed: int | None = None
) -> list[Row]:
    """The first `number` dialogues that are wanted, or with a seed as many drawn at random.

    Raises HaggleError naming the nearest act, state or shop when there is none, and for a data set
    that is not there, is empty or cannot be read.
    """
    if wanted.state is not None:
        states = load_procedure().states
        if wanted.state not in states:
            raise HaggleError(
                f"unknown state {wanted.state!r}",
                where="--state",
                hint=nearest(wanted.state.upper(), states),
            )
    acts: set[str] = set()
    worlds: set[str] = set()
    matching = (row for row in _noted(path, split, acts, worlds) if wanted.row(row))
    if seed is None:
        found = list(islice(matching, number))
    else:
        sample: Reservoir[Row] = Reservoir(number, f"inspect/{seed}")
        for row in matching:
            sample.add(row)
        found = sample.kept
    if found:
        return found
    if not worlds:
        raise HaggleError(
            f"split {split!r} is empty: no dialogue in it",
            where=str(path),
            hint="make a data set with `haggle generate`",
        )
    if wanted.act is not None and wanted.act not in acts:
        raise HaggleError(
            f"no turn has the act {wanted.act!r}",
            where="--act",
            hint=nearest(wanted.act, acts) if acts else "this data set records no acts",
        )
    if wanted.world is not None and wanted.world not in worlds:
        raise HaggleError(
            f"no dialogue in a shop or genre {wanted.world!r}",
            where="--world",
            hint=nearest(wanted.world, {genre_of(world) for world in worlds}),
        )
    raise HaggleError("no dialogue fits all of the filters", hint="leave one of them out")


def _noted(path: Path, split: str, acts: set[str], worlds: set[str]) -> Iterator[Row]:
    """Rows as read; what acts and shops they have is noted on the way."""
    for where, row in located_rows(path, split):
        turns, _ = check_parts(row, where)
        acts.update(turn["act"] for turn in turns if turn.get("act"))
        world = str(row.get("world"))
        worlds.update((world, genre_of(world)))
        yield row


def view(row: Row) -> View:
    """A row as it is shown: names in place of item ids, prices from the ledger notes."""
    messages = row["messages"]
    kind, voice = source_of(row)
    system = messages[0]["content"] if messages and messages[0]["role"] == "system" else ""
    notes = [_note(messages[at - 1]["content"]) for at in decisions(messages)]
    answers = whole_answers(messages)
    names: dict[str, str] = {}
    exchanges = []
    for index, turn in enumerate(row["turns"]):
        items, price = notes[index + 1] if index + 1 < len(notes) else ([], "")
        raw = answers[index] if len(answers) == len(row["turns"]) else ""
        exchanges.append(
            Exchange(
                player=turn["player"],
                act=turn.get("act") or "",
                last=turn.get("last") or "start",
                state=turn["state"],
                cart=_cart(turn.get("cart"), items or _asked(raw), price, names),
                npc=turn["npc_dialogue"],
                raw=raw,
            )
        )
    return View(
        id=str(row.get("id", "")),
        scenario=str(row.get("scenario") or UNKNOWN),
        world=str(row.get("world") or UNKNOWN),
        source=kind,
        voice=voice,
        teacher=str(row.get("teacher") or UNKNOWN),
        system=system,
        exchanges=exchanges,
    )


def _note(text: str) -> tuple[list[Any], str]:
    """Cart and price of the ledger note before a player's line (compact prompt)."""
    head = text.partition("\n")[0].removeprefix("cart ")
    lines, _, price = head.rpartition(" price ")
    try:
        items = json.loads(lines)
    except ValueError:
        return [], ""
    return (items, price) if isinstance(items, list) else ([], "")


def _asked(raw: str) -> list[Any]:
    """What a compact answer puts into the cart, without what is not sold."""
    try:
        answer = json.loads(raw)
    except ValueError:
        return []
    cart = answer.get("cart") if isinstance(answer, dict) else None
    return [line for line in cart or () if not str(line[0]).startswith(UNLISTED)]


def _cart(text: Any, items: list[Any], price: str, names: dict[str, str]) -> str:
    """`2 x Rope, 1 x Lantern = 80`. Ids have names once a note or an answer has told them."""
    try:
        cart = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return str(text)
    if not cart:
        return ""
    if len(items) == len(cart):
        names |= {item_id: str(item[0]) for item_id, item in zip(cart, items, strict=True)}
    else:
        price = ""
    said = ", ".join(
        f"{number} x {names.get(item_id, item_id)}" for item_id, number in cart.items()
    )
    return f"{said} = {price}" if price else said


def print_dialogue(row: Row, console: Console, wanted: Wanted | None = None) -> None:
    """Print one dialogue; turns asked for are marked."""
    from rich.text import Text

    shown, wanted = view(row), wanted or Wanted()
    console.rule(Text(shown.id, style="bold"))
    facts = (shown.scenario, shown.world, f"{shown.source} {shown.voice}", f"by {shown.teacher}")
    console.print(Text("  |  ".join(facts), style="dim"))
    for turn, exchange in zip(row["turns"], shown.exchanges, strict=True):
        hit = wanted.marks and wanted.turn(turn)
        console.print(Text.assemble(("player    ", "bold cyan"), exchange.player))
        console.print(Text.assemble(("merchant  ", "bold green"), exchange.npc))
        label = f"          {exchange.last} -> {exchange.state}"
        label += f"  |  {exchange.act}" if exchange.act else ""
        label += f"  |  {exchange.cart}" if exchange.cart else ""
        console.print(Text(label + ("  <--" if hit else ""), style="yellow" if hit else "dim"))
    console.print()


def write_page(rows: Sequence[Row], path: Path, title: str) -> None:
    """Write the dialogues as one page that needs nothing else."""
    atomic_write_text(path, render_page(rows, title))


def render_page(rows: Iterable[Row], title: str) -> str:
    """The page: every dialogue, and filters by act, state, scenario, voice and words."""
    views = [view(row) for row in rows]
    states = {e.state for v in views for e in v.exchanges}
    page = _environment().get_template("browse.jinja")
    return page.render(
        title=title,
        views=views,
        filters={
            "act": sorted({e.act for v in views for e in v.exchanges if e.act}),
            "state": [state for state in load_procedure().states if state in states],
            "scenario": sorted({v.scenario for v in views}),
            "voice": sorted({v.voice for v in views}),
        },
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=True,  # what players and models wrote ends up in the page
        trim_blocks=True,
        lstrip_blocks=True,
    )
