"""What requests and answers look like, and how they are made of episodes and turns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from haggle.core.config import Record
from haggle.core.procedure import Procedure
from haggle.core.text import MAX_UTTERANCE
from haggle.core.turn import Turn
from haggle.sop.domain import SopTurn, Talk
from haggle.trade.lines import lines
from haggle.trade.records import TurnRecord
from haggle.trade.response import ItemLine, MerchantResponse, item_lines
from haggle.trade.session import Session
from haggle.trade.world import MerchantInfo, World
from serving.store.episodes import Held
from serving.store.models import StoredSale

MERCHANT = "merchant"  # the character that trades
PlayerName = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
Money = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class Opening(Record):
    """What opens a session: a character and, for the merchant, a shop that is served (by name) or a
    shop of the game's own. `player` is who pays and whom the ledger names. `profile` is who the
    player is to a character with a procedure: values in place of its task's `user_profile`."""

    character: Annotated[str, Field(min_length=1, max_length=100)] = MERCHANT
    shop: str | dict[str, Any] | None = None
    player: PlayerName | None = None
    profile: dict[str, str] = {}


class Purse(Record):
    """What a player has to spend; null where the game keeps the money."""

    purse: Money | None


class Player(Record):
    """Somebody who buys, and what there is to spend."""

    name: str
    purse: float | None


class Line(Record):
    """What the player says."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_UTTERANCE)]
    stream: bool = False
    explain: bool = False


class Confirmation(Record):
    """The id of the review on the table, which closes its sale."""

    review: Annotated[str, Field(min_length=1, max_length=100)]


class Withheld(Record):
    """Why a sale stays open, and the words of the player that say so."""

    reason: str
    words: str


class Sold(Record):
    """A sale that was confirmed, and its total."""

    items: list[ItemLine]
    price: float


class Shelf(ItemLine):
    """An item on a shelf, with what the merchant can tell about it."""

    description: str = ""
    facts: list[str] = []


class Course(Record):
    """A procedure: its states, what may follow what, the state now, and what may come next."""

    states: list[str]
    edges: list[tuple[str, str]]
    now: str
    legal: list[str]


class Visit(Record):
    """Where a session stands: the true state, the cart with its total, sales, what is left.

    Prices of lines are those of one piece. `review` is the id of the review on the table, `purse`
    what the player can spend (null where the game keeps that). A character that does not trade has
    no shop, and nothing to sell.
    """

    session: str
    character: str
    shop: str | None
    merchant: str
    currency: str | None
    state: str
    procedure: Course
    cart: list[ItemLine]
    price: float | None
    sales: list[Sold]
    shelf: list[Shelf]
    purse: float | None
    ended: bool
    review: str | None
    greeting: str


class Explanation(Record):
    """How a turn came about: what the model was asked, the grammar (GBNF; empty where it was free),
    its own texts, the checks that they failed, what code changed."""

    prompt: list[dict[str, str]]
    grammar: str
    raw: list[str]
    checks: list[str]
    interventions: list[str]


class Decision(Record):
    """What a turn comes to, told before its line."""

    last: str
    state: str
    cart: list[ItemLine]
    price: float | None


class Answer(Decision):
    """A turn: the line to show, what it did, and the merchant's whole response (ASTP, Listing 1).

    `sale` is the sale that this turn confirmed. `review` is the id of the review on the table, for
    `POST .../confirm`; `withheld` says why something irreversible did not happen. `interventions`
    names what code changed to make the model's answer safe. `success`: a character with a procedure
    has reached its goal.
    """

    say: str
    sale: Sold | None
    ended: bool
    seconds: float
    review: str | None
    withheld: Withheld | None
    interventions: list[str]
    response: MerchantResponse | None
    success: bool | None = None
    explain: Explanation | None = None


class PastTurn(Record):
    """A turn as it was stored. `raw` is the model's own text, `checks` what that failed."""

    number: int
    player: str
    say: str
    last: str
    state: str
    interventions: list[str]
    withheld: Withheld | None
    raw: str
    checks: list[str]
    seconds: float


class Receipt(Record):
    """A sale of a session: its lines, what they cost by the list, and what was paid."""

    id: int
    review: str
    items: list[ItemLine]
    list_price: float
    price: float
    currency: str
    time: str


class LedgerEntry(Record):
    """A sale of a shop."""

    id: int
    session: str
    player: str | None
    items: list[ItemLine]
    price: float
    currency: str
    time: str


class ShopEntry(Record):
    """A shop in the list; `items` is how many kinds of goods it sells now."""

    name: str
    merchant: str
    currency: str
    items: int


class ShopView(Record):
    """A shop: what stands on its shelves now, and its definition, which `PUT` takes."""

    name: str
    merchant: MerchantInfo
    currency: str
    shelf: list[Shelf]
    revision: int
    definition: World


class Character(Record):
    """A character that is served. `title` says who it is, `goal` what it works towards."""

    name: str
    kind: Literal["trade", "sop"]
    title: str = ""
    goal: str = ""


def shelf_of(world: World) -> list[Shelf]:
    """What a shop has for sale."""
    return [
        Shelf(
            item_id=item.item_id, item_name=item.item_name, quantity=item.quantity or 0,
            price=item.price, description=item.description, facts=item.facts,
        )
        for item in world.inventory
    ]  # fmt: skip


def sold(session: Session, number: int) -> Sold:
    """One of a session's sales."""
    sale = session.sales[number]
    return Sold(items=item_lines(session.world, sale.items), price=sale.price)


def visit_of(number: str, held: Held, purse: float | None) -> Visit:
    """Where a session stands."""
    episode = held.episode
    common: dict[str, Any] = {
        "session": number, "state": episode.state, "ended": episode.ended, "purse": purse,
        "procedure": _course(episode),
    }  # fmt: skip
    if isinstance(episode, Talk):
        task = episode.task
        return Visit(
            **common, character=task.task, shop=None, currency=None, cart=[], price=None, sales=[],
            shelf=[], review=None, merchant=task.conversation_profile.agent_identity,
            greeting=task.lines.get("Greet", ""),
        )  # fmt: skip
    world = episode.world
    return Visit(
        **common,
        character=MERCHANT,
        shop=world.name,
        merchant=world.merchant.name,
        currency=world.currency,
        cart=item_lines(world, episode.cart),
        price=episode.sale_price,
        sales=[sold(episode, at) for at in range(len(episode.sales))],
        shelf=shelf_of(world),
        review=episode.review.id if episode.review else None,
        greeting=lines().greeting,
    )


def _course(episode: Session | Talk) -> Course:
    procedure: Procedure[Any] = episode.procedure
    if isinstance(episode, Session):
        legal = episode.legal_states()
    else:
        legal = list(dict.fromkeys(act for acts in episode.answers().values() for act in acts))
    edges = [(a, b) for a in procedure.tracked for b in procedure.follows(a)]
    return Course(states=list(procedure.states), edges=edges, now=episode.state, legal=legal)


def decision_of(before: Session | Talk, outcome: Any) -> Decision:
    """What a decided turn comes to, before it is settled."""
    if isinstance(before, Talk):
        return Decision(last=before.last, state=outcome.action.act, cart=[], price=None)
    after = before.branch()
    state = outcome.response.state
    after.settle(state, outcome.cart, outcome.sale_price)
    cart = item_lines(after.world, after.cart)
    return Decision(last=before.last, state=state, cart=cart, price=after.sale_price)


def answer_of(before: Session | Talk, after: Session | Talk, turn: Turn, seconds: float) -> Answer:
    """A turn that was made between two moments of an episode."""
    common: dict[str, Any] = {
        "say": turn.says, "last": turn.last, "state": turn.state, "ended": after.ended,
        "seconds": round(seconds, 3), "interventions": turn.interventions,
        "withheld": Withheld(reason=turn.withheld, words=turn.withheld_words)
        if turn.withheld else None,
    }  # fmt: skip
    if isinstance(turn, TurnRecord) and isinstance(after, Session) and isinstance(before, Session):
        return Answer(
            **common,
            cart=item_lines(after.world, after.cart),
            price=after.sale_price,
            sale=sold(after, -1) if len(after.sales) > len(before.sales) else None,
            review=after.review.id if after.review else None,
            response=turn.response,
        )
    assert isinstance(turn, SopTurn)
    return Answer(
        **common, cart=[], price=None, sale=None, review=None, response=None, success=turn.success
    )


def past_turn(number: int, record: Mapping[str, Any]) -> PastTurn:
    """A stored turn of any character."""
    said = record["line"] if "line" in record else record["response"]["npc_dialogue"]
    reason, words = record.get("withheld", ""), record.get("withheld_words", "")
    return PastTurn(
        number=number,
        player=record["player"],
        say=said,
        last=record["last"],
        state=record["state"],
        interventions=record.get("interventions", []),
        withheld=Withheld(reason=reason, words=words) if reason else None,
        raw=record.get("raw", ""),
        checks=record.get("proposed_failed", []),
        seconds=round(record.get("latency_s", 0.0), 3),
    )


def receipt_of(sale: StoredSale, world: World) -> Receipt:
    """A sale with its lines; `world` names the goods of a sale that was stored without them."""
    found = _lines_of(sale, world)
    whole = sum((line.price or 0) * line.quantity for line in found)
    return Receipt(
        id=sale.id, review=sale.review, items=found, list_price=round(whole, 2), price=sale.price,
        currency=sale.currency or world.currency, time=iso(sale.at),
    )  # fmt: skip


def ledger_entry(sale: StoredSale, world: World) -> LedgerEntry:
    """A sale as the ledger has it."""
    return LedgerEntry(
        id=sale.id, session=sale.session_id, player=sale.player_id, items=_lines_of(sale, world),
        price=sale.price, currency=sale.currency or world.currency, time=iso(sale.at),
    )  # fmt: skip


def _lines_of(sale: StoredSale, world: World) -> list[ItemLine]:
    if sale.lines is None:
        return item_lines(world, sale.items)
    return [ItemLine.model_validate(line) for line in sale.lines]


def iso(seconds: float) -> str:
    """A time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
