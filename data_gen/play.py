"""A dialogue between a scripted player and any merchant, a turn at a time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from data_gen.acts import Act
from data_gen.language.phrasebook import Split
from data_gen.players.righting import Slip
from data_gen.players.scripted import Drill, ScriptedPlayer, sample_profile
from data_gen.players.speaker import cart_lines
from data_gen.slips import slip
from data_gen.teachers.oracle import propose
from data_gen.worlds import Shop
from haggle.core.domain import Level
from haggle.trade.edits import carried_out, shortened
from haggle.trade.merchant import written
from haggle.trade.methods import Method
from haggle.trade.records import Dialogue, PlayedTurn, Scenario, Truth, TurnRecord
from haggle.trade.resolve import Resolved, resolve
from haggle.trade.said_act import with_act
from haggle.trade.session import Session
from haggle.trade.wire import Proposal, encode_compact


@dataclass
class Play:
    """One dialogue under way: who plays, the session, what the oracle would have answered.

    `slips` is the share of the oracle's answers that are wrong on purpose; `unlearned` has the
    numbers of those exchanges, which leave no turn.
    """

    id: str
    seed: int
    session: Session
    player: ScriptedPlayer
    oracle_rng: random.Random
    slips: float = 0.0
    turns: list[PlayedTurn] = field(default_factory=list)
    unlearned: set[int] = field(default_factory=set)
    _pending: tuple[str, Act, Proposal] | None = None

    def next_line(self) -> str | None:
        """The player's next line; None when the dialogue is over."""
        spoken = self.player.speak(self.session)
        if spoken is None:
            self._pending = None
            return None
        text, act = spoken
        answer = propose(
            self.session, act, self.oracle_rng, manner=self.player.shop.manner, line=text
        )
        self._pending = (text, act, answer)
        return text

    @property
    def act(self) -> Act:
        """What the player meant by the pending line."""
        assert self._pending is not None, "call next_line first"
        return self._pending[1]

    @property
    def oracle(self) -> Proposal:
        """What a merchant who understood the pending line answers."""
        assert self._pending is not None, "call next_line first"
        return self._pending[2]

    def goal(self) -> Resolved:
        """The turn as it should be after the pending line, had it been understood."""
        return resolve(self.session, self.oracle, guarded=True)

    def add(self, record: TurnRecord, goal: Resolved) -> None:
        """Keep a finished turn with the hidden truth beside it."""
        truth = Truth(
            act=self.act.name, state=goal.response.state, cart=goal.cart, price=goal.sale_price
        )
        self.turns.append(PlayedTurn.of(record, truth))
        self._pending = None

    def slip(self, text: str, goal: Resolved) -> Proposal | None:
        """A wrong answer to the pending line, by chance; the player then puts it right."""
        if not self.slips or self.oracle_rng.random() >= self.slips:
            return None
        manner = self.player.shop.manner
        return slip(self.session, text, self.act, self.oracle, goal, self.oracle_rng, manner)

    def go_wrong(self, text: str, wrong: Proposal, goal: Resolved) -> None:
        """Answer the pending line wrongly."""
        session = self.session
        by_id, before = session.world.by_id, dict(cart_lines(session))
        wanted = {by_id[i].item_name: n for i, n in goal.cart.items()}
        self.player.slip = Slip(self.act, text, before, wanted)
        self.unlearned.add(len(session.exchanges))
        wrong = with_act(session, text, wrong, self.act.word)
        written(session, text, encode_compact(wrong, session.procedure))
        self._pending = None

    def dialogue(self, engine: str, guard: Level) -> Dialogue:
        """The finished dialogue as a record, with who answered."""
        return Dialogue(
            id=self.id,
            seed=self.seed,
            scenario=self.player.scenario,
            world=self.player.shop.world.name,
            method=self.session.method.name,
            engine=engine,
            guard=guard,
            player=f"scripted-{self.player.split}-{self.player.profile.voice}",
            turns=self.turns,
        )


def start_play(
    shop: Shop,
    scenario: Scenario,
    seed: int,
    split: Split,
    method: Method,
    prefix: str = "",
    noise: float = 0.0,
    drill: Drill | None = None,
    slips: float = 0.0,
) -> Play:
    """A dialogue whose player is fixed by the seed (as the papers fix the first utterance)."""
    rng = random.Random(f"{scenario}/{seed}/{split}")
    profile = sample_profile(rng, split, drill)
    player = ScriptedPlayer(shop, scenario, rng, split, profile, noise)
    return Play(
        id=f"{prefix}{scenario}-{seed:06d}",
        seed=seed,
        session=Session(shop.world, method=method),
        player=player,
        oracle_rng=random.Random(f"oracle/{scenario}/{seed}/{split}"),
        slips=slips,
    )


def play_oracle(play: Play) -> Dialogue:
    """Play a dialogue to its end with the oracle as the merchant."""
    while (text := play.next_line()) is not None:
        goal = play.goal()
        if wrong := play.slip(text, goal):
            play.go_wrong(text, wrong, goal)
            continue
        proposal = as_meant(play.session, text, play.oracle, play.act)
        proposal = with_act(play.session, text, proposal, play.act.word)
        answer = encode_compact(proposal, play.session.procedure)
        play.add(written(play.session, text, answer), goal)
    return play.dialogue("oracle", "state")


def as_meant(session: Session, text: str, proposal: Proposal, act: Act | None) -> Proposal:
    """An answer with its cart told as the player meant it: what becomes of single lines, or all of
    it anew. Whatever words it took, one act is answered in one way; without one the words decide.
    """
    if act and act.kind == "order" and session.method.changes:
        if not act.change and proposal.cart == act.cart:
            return replace(proposal, cart=act.cart)  # its numbers told as the player's are
        change = replace(proposal, cart=None, change=act.change)
        if act.change and dict(carried_out(session, change)) == dict(proposal.cart or ()):
            return change
    return shortened(session, text, proposal)
