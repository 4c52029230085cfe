"""A teacher's answer as a compact proposal, whatever format it was given in.

Decisions are carried over, and numbers in the spoken line are turned back into placeholders. What
cannot be said in the compact format is given up: `Rejected` says why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from data_gen.acts import Line
from data_gen.teachers.asking import Rejected
from data_gen.teachers.marks import reviews, sales
from data_gen.teachers.reading import Mention, Reader
from haggle.core.text import neutralise_markup
from haggle.grammar.json_text import to_json
from haggle.language.english.numbers import DIGITS
from haggle.trade import placeholders
from haggle.trade.edits import with_whole_cart
from haggle.trade.ledger import Cart, bid_amount
from haggle.trade.methods import Method
from haggle.trade.procedure import State
from haggle.trade.resolve import Resolved, resolve
from haggle.trade.response import MerchantResponse
from haggle.trade.session import Session
from haggle.trade.wire import MAX_SHOWN, UNLISTED, Bid, Proposal
from haggle.trade.world import Item, money

MAX_SAY = 320  # characters
MAX_BID = 999_999
CENT = 0.005

_SENTENCE = re.compile(r"(?<=[.!?…])[\"”']?\s+")
_AND = re.compile(
    r"\s*[,;+&/]?\s*(?:\b(?:and|plus|as well as|along with|or)\b)?\s*"
    r"(?:\b(?:the|my|your|our|some)\b)?\s*",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"\b(?:not|n't|no|never|none|nor|neither|cannot)\b.*\b(?:sell|sold|carry|stock|keep|offer|have|"
    r"got|available|supply|sale)\b|\b(?:sell|carry|stock|have|got)\b.*\b(?:no|none)\b"
    r"|n['’]t (?:sell|carry|stock|keep|have|offer|got|deal)"
    r"|\bonly (?:have|got|carry)\b|\b(?:have|got) only\b|\bleft\b|\bout of\b|\bsold out\b",
    re.IGNORECASE,
)
_OFF = r"(?:off|less|cheaper|lower|discount|reduction)"
_CUT = r"(?:knock|shave|minus|deduct|subtract)"
_UNSURE = rf"\b(?:{_CUT}|{_OFF}|drop|cut|reduce|lower|each|apiece|per)\b"
_PART = re.compile(r"\b(?:half|halve|third|quarter|double|twice|free|nothing|gratis)\b", re.I)


@dataclass(frozen=True, slots=True)
class Truth:
    """What the oracle would have proposed for a scripted line, and the turn that makes."""

    oracle: Proposal
    goal: Resolved


def to_compact(
    session: Session,
    method: Method,
    proposal: Proposal,
    response: MerchantResponse,
    player: str,
    reader: Reader,
    truth: Truth | None,
) -> Proposal:
    """The compact proposal for an answer that a teacher gave by `method`.

    `session` is the compact one before the turn, `response` the answer taken at its word. With a
    `truth`, what a full answer cannot say (what was asked for, the player's bid) is the oracle's.
    Raises Rejected.
    """
    state = session.procedure.state(proposal.state)
    proposal = with_whole_cart(session, proposal)
    candidate = Proposal(
        last=session.last, state=proposal.state, say=proposal.say,
        cart=proposal.cart, show=proposal.show, bid=proposal.bid,
    )  # fmt: skip
    if method.codec.states_totals:
        candidate = _payload(session, state, candidate, response, player, reader, truth)
    candidate = replace(
        candidate, show=_shown(session, candidate.show), cart=_listed(session, candidate.cart)
    )
    resolved = resolve(session, replace(candidate, say=""), guarded=True)
    stated = _stated(response)
    if method.codec.states_totals and state.payload == "bid":
        _same_outcome(session, candidate.bid, stated, resolved.sale_price)
    return replace(candidate, say=to_placeholders(session, resolved, stated, candidate.say, reader))


def _shown(session: Session, names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Items shown by their own names."""
    if names is None:
        return None
    items = [session.world.find(name) for name in names]
    if not all(item is not None and item.for_sale for item in items):
        raise Rejected("sellable", "it showed something that is not for sale here")
    if len(names) > MAX_SHOWN:
        raise Rejected("too_many", f"it showed more than {MAX_SHOWN} items; choose the best")
    return tuple(dict.fromkeys(item.item_name for item in items if item is not None))


def _listed(session: Session, lines: Sequence[Line] | None) -> tuple[Line, ...] | None:
    """A cart with what is sold by its own name, and `?` before what is not."""
    if lines is None:
        return None
    wrong = Rejected(
        "unlisted", "a cart names items as in the inventory, and marks only the others with ?"
    )
    found: list[Line] = []
    for name, quantity in lines:
        item = session.world.find(name.removeprefix(UNLISTED))
        sold = item is not None and item.for_sale
        if sold == name.startswith(UNLISTED):
            raise wrong
        found.append((item.item_name if item and sold else name, quantity))
    return tuple(found)


def keep_ledger(session: Session, response: MerchantResponse) -> None:
    """Raise Rejected unless a priced answer that makes no cart repeats the cart and its price.

    The price may be another one where it is haggled about.
    """
    details, state = response.context_details, session.procedure.state(response.state)
    if details is None or not state.priced or state.payload == "cart":
        return
    if response.cart != session.cart:
        raise Rejected("ledger", f"the cart was {cart_text(session, session.cart)}: repeat that")
    stated, price = details.sale_price, session.sale_price
    if state.payload == "bid" or stated is None or price is None:
        return
    if abs(stated - price) > CENT:
        raise Rejected("ledger", f"the price agreed so far is {money(price)}: repeat that")


def _payload(
    session: Session,
    state: State,
    candidate: Proposal,
    response: MerchantResponse,
    player: str,
    reader: Reader,
    truth: Truth | None,
) -> Proposal:
    """The payload of a full answer in compact terms."""
    if state.payload == "show":
        return replace(candidate, cart=None, bid=None)
    if truth is not None and truth.oracle.state == candidate.state:
        if state.payload == "cart" and response.cart != truth.goal.cart:
            expected = cart_text(session, truth.goal.cart)
            raise Rejected("label_cart", f"the items and quantities should be {expected}")
        return replace(candidate, cart=truth.oracle.cart, bid=truth.oracle.bid, show=None)
    if state.payload == "cart":
        details = response.context_details
        lines = [(i.item_name, i.quantity) for i in details.items] if details else []
        return replace(candidate, cart=tuple(lines), bid=None)
    bid = read_bid(player, session, reader) if state.payload == "bid" else None
    return replace(candidate, cart=None, bid=bid)


def read_bid(player: str, session: Session, reader: Reader) -> Bid:
    """What a haggling line proposes, in the compact format's terms; None when it names no number.

    Raises Rejected where more than one thing may be meant.
    """
    unclear = Rejected("bid", "what the player offers cannot be told")
    reading = reader.read(player)
    left = [n for n in reading.numbers if not n.soft]
    if _PART.search(player):
        raise unclear
    if not left:
        return None
    if len({n.value for n in left}) > 1:
        raise unclear
    number = left[-1]
    value = int(number.value)
    if value != number.value or not 0 <= value <= MAX_BID:
        raise unclear
    unit = rf"(?:\s*{re.escape(session.world.currency)})?"
    before, behind = player[: number.start], player[number.end :]
    if re.match(r"\s*(?:%|per ?cent)", behind, re.I):
        if value > 99:
            raise unclear
        return f"{value}%"
    if re.match(rf"{unit}\s+(?:each|apiece|a ?piece|per|for each)\b", behind, re.I):
        return f"{value} each"
    if re.search(r"\b(?:to|at|for)\s*$", before, re.I):
        return value
    if re.match(rf"{unit}\s+{_OFF}\b", behind, re.I) or re.search(
        rf"\b(?:{_CUT}(?:\s+(?:it|that|off))*|by)\s*$", before, re.I
    ):
        return f"-{value}"
    if re.search(_UNSURE, player, re.I):
        raise unclear
    return value


def _stated(response: MerchantResponse) -> float | None:
    details = response.context_details
    return details.sale_price if details else None


def _same_outcome(session: Session, bid: Bid, stated: float | None, computed: float | None) -> None:
    """Whether the teacher did with the price what code does: held it, met it half-way, accepted."""
    current = session.sale_price
    if stated is None or computed is None or current is None:
        return
    wanted = bid_amount(bid, current, sum(session.cart.values()))

    def kind(price: float) -> str:
        if abs(price - current) <= CENT:
            return "held"
        return "accepted" if wanted is not None and abs(price - wanted) <= CENT else "lowered"

    if kind(stated) != kind(computed):
        raise Rejected(
            "outcome", f"this merchant asks {money(computed)} now: say that, as sale_price too"
        )


def to_placeholders(
    session: Session, resolved: Resolved, stated: float | None, say: str, reader: Reader
) -> str:
    """A spoken line with its numbers turned back into placeholders.

    Sentences whose numbers have no placeholder are left out, and so are remarks on stock that code
    makes itself. Raises Rejected when too little is left.
    """
    state = session.procedure.state(resolved.response.state)
    text = " ".join(say.split())
    if neutralise_markup(text) != text:
        raise Rejected("markup", "it held chat markup")
    details = resolved.response.context_details
    if state.priced:
        names = {session.world.by_id[i].item_name: n for i, n in resolved.cart.items()}
        text = _cart_to_placeholder(text, names, reader)
        for price in (resolved.sale_price, stated):
            text = placeholders.unfill(text, money(price) if price is not None else None)
    elif state.payload == "show" and details is not None:
        shown = [session.world.by_id[line.item_id] for line in details.items]
        text = _shown_to_placeholder(text, shown, session.world.currency, reader)
    kept = [s for s in _SENTENCE.split(text) if _sayable(s, resolved, reader)]
    text = " ".join(kept).strip()
    _complete(session, state, resolved, text)
    return text


def _sayable(sentence: str, resolved: Resolved, reader: Reader) -> bool:
    """Whether a sentence speaks no number of its own, and no remark that code adds by itself."""
    reading = reader.read(placeholders.fill(sentence, {}))
    if reading.values or any((m.quantity or 1) != 1 for m in reading.mentions):
        return False
    return not (resolved.notes and _REMARK.search(sentence))


def _complete(session: Session, state: State, resolved: Resolved, text: str) -> None:
    """Raise Rejected when a line lacks what its state needs, or holds what has no value there."""
    if not re.search(r"\w", placeholders.fill(text, {})) and not placeholders.used(text):
        raise Rejected(
            "numbers_left", "it named numbers that code fills in; leave quantities and prices out"
        )
    if len(text) > MAX_SAY:
        raise Rejected("long", f"what is said is longer than {MAX_SAY} characters")
    allowed = {placeholders.CURRENCY}
    if resolved.cart:
        allowed |= {placeholders.PRICE, placeholders.CART}
    if state.payload == "show":
        allowed |= {placeholders.ITEMS, placeholders.PRICES}
    wrong = placeholders.used(text) - allowed
    if wrong or "__" in placeholders.fill(text, {}):
        raise Rejected("placeholder", "it used a placeholder that has no value here")
    if state.payload == "cart":
        if placeholders.PRICE not in placeholders.used(text):
            raise Rejected("no_price", f"it must name the total, as {placeholders.PRICE}")
        if not resolved.notes and _REMARK.search(text):
            raise Rejected("remark", "it spoke of something not sold or not in stock")
    name = resolved.response.state
    if name in reviews(session.procedure) and "?" not in text:
        raise Rejected("no_question", "it must end with a question that asks to confirm")
    if name in sales(session.procedure) and "?" in text:
        raise Rejected("question", "the sale is done: it must not ask anything any more")


def _runs(text: str, mentions: Sequence[Mention]) -> list[list[Mention]]:
    """Mentions that form one list: nothing but commas and `and` between them."""
    runs: list[list[Mention]] = []
    for mention in mentions:
        if runs and _AND.fullmatch(text[runs[-1][-1].stop : mention.begin]):
            runs[-1].append(mention)
        else:
            runs.append([mention])
    return runs


def _cart_to_placeholder(text: str, cart: dict[str, int], reader: Reader) -> str:
    """Every list of exactly the cart's lines, as the cart's placeholder."""
    for run in reversed(_runs(text, reader.read(text).mentions)):
        lines = {m.name: m.quantity or 1 for m in run}
        counted = len(run) == len(lines) and lines == cart
        if counted and (any(m.quantity for m in run) or sum(cart.values()) == 1):
            text = text[: run[0].begin] + placeholders.CART + text[run[-1].stop :]
    return text


def _shown_to_placeholder(text: str, shown: Sequence[Item], currency: str, reader: Reader) -> str:
    """A list of all items shown, or of all with their prices, as the placeholder for it."""
    by_name = {item.item_name: item for item in shown}
    priced = re.compile(
        rf"[\s,:(–-]*(?:\b(?:for|at|is|are|costs?|goes? for|only|just)\b\s*)*"
        rf"({DIGITS})\s*(?:{re.escape(currency)})?(?:\s+(?:each|apiece|a piece))?\)?",
        re.IGNORECASE,
    )
    ends: list[Mention] = []
    prices = 0
    for mention in reader.read(text).mentions:
        item = by_name.get(mention.name)
        match = priced.match(text, mention.end)
        if item and match and match[1].replace(",", "") == money(item.price or 0):
            prices += 1
            mention = replace(mention, stop=match.end(), quantity=None)
        ends.append(mention)
    for run in reversed(_runs(text, ends)):
        names = [m.name for m in run]
        whole = len(names) == len(by_name) and set(names) == set(by_name)
        if whole and prices in {0, len(names)} and not any(m.quantity for m in run):
            filler = placeholders.PRICES if prices else placeholders.ITEMS
            start = run[0].begin
            if prices:
                start -= len(re.search(r"(?:\bthe\s+)?$", text[:start], re.I)[0])  # type: ignore[index]
            text = text[:start] + filler + text[run[-1].stop :]
    return text


def cart_text(session: Session, cart: Cart) -> str:
    """A cart as a correction names it."""
    return to_json([[session.world.by_id[i].item_name, n] for i, n in cart.items()])
