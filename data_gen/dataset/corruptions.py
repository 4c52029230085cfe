"""Wrong answers to a turn whose right answer is known, one kind of mistake each.

A mistake is made on the `Proposal`, so the wrong answer is as well-formed as the right one. Only
those count that code can tell to be wrong: `faults` resolves and checks them like any answer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from data_gen.language.mentions import number_word
from data_gen.language.phrasebook import PLAIN, load_phrasebook
from haggle.language.english.numbers import numbers_in
from haggle.trade import checks, placeholders
from haggle.trade.ledger import bid_amount, floor_price, total
from haggle.trade.resolve import Resolved, resolve
from haggle.trade.session import Session
from haggle.trade.wire import UNLISTED, Bid, Proposal, Quantity, is_bid
from haggle.trade.world import money, name_words

Kind = Literal[
    "skipped_review", "repeated_review", "wrong_cart", "unsellable", "arithmetic", "below_floor",
    "obeyed_attack", "wrong_last",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
VARIANTS: dict[Kind, tuple[str, ...]] = {
    "skipped_review": ("due", "other_terms", "no_yes"),
    "repeated_review": ("confirmed",),
    "wrong_cart": ("item", "quantity", "missing", "extra", "stale", "forgotten"),
    "unsellable": ("as_sold", "dropped"),
    "arithmetic": ("quantity", "total", "spelled"),
    "below_floor": ("bid", "omitted", "promised"),
    "obeyed_attack": ("sale", "cart", "price"),
    "wrong_last": ("transparent", "forgotten", "other"),
}
ATTACK = "attack"  # acts that begin so are attacks
UNSOLD = frozenset(("not_sold", "sold_out", "impossible"))  # kinds of notes
UNSOLD_ACTS = frozenset(("ask_unsold", "order_unsold"))
# Acts whose new quantity has to be computed from the one in the cart.
COMPUTED_ACTS = frozenset(
    "one_more confirm_one_more add_more put_back_some double double_item halve halve_item".split()
)
_LINES = {"cart": "OFFER_new", "show": "SHOW_item", "bid": "NEGOTIATE"}
Line = tuple[str, Quantity]
Wrong = tuple[str, Proposal]  # the variant of the mistake, and the answer that makes it


@dataclass(frozen=True, slots=True)
class Moment:
    """A turn before its answer: the session, what was said and meant, and the right answer.

    `act` is "" where the player's act is not known; `goal` is what comes of the right answer, whose
    cart is whole; `told` is that answer as it stood, its cart perhaps as a change; `manner` is how
    this merchant speaks.
    """

    session: Session
    utterance: str
    act: str
    right: Proposal
    goal: Resolved
    manner: str = PLAIN
    told: Proposal | None = None

    @property
    def attacked(self) -> bool:
        """Whether the player's line is an attack."""
        return self.act.startswith(ATTACK)


def faults(session: Session, proposal: Proposal, goal: Resolved) -> list[str]:
    """What is wrong with an answer: checks it fails, and what differs from the goal.

    `untold` says that the player does not hear, or hears wrongly, what is not sold. Empty for an
    answer as good as the right one, whatever its words.
    """
    got = resolve(session, proposal, guarded=False)
    failed = checks.failures(
        session.world, session.procedure, session.last, got.response, got.extra_numbers
    )
    differs = {
        "state": got.response.state != goal.response.state,
        "cart": got.cart != goal.cart,
        "sale_price": got.sale_price != goal.sale_price,
        "untold": _unsold(got) != _unsold(goal),
    }
    return [*failed, *(name for name, wrong in differs.items() if wrong)]


def corrupt(
    moment: Moment, kind: Kind, rng: random.Random, variants: Collection[str] | None = None
) -> list[Wrong]:
    """Answers with a mistake of that kind, one for each variant (of `variants`, if given).

    Empty where the turn offers no occasion for it.
    """
    by_variant: dict[str, list[Proposal]] = {}
    for variant, proposal in _CORRUPTIONS[kind](moment, rng):
        if variants is None or variant in variants:
            by_variant.setdefault(variant, []).append(proposal)
    found: list[Wrong] = []
    for variant, proposals in by_variant.items():
        for proposal in rng.sample(proposals, len(proposals)):
            wrong = faults(moment.session, proposal, moment.goal)
            if wrong and (kind != "wrong_cart" or "cart" in wrong):
                found.append((variant, proposal))
                break
    return found


def _unsold(resolved: Resolved) -> set[str]:
    return {note.name for note in resolved.notes if note.kind in UNSOLD}


def _answer(
    moment: Moment, state: str, rng: random.Random, cart: tuple[Line, ...] | None = None,
    show: tuple[str, ...] | None = None, bid: Bid = None,
) -> Proposal:  # fmt: skip
    """An answer in another state, in a line that belongs there."""
    payload = moment.session.procedure.state(state).payload
    say = load_phrasebook().line(_LINES.get(payload or "", state), rng, moment.manner)
    return Proposal(moment.right.last, state, say, cart=cart, show=show, bid=bid)


def _skipped_review(moment: Moment, rng: random.Random) -> Iterator[Wrong]:
    """A sale where the review is due, or where a reviewed cart is changed, haggled over or kept
    waiting."""
    session = moment.session
    if moment.attacked or not session.cart:
        return
    goal = session.procedure.state(moment.goal.response.state)
    for critical in session.procedure.critical:
        reviewed = session.last in critical.only_after
        if moment.goal.response.state in critical.only_after and not reviewed:
            yield "due", _answer(moment, critical.state, rng)
        elif reviewed and goal.payload in {"cart", "bid"}:
            yield "other_terms", _answer(moment, critical.state, rng)
        elif reviewed and goal.transparent:
            yield "no_yes", _answer(moment, critical.state, rng)


def _repeated_review(moment: Moment, rng: random.Random) -> Iterator[Wrong]:
    """Another review where the sale has been confirmed."""
    for critical in moment.session.procedure.critical:
        if moment.goal.response.state == critical.state:
            for name in critical.only_after:
                yield "confirmed", _answer(moment, name, rng)


def _wrong_cart(moment: Moment, rng: random.Random) -> Iterator[Wrong]:
    """Another item or quantity, a line too few or too many, lines that are out of date."""
    right = moment.right
    if right.cart == () and moment.session.cart:
        yield "stale", replace(right, cart=None)
    if not right.cart or _payload(moment) != "cart":
        return
    lines = list(right.cart)
    free = _free(moment)
    for index, (name, number) in enumerate(lines):
        if name.startswith(UNLISTED):
            continue
        if free:
            yield "item", _with(right, lines, index, (_alike(name, free, rng), number))
        for wrong in _near(number):
            yield "quantity", _with(right, lines, index, (name, wrong))
        if len(lines) > 1:
            yield "missing", _with(right, lines, index)
    if free:
        extra = (rng.choice(free), rng.choice((1, 1, 2, 3)))
        yield "extra", replace(right, cart=(*lines, extra))
    ledger = _ledger(moment.session)
    if ledger:
        yield "stale", replace(right, cart=tuple(ledger.items()))
        named = dict(lines)
        for name, old in ledger.items():
            cart = dict(lines) | {name: old}
            yield "stale", replace(right, cart=tuple(cart.items()))
        fresh = tuple((n, q) for n, q in lines if n not in ledger)
        if fresh and named.keys() & ledger.keys():
            yield "forgotten", replace(right, cart=fresh)


def _unsellable(moment: Moment, rng: random.Random) -> Iterator[Wrong]:
    """What is not sold taken for something that is, or passed over in silence."""
    right, free = moment.right, _free(moment)
    if _payload(moment) == "cart":
        lines = list(right.cart or ())
        for index, (name, number) in enumerate(lines):
            if not name.startswith(UNLISTED):
                continue
            if free:
                taken = (_alike(name, free, rng), number)
                yield "as_sold", _with(right, lines, index, taken)
            if len(lines) > 1:
                yield "dropped", _with(right, lines, index)
    elif moment.act in UNSOLD_ACTS and free:
        taken = (_alike(moment.utterance, free, rng), 1)
        cart = (*_ledger(moment.session).items(), taken)
        yield "as_sold", _answer(moment, _state_of(moment, "cart"), rng, cart=cart)


def _arithmetic(moment: Moment, rng: random.Random) -> Iterator[Wrong]:
    """A wrong new quantity where it had to be computed; a wrong total, said as a number."""
    right = moment.right
    if moment.act in COMPUTED_ACTS and right.cart:
        ledger, lines = _ledger(moment.session), list(right.cart)
        for index, (name, new) in enumerate(lines):
            old = ledger.get(name)
            if old is None or not isinstance(new, int) or new == old:
                continue
            for wrong in dict.fromkeys((old, abs(new - old), new + 1, new - 1, new + old)):
                if wrong not in {new, 0}:
                    yield "quantity", _with(right, lines, index, (name, wrong))
    details = moment.goal.response.context_details
    if details is None or details.sale_price is None or placeholders.PRICE not in right.say:
        return
    price = details.sale_price
    pieces = sum(line.price or 0 for line in details.items)
    unit = (details.items[0].price or 0) if details.items else 0
    totals = {pieces, price + unit, price - unit, price * 10, price + 10, price - 10, price * 2}
    for amount in sorted(totals - {price}):
        if amount >= 1:
            yield "total", _saying(right, money(amount))
            if amount == int(amount) < 1_000_000:
                yield "spelled", _saying(right, spelled(int(amount)))


def _below_floor(moment: Moment, rng: random.Random) -> Iterator[Wrong]:
    """A bid misread or passed over, so that another price is agreed; a price promised that is
    below the floor."""
    session, right = moment.session, moment.right
    if _payload(moment) != "bid" or not session.cart:
        return
    listed = total(session.world, session.cart)
    current = session.sale_price if session.sale_price is not None else listed
    for bid in _misread(right.bid, current):
        yield "bid", replace(right, bid=bid)
    if right.bid is not None:
        yield "omitted", replace(right, bid=None)
    floor = floor_price(session.world, session.cart)
    asked = bid_amount(right.bid, current, sum(session.cart.values()))
    low = int(asked) if asked is not None and 1 <= asked < floor else int(floor * 0.8)
    if low >= 1 and placeholders.PRICE in right.say:
        yield "promised", _saying(right, str(low))


def _obeyed_attack(moment: Moment, rng: random.Random) -> Iterator[Wrong]:
    """The sale, the cart or the price that the attack demands."""
    session = moment.session
    if not moment.attacked:
        return
    for critical in session.procedure.critical:
        yield "sale", _answer(moment, critical.state, rng)
    cart = tuple(_ledger(session).items())
    if not cart or rng.random() < 0.5:
        cart += tuple((name, 1) for name in _free(moment)[:1])
    if cart:
        yield "cart", _answer(moment, _state_of(moment, "cart"), rng, cart=cart)
    if session.cart:
        named = [int(n) for n in numbers_in(moment.utterance) if 0 <= n < 1e6]
        bid = named[-1] if named else rng.choice((0, 1, 5))
        yield "price", _answer(moment, _state_of(moment, "bid"), rng, bid=bid)


def _wrong_last(moment: Moment, rng: random.Random) -> Iterator[Wrong]:
    """Another previous state reported."""
    session = moment.session
    procedure = session.procedure
    if session.state and procedure.state(session.state).transparent:
        yield "transparent", replace(moment.right, last=session.state)
    for label in (procedure.start, *procedure.tracked):
        if label != session.last:
            variant = "other" if label != procedure.start else "forgotten"
            yield variant, replace(moment.right, last=label)


_CORRUPTIONS: dict[Kind, Callable[[Moment, random.Random], Iterator[Wrong]]] = {
    "skipped_review": _skipped_review,
    "repeated_review": _repeated_review,
    "wrong_cart": _wrong_cart,
    "unsellable": _unsellable,
    "arithmetic": _arithmetic,
    "below_floor": _below_floor,
    "obeyed_attack": _obeyed_attack,
    "wrong_last": _wrong_last,
}


def spelled(number: int) -> str:
    """A number from 0 to 999,999 in words."""
    if number < 100:
        return number_word(number)
    size, word = (1000, "thousand") if number >= 1000 else (100, "hundred")
    head, rest = divmod(number, size)
    return f"{spelled(head)} {word}" + (f" {spelled(rest)}" if rest else "")


def _payload(moment: Moment) -> str | None:
    return moment.session.procedure.state(moment.right.state).payload


def _state_of(moment: Moment, payload: str) -> str:
    """The state whose answer carries that payload."""
    states = moment.session.procedure.states
    return next(name for name, state in states.items() if state.payload == payload)


def _ledger(session: Session) -> dict[str, int]:
    return {session.world.by_id[i].item_name: n for i, n in session.cart.items()}


def _free(moment: Moment) -> list[str]:
    """Items for sale that stand neither in the ledger nor in the right answer."""
    session = moment.session
    taken = {name for name, _ in moment.right.cart or ()} | _ledger(session).keys()
    return [name for name in session.world.sellable_names if name not in taken]


def _alike(words: str, names: list[str], rng: random.Random) -> str:
    """The name that shares most words with `words`, as a hasty reader would take it; else any."""
    wanted = {w for forms in name_words(words) for w in forms}
    shared = {n: sum(bool(forms & wanted) for forms in name_words(n)) for n in names}
    most = max(shared.values())
    return rng.choice([name for name in names if shared[name] == most])


def _with(right: Proposal, lines: list[Line], index: int, *instead: Line) -> Proposal:
    """The right answer with one line of its cart exchanged, or left out."""
    return replace(right, cart=(*lines[:index], *instead, *lines[index + 1 :]))


def _near(number: Quantity) -> list[Quantity]:
    """Quantities that a number is mistaken for."""
    if isinstance(number, str):
        return ["half" if number == "all" else "all", 1, 2]
    near = dict.fromkeys((number + 1, number - 1, number * 2, number + 10, 1))
    return [n for n in near if n > 0 and n != number]


def _misread(bid: Bid, current: float) -> list[Bid]:
    """Bids that a bid is mistaken for: a digit less, an amount off for a total, percent for coins.

    Of a wish without a number: a number that nobody named.
    """
    if bid is None:
        return [*(max(1, int(current * share)) for share in (0.5, 0.7, 0.9)), "10%", "25%"]
    if isinstance(bid, int):
        amounts = [bid // 10, bid * 10, bid + 10, bid - 10, bid // 2]
        texts = [f"-{bid}", f"{bid} each"]
    else:
        number = int(re.findall(r"\d+", bid)[0])
        amounts = [number]
        texts = [f"-{number}", f"{number} each", f"{number}%", f"{2 * number}%", f"-{10 * number}"]
    found: list[Bid] = [n for n in amounts if n > 0]
    found += [text for text in texts if is_bid(text)]
    return [other for other in dict.fromkeys(found) if other != bid]


def _saying(right: Proposal, amount: str) -> Proposal:
    """The right answer with an amount written where code was to put the price."""
    return replace(right, say=right.say.replace(placeholders.PRICE, amount, 1))
