"""The trade as a planning problem: an action is the state that the answer enters.

In the future that a search looks at, an order is taken for granted and the ledger does not move:
what the player will buy is not known. Once the state is chosen, the merchant's own format writes
the answer, and the turn resolves it as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, replace

from haggle.core.engine import Engine, GenerationRequest
from haggle.core.text import clean_utterance
from haggle.grammar.json_text import DecodeError, read_object, text_of, to_json
from haggle.planning.agent import PlanningAgent
from haggle.planning.config import PlanConfig
from haggle.planning.planner import Plan, Planner, keeps_procedure
from haggle.planning.problem import Brief, Choice, Position
from haggle.planning.reading import RESPONSE
from haggle.trade.merchant import MAX_TOKENS, TRADE, Guard, constraint_for
from haggle.trade.records import TurnRecord
from haggle.trade.resolve import Resolved
from haggle.trade.session import Session
from haggle.trade.wire import Proposal
from haggle.trade.world import money

At = Position[Session]


@dataclass(frozen=True, slots=True)
class TradeProblem:
    """Selling over a counter: a `haggle.planning.problem.Problem` of sessions."""

    sop: bool = True

    def states(self, at: At) -> tuple[str, ...]:
        """A player's line has no user state in a trade."""
        return ()

    def actions(self, at: At) -> tuple[str, ...]:
        """With the procedure: the states that are legal now."""
        session = at.episode
        if not self.sop:
            return tuple(session.procedure.states)
        if at.line:
            return tuple(session.legal_states())
        return tuple(session.procedure.legal(session.last, has_cart=True))

    def advised(self, at: At) -> tuple[str, ...]:
        """The states that lead to a sale: what it needs before it, and the sale itself."""
        procedure = at.episode.procedure
        if not self.sop:
            return ()
        ahead = [name for name in procedure.states if procedure.is_critical(name)]
        needed = [name for one in ahead for name in procedure.mandatory(one)]
        allowed = self.actions(at)
        return tuple(name for name in dict.fromkeys((*ahead, *needed)) if name in allowed)

    def step(self, at: At, act: str) -> Session:
        """The session after a state was entered; nothing is sold in it."""
        branch = at.episode.branch()
        branch.last, branch.state = branch.procedure.track(branch.last, act), act
        return branch

    def reached(self, at: At, after: Session) -> bool:
        """Whether the sale is made."""
        return after.procedure.is_critical(after.state)

    def key(self, at: At) -> Hashable:
        """The tracked state, and whether a line waits."""
        return at.episode.last, at.episode.state, at.line

    def brief(self, at: At) -> Brief:
        """What a prompt tells: merchant, goods, ledger and talk."""
        session = at.episode
        world = session.world
        goods = {item.item_name: f"{money(item.price or 0)} {world.currency}, {item.quantity} left"
                 for item in world.inventory}  # fmt: skip
        knowledge = {"agent_goal": "sell goods at a fair price", "goods": goods}
        return Brief(
            role=f"{world.merchant.name}, a merchant. {world.merchant.persona}".strip(),
            user_information=session.note,
            task_knowledge=to_json(knowledge),
            actions=tuple((name, one.brief) for name, one in session.procedure.states.items()),
            states=(),
            context=_context(at),
        )

    def fallback(self, at: At) -> Choice:
        """Small talk, which moves nothing."""
        return Choice("", at.episode.procedure.fallback)

    def writing(self, at: At, act: str) -> GenerationRequest | None:
        """The merchant's own request, held to the chosen state."""
        return self.own(at, act)

    def own(self, at: At, act: str = "", *, spoken: bool = False) -> GenerationRequest:
        """The merchant's own request. Its line is a part of the format, `spoken` or not."""
        session = at.episode
        form = constraint_for(session, "state" if self.sop else "schema")
        if form is not None and act:
            form = replace(form, states=tuple(s for s in form.states if s.name == act))
        length = TRADE.max_tokens(session, MAX_TOKENS)
        return GenerationRequest(TRADE.messages(session, at.line), form, max_tokens=length)

    def read(self, at: At, text: str) -> Choice | None:
        """The state of an answer; its words are written anew with the rest of it."""
        with suppress(DecodeError):
            state = text_of(read_object(text), "state")
            return Choice("", state) if state in self.actions(at) else None
        return None

    def answer(self, at: At, choice: Choice) -> str:
        """The state alone, where nobody wrote the answer."""
        return to_json({"last": at.episode.last, "state": choice.act, "say": choice.say})


def planning_merchant(
    engine: Engine,
    guard: Guard,
    method: str,
    config: PlanConfig | None = None,
    told: Callable[[Plan], None] = lambda plan: None,
) -> PlanningAgent[Session, Proposal, Resolved, TurnRecord]:
    """A merchant whose states a planner chooses. Raises HaggleError for a method that there is
    not."""
    problem = TradeProblem(keeps_procedure(method))
    planner = Planner(method, problem, engine, config or PlanConfig(), guard != "off")
    return PlanningAgent(TRADE, engine, guard, planner=planner, told=told)


def _context(at: At) -> tuple[tuple[str, str], ...]:
    """The talk line by line, and in the future the state that was entered."""
    found: list[tuple[str, str]] = []
    for message in at.episode.messages()[1:]:
        label = "User Response" if message.role == "user" else RESPONSE
        found.append((label, message.content.partition("\nplayer: ")[2] or message.content))
    if at.line:
        return (*found, ("User Response", clean_utterance(at.line)))
    return (*found, ("Agent Action", at.episode.state))
