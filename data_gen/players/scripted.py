"""A scripted player: a hidden goal and an agenda, reacting to what the merchant really did."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal

from data_gen.acts import Act, Spoken
from data_gen.language.phrasebook import Split
from data_gen.language.voices import voices_of
from data_gen.players import changes, dealing, orders, social
from data_gen.players.righting import Slip, put_right
from data_gen.players.speaker import Moves, Speaker, pick
from data_gen.worlds import Shop
from haggle.trade.ledger import total
from haggle.trade.records import Scenario
from haggle.trade.session import Session

PLAIN_YES = "Yes, please."
MAX_ROUNDS = 12
MAX_CHANGES = 4
MAX_HAGGLES = 4
CURIOUS = 0.35  # of a questioner's lines, how many ask about goods
NOTICED = 0.9  # of the merchant's mistakes, how many the player puts right at once
RESTLESS = 0.8  # of a drill's lines with something in the cart, how many change it
Drill = Literal["carts", "doubts", "questions"]


@dataclass(frozen=True, slots=True)
class Temper:
    """How often a player does what, as probabilities per opportunity."""

    haggle: float = 0.4
    modify: float = 0.3
    smalltalk: float = 0.08
    ask: float = 0.3
    hesitate: float = 0.12
    attack: float = 0.03
    leave: float = 0.03
    rude: float = 0.02
    after_sale: float = 0.35
    detour: float = 0.12
    doubt: float = 0.03
    look: float = 0.06


@dataclass(frozen=True, slots=True)
class Profile:
    """Who a player is: voice, temper, patience in rounds, purse as a share of the list price.

    `restless` is the chance that whatever lies in the cart is changed once more, in the ways that
    are hardest to follow; `curious` that of a question on the nature of goods.
    """

    voice: str = "plain"
    temper: Temper = Temper()
    patience: int = MAX_ROUNDS
    purse: float = 1.0
    sellable: float = 0.85
    restless: float = 0.0
    curious: float = 0.0


WAVERING = Temper(
    haggle=0.6, modify=0.2, smalltalk=0.12, ask=0.5, hesitate=0.7, attack=0.15, leave=0.05,
    rude=0.04, after_sale=0.6, detour=0.25, doubt=0.3, look=0.2,
)  # fmt: skip


def sample_temper(rng: random.Random) -> Temper:
    """A random temper; every trait varies independently."""
    return Temper(
        haggle=rng.uniform(0.1, 0.6),
        modify=rng.uniform(0.12, 0.55),
        smalltalk=rng.uniform(0, 0.13),
        ask=rng.uniform(0.1, 0.5),
        hesitate=rng.uniform(0, 0.22),
        attack=rng.choice((0.0, 0.0, 0.0, 0.08, 0.2)),
        leave=rng.choice((0.01, 0.02, 0.05)),
        rude=rng.choice((0.0, 0.0, 0.0, 0.02, 0.06)),
        after_sale=rng.uniform(0.05, 0.35),
        detour=rng.uniform(0.05, 0.22),
    )


def sample_profile(rng: random.Random, split: Split, drill: Drill | None = None) -> Profile:
    """A random player of the split's voices, or one for a drill.

    `carts`: nearly every line changes the cart. `doubts`: the player hesitates, asks, digresses,
    haggles and tries tricks before it buys. `questions`: it asks what goods are like.
    """
    profile = Profile(
        voice=rng.choice(voices_of(split)),
        temper=sample_temper(rng),
        patience=rng.choice((7, 9, 10, 11, MAX_ROUNDS, MAX_ROUNDS)),
        purse=rng.choice((0.7, 0.8, 0.9, 1.0, 1.0, 1.2, 2.0)),
        sellable=rng.choice((0.6, 0.75, 0.85, 0.95)),
    )
    if drill is None:
        return profile
    if drill == "questions":
        return replace(profile, patience=MAX_ROUNDS, curious=CURIOUS)
    if drill == "doubts":
        return replace(profile, temper=WAVERING, patience=MAX_ROUNDS)
    steady = replace(profile.temper, attack=0.0, leave=0.0, rude=0.0, after_sale=1.0)
    return replace(profile, temper=steady, patience=MAX_ROUNDS, restless=RESTLESS)


class ScriptedPlayer:
    """One customer. `speak` gives the next line with its hidden act, or None when it is over.

    All randomness comes from `rng`, so the same seed opens with the same line whatever the model.
    """

    def __init__(
        self,
        shop: Shop,
        scenario: Scenario,
        rng: random.Random,
        split: Split = "train",
        profile: Profile | None = None,
        noise: float = 0.0,
    ) -> None:
        self.scenario = scenario
        self.split: Split = split
        self.profile = profile or Profile()
        self.max_rounds = self.profile.patience
        self.rng = rng
        self.speaker = Speaker(
            shop, rng, split, self.profile.voice, noise,
            chat=self.profile.temper.smalltalk * 0.3, sellable=self.profile.sellable,
        )  # fmt: skip
        self.rounds = self.haggled = self.changes = self.doubts = 0
        self.advised = False
        self.agreed = False  # to the review on the table
        self.slip: Slip | None = None  # what the merchant just got wrong

    @property
    def shop(self) -> Shop:
        """Where this player shops."""
        return self.speaker.shop

    def speak(self, session: Session) -> tuple[str, Act] | None:
        """The next utterance and its act for the ledger as it stands; None ends the dialogue."""
        if self.rounds >= self.max_rounds or session.ended:
            return None
        if session.sales and self.rng.random() > self.profile.temper.after_sale:
            return None
        act, text = self._next(session)
        self.rounds += 1
        return text, act

    def _next(self, session: Session) -> Spoken:
        rng, temper = self.rng, self.profile.temper
        if self.rounds == 0:
            return self._opening(session)
        slip, self.slip = self.slip, None
        if slip and rng.random() < NOTICED and (spoken := put_right(slip, self.speaker, session)):
            return spoken
        if self.rounds >= self.max_rounds - 1 and not session.cart:
            return self._one(social.LEAVE, session)
        if session.state == "COMMIT_SALE":
            return self._after_sale(session)
        if rng.random() < temper.attack:
            return self._one(social.ATTACK, session)
        if rng.random() < temper.leave:
            return self._leave(session)
        if rng.random() < temper.rude:
            return self._say("insult", "insult")
        if self.profile.curious and rng.random() < self.profile.curious:
            return self._one(social.NATURE, session)
        return self._with_cart(session) if session.cart else self._without_cart(session)

    def _opening(self, session: Session) -> Spoken:
        rng = self.rng
        roll = rng.random()
        if self.scenario == "recommendation":
            if roll < 0.1:
                return self._say("greet", "greet")
            return self._recommend(session)
        if roll < 0.05:
            return self._one(social.CHAT, session)
        if roll < 0.05 + 0.4 * self.profile.temper.detour:
            return self._one(social.LOOK, session)
        return self._order(session)

    def _after_sale(self, session: Session) -> Spoken:
        roll = self.rng.random()
        if roll < 0.4:
            return self._one(social.LEAVE, session)
        if roll < 0.65:
            return self._one(social.AFTER_SALE, session)
        return self._maybe(((1, orders.same_again),), session) or self._order(session)

    def _without_cart(self, session: Session) -> Spoken:
        rng, temper = self.rng, self.profile.temper
        roll = rng.random()
        if session.state == "SHOW_ITEMS" and session.last == "SHOW_ITEMS":
            if roll < temper.ask * 0.5:
                return self._one(social.LOOK, session)
            return self._order(session)
        if roll < temper.smalltalk:
            return self._one(social.CHAT, session)
        if roll < temper.smalltalk + 0.04:
            return self._one(((1, dealing.plain("accept", "agree")),), session)
        if roll < temper.smalltalk + 0.04 + temper.detour:
            return self._one(social.LOOK, session)
        if self.scenario == "recommendation" and not self.advised:
            return self._recommend(session)
        if self.rounds > 3 and rng.random() < 0.3:
            return self._leave(session)
        return self._order(session)

    def _with_cart(self, session: Session) -> Spoken:
        rng, temper = self.rng, self.profile.temper
        at_review = session.last == "FINAL_CHECK"
        if rng.random() < self.profile.restless:
            return self._change(changes.AT_REVIEW_DRILL if at_review else changes.DRILL, session)
        if session.state in {"CASUAL", "SHOW_ITEMS"}:
            if rng.random() < 0.75:
                return self._return(session, at_review)
        elif rng.random() < temper.smalltalk:
            return self._one(social.CHAT_MIDWAY, session)
        if at_review:
            return self._at_review(session)
        if self.changes < MAX_CHANGES and rng.random() < temper.modify / (1 + 0.6 * self.changes):
            return self._change(changes.CHANGES, session)
        dear = dealing.price_of(session) > self.profile.purse * total(session.world, session.cart)
        eager = temper.haggle * (1.4 if dear else 0.8) / (1 + 0.5 * self.haggled)
        if self.haggled < MAX_HAGGLES and rng.random() < eager:
            return self._haggle(session)
        if rng.random() < temper.look:
            return self._one(social.LOOK_MIDWAY, session)
        if rng.random() < temper.doubt:
            return self._one(dealing.DOUBTS, session)
        if self.changes < MAX_CHANGES and rng.random() < 0.07:
            return self._change(changes.AGREED_CHANGES, session)
        return self._one(dealing.ACCEPT, session)

    def _at_review(self, session: Session) -> Spoken:
        rng, temper = self.rng, self.profile.temper
        if self.agreed and session.last_line:  # code did not take it for a yes and asks again
            return Act("confirm", "agree"), PLAIN_YES
        if rng.random() < temper.hesitate / (1 + self.doubts):
            self.doubts += 1
            return self._one(dealing.DOUBTS, session)
        if self.changes < MAX_CHANGES and rng.random() < temper.modify * 0.4:
            return self._change(changes.REVIEW_CHANGES, session)
        if self.haggled < MAX_HAGGLES and rng.random() < temper.haggle * 0.25:
            return self._haggle(session)
        if rng.random() < temper.look / 2:
            return self._one(social.LOOK_MIDWAY, session)
        self.agreed = True
        return self._one(dealing.CONFIRM, session)

    def _return(self, session: Session, at_review: bool) -> Spoken:
        """Back to the deal after a digression."""
        name = "late_confirm" if at_review else "back_accept"
        if session.state == "SHOW_ITEMS" and self.rng.random() < 0.6:
            name = "dismiss_accept"
        if session.state == "SHOW_ITEMS" and self.rng.random() < 0.25:
            return self._change(((1, changes.add("add")),), session)
        if self.rng.random() < 0.3:
            return self._one(dealing.CONFIRM if at_review else dealing.ACCEPT, session)
        return self._say(name, "agree")

    def _recommend(self, session: Session) -> Spoken:
        self.advised = True
        return self._one(((1, social.recommend),), session)

    def _order(self, session: Session) -> Spoken:
        return self._one(((1, orders.order),), session)

    def _haggle(self, session: Session) -> Spoken:
        self.haggled += 1
        return self._one(dealing.HAGGLE, session)

    def _change(self, moves: Moves, session: Session) -> Spoken:
        self.changes += 1
        return self._one(moves, session)

    def _leave(self, session: Session) -> Spoken:
        if not session.sales and not session.cart and self.rng.random() < 0.5:
            return self._say("leave_nothing", "leave")
        return self._one(social.LEAVE, session)

    def _say(self, name: str, kind: str) -> Spoken:
        return self.speaker.simple(name, kind)  # type: ignore[arg-type]

    def _maybe(self, moves: Moves, session: Session) -> Spoken | None:
        return pick(moves, self.speaker, session)

    def _one(self, moves: Moves, session: Session) -> Spoken:
        """One of the moves, or leaving where none applies."""
        return pick(moves, self.speaker, session) or self._say("leave", "leave")
