"""Talk to a character in the terminal (`haggle chat`)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from itertools import takewhile
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from haggle.core.agent import SAY, Agent, Decided
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from haggle.core.turn import Turn
from haggle.language.reading import Linker
from haggle.planning.planner import Plan
from haggle.sop.domain import SOP, Talk
from haggle.sop.planning import planning_character
from haggle.sop.task import Task
from haggle.trade.merchant import Guard, Merchant
from haggle.trade.methods import DEFAULT_METHOD, get_method
from haggle.trade.planning import planning_merchant
from haggle.trade.records import TurnRecord
from haggle.trade.session import Session
from haggle.trade.world import World, money

P = TypeVar("P")
QUIT = {"/quit", "/exit", "/q"}
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


def spoken_pieces(pieces: Iterator[str | P]) -> Iterator[str | P]:
    """Of a compact answer that streams in, the words of its spoken line; what is no text as it is.

    Held back where a placeholder may begin: from there on only the finished turn knows what is
    said.
    """
    seen, shown = "", 0
    for piece in pieces:
        if not isinstance(piece, str):
            yield piece
            continue
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


def spoken_turn(
    agent: Agent, episode: Any, text: str, left: Callable[[], bool] = lambda: False
) -> Generator[str | Decided | Turn]:
    """One turn: what is decided, words of the spoken line as they come, then the finished turn,
    which counts.

    Closing it stops the engine's answer. So does `left`, which is asked at each piece of that; then
    there is no turn.
    """
    silent = _may_be_withheld(agent, episode)
    with closing(agent.stream(episode, text)) as answer:
        for piece in spoken_pieces(takewhile(lambda _: not left(), answer)):
            if not (silent and isinstance(piece, str)):
                yield piece


def _may_be_withheld(agent: Agent, episode: Any) -> bool:
    """Whether the line may come before it is decided that a sale closes."""
    reviewed = agent.guard == "state" and episode.procedure.is_review(episode.last)
    return reviewed and not agent.domain.speaks_after(episode)


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
    ask_below: float = 0.0,
    linker: Linker | None = None,
    console: Console | None = None,
    planner: str = "",
) -> Session:
    """Run a conversation until the player quits (`/quit`, end of input) or the merchant ends it."""
    console = console or Console()
    session = Session(world, method=get_method(method), linker=linker)
    console.print(shop_table(world))
    about = f"{engine.name}, {engine.model}, guard {guard}. "
    about += "/shop lists, /confirm buys what was reviewed, /quit leaves."
    commands = {
        "/shop": lambda: console.print(shop_table(session.world)),
        "/confirm": lambda: confirm(session, console),
    }
    plans: list[Plan] = []
    agent: Agent = Merchant(engine, guard, ask_below=ask_below)
    if planner:
        agent = planning_merchant(engine, guard, planner, told=plans.append)
    talk(
        agent, session, world.merchant.name, about, console, commands,
        lambda turn, seconds: status(turn, session, seconds) + _planned(plans),
    )  # fmt: skip
    for sale in session.sales:
        bought = ", ".join(f"{n} x {world.by_id[i].item_name}" for i, n in sale.items.items())
        paid = f"{bought} for {money(sale.price)} {world.currency}"
        console.print(Text.assemble(("bought:", "green"), f" {paid}"), soft_wrap=True)
    return session


def chat_by_task(
    task: Task,
    engine: Engine,
    guard: Guard,
    *,
    console: Console | None = None,
    planner: str = "",
) -> Talk:
    """Run a conversation with a character that keeps to a procedure; a `planner` chooses its
    steps."""
    console = console or Console()
    conversation = Talk(task)
    plans: list[Plan] = []
    agent: Agent = Agent(SOP, engine, guard)
    if planner:
        agent = planning_character(engine, guard, planner, told=plans.append)
    about = f"{engine.name}, {engine.model}, guard {guard}. /quit leaves."
    console.print(Text(task.conversation_profile.agent_identity, "bold"), soft_wrap=True)
    if task.user_profile:
        known = "; ".join(f"{key}: {value}" for key, value in task.user_profile.items())
        console.print(Text(f"You are expected as {known}", "dim"), soft_wrap=True)
    talk(
        agent, conversation, task.task, about, console, {},
        lambda turn, seconds: _step(turn, seconds) + _planned(plans),
    )  # fmt: skip
    reached = "reached" if conversation.success else "not reached"
    goal = f"goal {reached}: {task.conversation_profile.agent_goal}"
    console.print(Text(goal, "dim"), soft_wrap=True)
    return conversation


def _planned(plans: list[Plan]) -> str:
    """What the last plan took."""
    if not plans:
        return ""
    plan = plans[-1]
    why = f", {plan.ended}" if plan.ended else ""
    tokens = plan.cost.prompt_tokens + plan.cost.completion_tokens
    asked = f"{plan.cost.calls} calls in {plan.cost.batches} batches"
    return f"  |  planned: {asked}, {tokens} tokens{why}"


def _step(turn: Any, seconds: float) -> str:
    repaired = f"  [repaired: {', '.join(turn.interventions)}]" if turn.interventions else ""
    heard = f"{turn.last or 'start'} -> {turn.user_state} -> {turn.act}"
    return f"{heard}  |  {seconds:.2f} s{repaired}"


def talk(
    agent: Agent,
    episode: Any,
    name: str,
    about: str,
    console: Console,
    commands: Mapping[str, Callable[[], None]],
    told: Callable[[Any, float], str],
) -> None:
    """Take lines from the player and answer them until one of the two ends the talk."""
    console.print(Text(about, "dim"))
    with console.status(Text(f"{name} looks up")):
        agent.domain.read_ahead(episode)
        agent.warm(episode)
    while not episode.ended:
        try:
            text = console.input("\n[bold cyan]you[/] > ")
        except (EOFError, KeyboardInterrupt):
            console.print()
            break
        if text.strip() in QUIT:
            break
        if text.strip() in commands:
            commands[text.strip()]()
        elif text.strip():
            say_turn(agent, episode, text, name, console, told)


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


def say_turn(
    agent: Agent,
    episode: Any,
    text: str,
    name: str,
    console: Console,
    told: Callable[[Any, float], str],
) -> Turn:
    """Stream one answer to the console, then the line as it stands and where the talk is."""
    started = time.perf_counter()
    # Text, not str: brackets and colons that a player or a world wrote are no markup. Soft-wrapped:
    # rich does not know where on the screen line a piece begins.
    speaker = Text.assemble((name, "bold yellow"), " > ")
    console.print(speaker, end="", soft_wrap=True)
    shown = ""
    for words in spoken_turn(agent, episode, text):
        if isinstance(words, Turn):
            turn = words
            break
        if isinstance(words, Decided):
            continue
        console.print(Text(words), end="", soft_wrap=True)
        shown += words
    line = turn.says
    if line.startswith(shown):
        console.print(Text(line[len(shown) :]), soft_wrap=True)
    else:
        console.print(Text("\n") + speaker + Text(line), soft_wrap=True)
    console.print(Text(told(turn, time.perf_counter() - started), "dim"), soft_wrap=True)
    return turn
