"""From what a model proposes to what the player gets: the ledger decides every number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from haggle.trade import placeholders
from haggle.trade.edits import carried_out
from haggle.trade.language import numbers_in
from haggle.trade.ledger import (
    Cart,
    Note,
    counter_offer,
    floor_price,
    price_under,
    resolve_cart,
    speak_cart,
    speak_prices,
    total,
)
from haggle.trade.lines import lines, listed
from haggle.trade.response import ContextDetails, ItemLine, MerchantResponse
from haggle.trade.session import Session
from haggle.trade.wire import MAX_SHOWN, Proposal
from haggle.trade.world import Item, World, money

MAX_NAMED = 80  # as long as an item's name may be
MAX_TOLD = 300  # of what is told of goods


@dataclass(frozen=True, slots=True)
class Resolved:
    """A finished turn: the answer, the ledger after it, and how later turns will see it."""

    response: MerchantResponse
    proposal: Proposal
    cart: Cart
    sale_price: float | None
    shown: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    interventions: tuple[str, ...] = ()
    quoted: str = ""  # what the player said or may have meant: no numbers of the merchant's

    @property
    def extra_numbers(self) -> tuple[float, ...]:
        """True numbers that only the notes speak of: stock left, digits of what is not sold."""
        left = [float(note.left) for note in self.notes if note.kind == "capped"]
        return (*left, *(n for note in self.notes for n in numbers_in(note.name)))


def resolve(
    session: Session, proposal: Proposal, *, guarded: bool, impossible: Sequence[str] = ()
) -> Resolved:
    """Resolve a proposal against the ledger. `impossible` names goods that were left out for their
    number.

    Compact answers never state numbers, so code decides them whatever the guard. Full answers are
    taken at their word unless `guarded`, when items and totals come from the ledger as well.
    """
    if session.codec.states_totals and not guarded:
        return _as_stated(session, proposal)
    world, procedure = session.world, session.procedure
    state = procedure.state(proposal.state)
    cart, sale_price = dict(session.cart), session.sale_price
    shown: tuple[Item, ...] = ()
    notes: tuple[Note, ...] = ()
    interventions: list[str] = []
    if state.payload == "cart":
        asked, notes = resolve_cart(world, carried_out(session, proposal))
        notes += tuple(Note("impossible", name) for name in impossible)
        if asked or not notes:
            if asked != cart:
                sale_price = price_under(world, asked, session.deal) if asked else None
            cart = asked
        if not cart:
            cleared = () if session.cart else None
            proposal = replace(proposal, state=procedure.fallback, cart=cleared, change=None)
            interventions.append("empty_cart")
    elif state.payload == "show":
        shown = _sellable(world, proposal.show or ())
        if not shown:
            shown = world.inventory[:MAX_SHOWN]
            interventions.append("nothing_shown")
            proposal = replace(proposal, show=tuple(i.item_name for i in shown))
        if not shown:
            proposal = replace(proposal, state=procedure.fallback, show=None)
    elif state.payload == "bid" and cart:
        current = sale_price if sale_price is not None else total(world, cart)
        if session.codec.states_totals:
            sale_price = _clamped(world, cart, current, proposal.stated_sale)
        else:
            sale_price = counter_offer(world, cart, current, proposal.bid)
    elif state.may_clear and proposal.cart == ():
        cart, sale_price = {}, None
    notes = tuple(dict.fromkeys((*session.missed, *notes)))
    return finish(session, proposal, cart, sale_price, shown, notes, tuple(interventions))


def finish(
    session: Session,
    proposal: Proposal,
    cart: Cart,
    sale_price: float | None,
    shown: Sequence[Item] = (),
    notes: Sequence[Note] = (),
    interventions: tuple[str, ...] = (),
) -> Resolved:
    """Build the answer for a decided state, cart and price: fill placeholders, add notes."""
    world = session.world
    state = session.procedure.state(proposal.state)
    details = None
    if state.priced:
        items = [_line(world.by_id[item_id], number) for item_id, number in cart.items()]
        details = ContextDetails(
            context_subtype=proposal.state,
            items=items,
            original_price=total(world, cart),
            sale_price=sale_price if sale_price is not None else total(world, cart),
        )
    elif state.payload == "show":
        details = ContextDetails(
            context_subtype=proposal.state, items=[_line(item, 1) for item in shown]
        )
    price = details.sale_price if details and details.sale_price is not None else sale_price
    values = {
        placeholders.CURRENCY: lambda: world.currency,
        placeholders.CART: lambda: speak_cart(world, cart),
        placeholders.ITEMS: lambda: listed([item.item_name for item in shown]),
        placeholders.PRICES: lambda: speak_prices(world, shown),
        placeholders.PRICE: lambda: money(price) if price is not None else "",
    }
    spoken = _spoken(proposal, values, bool(details), lines().safe[proposal.state])
    if "empty_cart" in interventions:
        spoken = "" if notes else lines().notes["empty"]
    if "nothing_shown" in interventions and not shown:
        spoken = lines().notes["nothing"]
    spoken = " ".join([part for part in (spoken, *map(_say_note, notes)) if part])
    response = MerchantResponse(
        last_trade_context=proposal.last,
        context_reason=proposal.extras.get("context_reason", ""),
        context_type=state.context,
        context_details=details,
        npc_thoughts=proposal.extras.get("npc_thoughts", ""),
        npc_action=proposal.extras.get("npc_action", ""),
        npc_dialogue=spoken,
    )
    names = tuple(item.item_name for item in shown)
    return Resolved(response, proposal, cart, sale_price, names, tuple(notes), interventions)


def _spoken(
    proposal: Proposal, values: Mapping[str, Callable[[], str]], trading: bool, safe: str
) -> str:
    """The line with its placeholders filled; the safe line where one of them has no value here."""
    text = proposal.say.strip()
    told = {p: values[p]() for p in placeholders.used(text)}
    filled = placeholders.fill(text, told)
    invented = "__" in filled and "__" in placeholders.fill(text, {})  # not that of a value
    missing = not all(told.values())
    if text and not (missing or invented or (not trading and placeholders.PRICES in text)):
        return filled
    return placeholders.fill(safe, {p: values[p]() for p in placeholders.used(safe)})


def safe_line(session: Session, resolved: Resolved, line: str = "") -> Resolved:
    """The same turn, said in a line of code's own, which is known to be true: `line`, or the one
    that is safe in this state."""
    said = line or lines().safe[resolved.proposal.state]
    told = replace(resolved, interventions=(*resolved.interventions, "safe_line"))
    return worded(session, told, said)


def worded(
    session: Session, resolved: Resolved, say: str, sale_price: float | None = None
) -> Resolved:
    """The same turn, said in this line; at another price, where one is given."""
    proposal = replace(resolved.proposal, say=say)
    details = resolved.response.context_details
    shown = [session.world.by_id[line.item_id] for line in details.items] if details else []
    said = finish(
        session, proposal, resolved.cart, sale_price or resolved.sale_price, shown, resolved.notes,
        resolved.interventions,
    )  # fmt: skip
    return replace(said, quoted=resolved.quoted)


def degraded(session: Session, reason: str) -> Resolved:
    """A safe answer in the previous state, for a turn whose answer cannot be used.

    The ledger does not move: cart, price and tracked state stay. Where the previous state cannot
    be repeated (a sale is never repeated), the procedure's fallback state answers.
    """
    procedure, world = session.procedure, session.world
    state = session.state
    known = procedure.states.get(state)
    if (
        known is None
        or known.clears
        or not procedure.is_valid(session.last, state)
        or (known.priced and not session.cart)
    ):
        state = procedure.fallback
    shown = world.inventory[:MAX_SHOWN] if procedure.state(state).payload == "show" else ()
    proposal = Proposal(
        last=session.last,
        state=state,
        say=lines().safe[state],
        show=tuple(i.item_name for i in shown) or None,
        cart=tuple((world.by_id[i].item_name, n) for i, n in session.cart.items()) or None,
    )
    return finish(
        session, proposal, dict(session.cart), session.sale_price, shown, session.missed,
        interventions=(reason, "degraded"),
    )  # fmt: skip


def _say_note(note: Note) -> str:
    most = MAX_TOLD if note.kind == "told" else MAX_NAMED
    name = " ".join(note.name.replace("__", " ").split())[:most]
    return lines().notes[note.kind].format(name=name, left=note.left)


def _line(item: Item, quantity: int) -> ItemLine:
    return ItemLine(
        item_id=item.item_id, item_name=item.item_name, quantity=quantity, price=item.price
    )


def _sellable(world: World, names: Sequence[str]) -> tuple[Item, ...]:
    unique = {item.item_id: item for item in world.known(names) if item.for_sale}
    return tuple(unique.values())[:MAX_SHOWN]


def _clamped(world: World, cart: Cart, current: float, stated: float | str | None) -> float:
    """A price the model itself named, kept between the floor and the price on the table."""
    if not isinstance(stated, float):
        return current
    return max(min(floor_price(world, cart), current), min(stated, current))


def _as_stated(session: Session, proposal: Proposal) -> Resolved:
    """A full answer without guard, as the papers run it: only allowed placeholders are filled."""
    world, method = session.world, session.method
    state = session.procedure.state(proposal.state)
    details = None
    cart: Cart = dict(session.cart)
    sale: float | None = session.sale_price
    names = proposal.show if proposal.show is not None else [n for n, _ in proposal.cart or ()]
    counts = [q if isinstance(q, int) else 1 for _, q in proposal.cart or ()]
    items = []
    for index, name in enumerate(names):
        item = world.find(name)
        items.append(
            ItemLine(
                item_id=item.item_id if item else name,
                item_name=item.item_name if item else name,
                quantity=counts[index] if counts else 1,
                price=proposal.unit_prices[index] if index < len(proposal.unit_prices) else None,
            )
        )
    computed = sum((line.price or 0) * line.quantity for line in items)
    fills = method.placeholders == "every" or (
        method.placeholders == "offer" and state.payload == "cart"
    )
    if state.priced:
        cart = {line.item_id: line.quantity for line in items if line.item_id in world.by_id}
        agreed = session.sale_price if cart == session.cart and state.payload != "cart" else None
        original = _stated(proposal.stated_original, computed if fills else None)
        sale = _stated(proposal.stated_sale, (agreed or computed) if fills else None)
        details = ContextDetails(
            context_subtype=proposal.state, items=items, original_price=original, sale_price=sale
        )
    elif state.payload == "show":
        details = ContextDetails(context_subtype=proposal.state, items=items)
    values = {placeholders.PRICE: money(sale)} if fills and sale is not None else {}
    spoken = placeholders.fill(proposal.say, values) if fills else proposal.say
    response = MerchantResponse(
        last_trade_context=proposal.last,
        context_type=state.context,
        context_details=details,
        npc_dialogue=spoken or lines().safe[proposal.state],
        **proposal.extras,
    )
    return Resolved(response, proposal, cart, sale)


def _stated(value: float | str | None, computed: float | None) -> float | None:
    if isinstance(value, str):
        return computed if value.strip("_ ") == "PRICE" else None
    return value
