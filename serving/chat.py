"""Talk to a merchant in the terminal (`haggle chat`)."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator
from contextlib import closing

from rich.console import Console
from rich.table import Table
from rich.text import Text

from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from haggle.trade.merchant import Guard, Merchant
from haggle.trade.methods import DEFAULT_METHOD, get_method
from haggle.trade.records import TurnRecord
from haggle.trade.session import Session
from haggle.trade.world import World, money

QUIT = {"/quit", "/exit", "/q"}
SAY = '"say":"'
# The end of the line, or what the finished turn may word otherwise: a placeholder (small models
# drop its underscores), an escape, spaces that fall together.
_HELD = re.compile(r'["\\_]|[A-Z](?:[A-Z]|\Z)|  ')


def shop_table(world: World) -> Table:
    """The shelves of a shop: names, prices, stock."""
    title = Text(f"{world.merchant.name}: {world.situation.location}", "bold")
    table = Table(title=title)
    table.add_column("item")
    table.add_column(Text(f"price ({world.currency})"), justify="right")
    table.add_column("left", justify="right")
    for item in world.inventory:
        table.add_row(Text(item.item_name), money(item.price or 0), str(item.quantity))
    return table


def spoken_pieces(pieces: Iterator[str]) -> Iterator[str]:
    """Of a compact answer that streams in, the words of its spoken line.

    Held back where a placeholder may begin: from there on only the finished turn knows what is
    said.
    """
    seen, shown = "", 0
    for piece in pieces:
        seen += piece
        start = seen.find(SAY)
        if start < 0:
            continue
        line = seen[start + len(SAY) :].lstrip()
        found = _HELD.search(line)
        held = found.start() if found else len(line)
        if held > shown:
            yield line[shown:held]
            shown = held


def spoken_turn(merchant: Merchant, session: Session, text: str) -> Generator[str | TurnRecord]:
    """One turn: words of its spoken line as they come, then the finished turn, whose line counts.

    Closing it stops the engine's answer.
    """
    finished: list[TurnRecord] = []

    def pieces(answer: Iterator[str | TurnRecord]) -> Iterator[str]:
        for piece in answer:
            if isinstance(piece, TurnRecord):
                finished.append(piece)
            else:
                yield piece

    with closing(merchant.stream(session, text)) as answer:
        words = spoken_pieces(pieces(answer))
        if merchant.guard == "state" and session.procedure.is_review(session.last):
            list(words)  # a sale may be withheld: nothing is told before that is decided
        else:
            yield from words
    yield finished[0]


def status(turn: TurnRecord, session: Session, seconds: float) -> str:
    """State, cart, price and time of a turn in one line."""
    cart = ", ".join(f"{n} x {session.world.by_id[i].item_name}" for i, n in turn.cart.items())
    price = f" = {money(session.sale_price)} {session.world.currency}" if session.sale_price else ""
    repaired = f"  [repaired: {', '.join(turn.interventions)}]" if turn.interventions else ""
    if turn.withheld_words:
        repaired += f"  [{turn.withheld}: {turn.withheld_words!r}]"
    tokens = f"{turn.usage.completion_tokens} tokens" if turn.usage.completion_tokens else ""
    held = f"cart: {cart}{price}" if cart else "cart: empty"
    return (
        f"{turn.last or 'start'} -> {turn.state}  |  {held}  |  {seconds:.2f} s {tokens}{repaired}"
    )


def chat(
    world: World,
    engine: Engine,
    guard: Guard,
    *,
    method: str = DEFAULT_METHOD,
    console: Console | None = None,
) -> Session:
    """Run a conversation until the player quits (`/quit`, end of input) or the merchant ends it."""
    console = console or Console()
    session = Session(world, method=get_method(method))
    merchant = Merchant(engine, guard)
    console.print(shop_table(world))
    about = f"{engine.name}, {engine.model}, guard {guard}. "
    about += "/shop lists, /confirm buys what was reviewed, /quit leaves."
    console.print(Text(about, "dim"))
    warm = getattr(engine, "warm", None)
    if warm is not None:
        with console.status("the merchant looks up"):
            warm(session.messages())
    while True:
        try:
            text = console.input("\n[bold cyan]you[/] > ")
        except (EOFError, KeyboardInterrupt):
            console.print()
            break
        if not text.strip():
            continue
        if text.strip() in QUIT:
            break
        if text.strip() == "/shop":
            console.print(shop_table(session.world))
            continue
        if text.strip() == "/confirm":
            confirm(session, console)
            continue
        say_turn(merchant, session, text, console)
        if session.ended:
            break
    for sale in session.sales:
        bought = ", ".join(f"{n} x {world.by_id[i].item_name}" for i, n in sale.items.items())
        paid = f"{bought} for {money(sale.price)} {world.currency}"
        console.print(Text.assemble(("bought:", "green"), f" {paid}"), soft_wrap=True)
    return session


def confirm(session: Session, console: Console) -> None:
    """Close the sale of the review on the table, or say why there is none."""
    try:
        turn = session.confirm(session.review.id if session.review else "")
    except HaggleError as error:
        console.print(Text(f"{error.message}: {error.hint}", "dim"), soft_wrap=True)
        return
    name = Text.assemble((session.world.merchant.name, "bold yellow"), " > ")
    console.print(name + Text(turn.response.npc_dialogue), soft_wrap=True)
    console.print(Text(status(turn, session, 0.0), "dim"), soft_wrap=True)


def say_turn(merchant: Merchant, session: Session, text: str, console: Console) -> TurnRecord:
    """Stream one answer to the console, then the line as it stands and where the trade is."""
    started = time.perf_counter()
    # Text, not str: brackets and colons that a player or a world wrote are no markup. Soft-wrapped:
    # rich does not know where on the screen line a piece begins.
    name = Text.assemble((session.world.merchant.name, "bold yellow"), " > ")
    console.print(name, end="", soft_wrap=True)
    shown = ""
    for words in spoken_turn(merchant, session, text):
        if isinstance(words, TurnRecord):
            turn = words
            break
        console.print(Text(words), end="", soft_wrap=True)
        shown += words
    line = turn.response.npc_dialogue
    if line.startswith(shown):
        console.print(Text(line[len(shown) :]), soft_wrap=True)
    else:
        console.print(Text("\n") + name + Text(line), soft_wrap=True)
    told = status(turn, session, time.perf_counter() - started)
    console.print(Text(told, "dim"), soft_wrap=True)
    return turn
