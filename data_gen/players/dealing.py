"""Moves about the price and the deal: haggling, agreeing, confirming, hesitating."""

from __future__ import annotations

from data_gen.acts import Act, Kind, Spoken
from data_gen.players.speaker import Move, Moves, Speaker
from haggle.trade.ledger import floor_price, total
from haggle.trade.session import Session
from haggle.trade.world import money


def price_of(s: Session) -> float:
    """The price on the table."""
    return s.sale_price if s.sale_price is not None else total(s.world, s.cart)


def plain(name: str, kind: Kind, **fixed: str) -> Move:
    """An act that carries nothing but its words."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        return p.say(Act(name, kind), **fixed)

    return move


def haggle_sum(name: str) -> Move:
    """A total proposed, in the phrases of `name`."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        low = floor_price(s.world, s.cart) * p.rng.uniform(0.5, 1.08)
        bid = max(1, min(round(low), round(price_of(s)) - 1))
        if bid > 20 and p.rng.random() < 0.8:
            bid = bid // 5 * 5
        return p.say(Act(name, "haggle", bid=bid), "price", price=str(bid))

    return move


def haggle_each(p: Speaker, s: Session) -> Spoken | None:
    """A price per piece, of one kind of item."""
    pieces = sum(s.cart.values())
    if len(s.cart) != 1 or pieces < 2:
        return None
    each = max(1, round(price_of(s) / pieces * p.rng.uniform(0.6, 0.95)))
    return p.say(Act("haggle_each", "haggle", bid=f"{each} each"), "price", price=str(each))


def haggle_percent(p: Speaker, s: Session) -> Spoken | None:
    """A share off the price."""
    percent = p.rng.choice((5, 8, 10, 10, 12, 15, 20, 25, 30, 40, 50))
    act = Act("haggle_percent", "haggle", bid=f"{percent}%")
    return p.say(act, "percent", percent=str(percent))


def haggle_off(p: Speaker, s: Session) -> Spoken | None:
    """An amount off the price."""
    amount = max(1, round(price_of(s) * p.rng.choice((0.03, 0.05, 0.1, 0.15, 0.2))))
    amount = min(999_999, amount // 5 * 5 or amount)
    act = Act("haggle_amount_off", "haggle", bid=f"-{amount}")
    return p.say(act, "amount", amount=str(amount))


def haggle_insist(p: Speaker, s: Session) -> Spoken | None:
    """The wish repeated after an answer."""
    return p.say(Act("haggle_insist", "haggle")) if s.last == "NEGOTIATE" else None


def haggle_bulk(p: Speaker, s: Session) -> Spoken | None:
    """A discount for quantity."""
    return p.say(Act("haggle_bulk", "haggle")) if sum(s.cart.values()) > 2 else None


def with_price(name: str, kind: Kind) -> Move:
    """Words that repeat the price on the table."""

    def move(p: Speaker, s: Session) -> Spoken | None:
        return p.say(Act(name, kind), "price", price=money(price_of(s)))

    return move


def tip(p: Speaker, s: Session) -> Spoken | None:
    """A confirmation that overpays."""
    step = 10 if price_of(s) < 200 else 50
    handed = int(price_of(s) // step + 1) * step
    return p.say(Act("confirm_tip", "agree"), amount=str(handed))


HAGGLE: Moves = (
    (2, plain("haggle_vague", "haggle")), (1.2, plain("haggle_story", "haggle")),
    (0.8, haggle_bulk), (3, haggle_sum("haggle_total")), (1.3, haggle_sum("haggle_if")),
    (1.2, haggle_each), (1.5, haggle_percent), (1.5, haggle_off), (1.5, haggle_insist),
    (0.6, plain("haggle_insult", "haggle")),
)  # fmt: skip
ACCEPT: Moves = (
    (3, plain("accept", "agree")), (2, plain("accept_ambiguous", "agree")),
    (2, plain("accept_emphatic", "agree")), (1, with_price("accept_price", "agree")),
    (1, plain("accept_question", "agree")), (1.2, plain("confirm", "agree")),
    (0.6, plain("confirm_emphatic", "agree")), (0.3, plain("confirm_ambiguous", "agree")),
)  # fmt: skip
CONFIRM: Moves = (
    (4, plain("confirm", "agree")), (2, plain("confirm_ambiguous", "agree")),
    (2, plain("confirm_emphatic", "agree")), (0.8, with_price("confirm_price", "agree")),
    (0.7, tip), (1, plain("accept", "agree")), (0.5, plain("accept_emphatic", "agree")),
    (0.4, plain("accept_ambiguous", "agree")),
)  # fmt: skip
DOUBTS: Moves = (
    (3, plain("hesitate", "hesitate")), (1.5, plain("refuse", "hesitate")),
    (1.6, plain("ask_total", "restate")),
)  # fmt: skip
