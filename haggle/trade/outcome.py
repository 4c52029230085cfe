"""What became of a decision, in the few words that the model reads before it speaks."""

from __future__ import annotations

from haggle.core.episode import Exchange
from haggle.core.text import clean_utterance, neutralise_markup
from haggle.grammar.json_text import to_json
from haggle.trade.ledger import Note
from haggle.trade.lines import lines
from haggle.trade.resolve import Resolved
from haggle.trade.session import Session, decision_text
from haggle.trade.world import money

MAX_TOLD = 240  # characters of a note or of what is told about goods


def told_as(session: Session, line: str, resolved: Resolved) -> Exchange:
    """A turn as later ones will see it; call before the outcome is carried over."""
    answer = decision_text(session, resolved.proposal, resolved.response)
    told = [answer]
    if session.codec.speaks_after:
        told += [outcome(session, resolved), to_json({"say": resolved.proposal.say})]
    return Exchange(session.note, session.linked_line(line), *map(neutralise_markup, told))


def remember(session: Session, line: str, resolved: Resolved) -> None:
    """Keep a turn for later prompts; call before the outcome is carried over."""
    session.exchanges = (*session.exchanges, told_as(session, line, resolved))


def outcome(session: Session, resolved: Resolved) -> str:
    """The outcome of a decision that is not yet carried over into the session.

    +2 Rope, -1 Axe; only 3 Rope left
    price 40 to 36
    nothing changed
    """
    told = [*_refused(resolved), *_changes(session, resolved), *map(_note, resolved.notes)]
    return "; ".join(told or ["nothing changed"])


def _refused(resolved: Resolved) -> list[str]:
    """Why code did not do as proposed, where it says so itself."""
    known = lines().open
    return [f"held back: {reason}" for reason in resolved.interventions if reason in known][:1]


def _changes(session: Session, resolved: Resolved) -> list[str]:
    """What the decision did to cart, price and shelf."""
    procedure = session.procedure
    state = procedure.state(resolved.proposal.state)
    if state.clears:
        return ["sold" if state.needs_cart else "the talk ends"]
    moved = cart_changes(session, resolved)
    if session.cart and not resolved.cart:
        return ["all put back"]
    if moved:
        return [", ".join(moved)]
    if state.payload == "cart":
        return ["cart as before"]
    if state.payload == "bid":
        return [_price(session, resolved)]
    if state.payload == "show":
        return ["shown"] if resolved.shown else []
    return ["to be confirmed"] if procedure.is_review(resolved.proposal.state) else []


def cart_changes(session: Session, resolved: Resolved) -> list[str]:
    """Lines of the cart that grow or shrink, as `+2 Rope`."""
    before, after = session.cart, resolved.cart
    steps = {i: after.get(i, 0) - before.get(i, 0) for i in (*before, *after)}
    names = session.world.by_id
    return [f"{step:+d} {names[i].item_name}" for i, step in steps.items() if step]


def _price(session: Session, resolved: Resolved) -> str:
    before, after = session.sale_price, resolved.sale_price
    if before is None or after is None or after == before:
        return "price stays"
    return f"price {money(before)} to {money(after)}"


def _note(note: Note) -> str:
    name = clean_utterance(note.name)[:MAX_TOLD]
    kinds = {
        "capped": f"only {note.left} {name} left",
        "not_sold": f"not sold here: {name}",
        "unheard_of": f"nothing here is called {name}",
        "sold_out": f"sold out: {name}",
        "impossible": f"no such number of {name}",
        "purse": "more than the player can pay",
        "told": f"told: {name}",
        "unknown": f"nothing known of {name}",
        "also": f"fits as well: {name}",
    }
    return kinds[note.kind]
