"""Mistakes of the scripted merchant, made on purpose, so that players have something to put right.

A wrong answer stays in the dialogue and moves it on, but is not learned from: its message has the
weight 0. What is learned is how the next line, which puts it right, is answered.
"""

from __future__ import annotations

import random
from dataclasses import replace

from data_gen.acts import Act
from data_gen.dataset.corruptions import Moment, corrupt
from data_gen.language.phrasebook import load_phrasebook
from data_gen.players.righting import ASKING
from data_gen.players.speaker import cart_lines
from haggle.trade.resolve import Resolved
from haggle.trade.session import Session
from haggle.trade.wire import Proposal


def slip(
    session: Session, line: str, act: Act, right: Proposal, goal: Resolved, rng: random.Random,
    manner: str,
) -> Proposal | None:  # fmt: skip
    """A wrong answer to a line whose meaning is known; None where there is no occasion for one."""
    if act.name == "right_again":
        return None
    if act.kind in ("order", "clear"):
        moment = Moment(session, line, act.name, right, goal, manner)
        wrong = corrupt(moment, "wrong_cart", rng)
        return rng.choice(wrong)[1] if wrong else None
    if act.kind in ASKING and act.items:
        asked = tuple((name, 1) for name in act.items[:2])
        say = load_phrasebook().line("OFFER_new", rng, manner)
        cart = (*(c for c in cart_lines(session) if c not in asked), *asked)
        return replace(right, state="OFFER_SELL", show=None, cart=cart, say=say)
    if act.kind in ("haggle", "agree") and session.cart:
        return _passed_over(session, right, rng, manner)
    return None


def _passed_over(session: Session, right: Proposal, rng: random.Random, manner: str) -> Proposal:
    """The line is taken for talk, or answered with the order as it stands."""
    state, kind = rng.choice((("CASUAL", "CASUAL_offtopic"), ("OFFER_SELL", "OFFER_restate")))
    say = load_phrasebook().line(kind, rng, manner)
    cart = tuple(cart_lines(session)) if state == "OFFER_SELL" else None
    return replace(right, state=state, bid=None, cart=cart, change=None, say=say)
