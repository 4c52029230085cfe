"""An agent that plans its turns. The turn itself, with guard and checks, is the core's."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from haggle.core.agent import Agent
from haggle.core.domain import A, E, O, T
from haggle.core.engine import Generation
from haggle.planning.planner import Plan, Planner


@dataclass(frozen=True)
class PlanningAgent(Agent[E, A, O, T]):
    """A model that acts by a planner. `told` gets the plan of every turn: what it chose, why it
    stopped, what it took."""

    planner: Planner[E] = field(kw_only=True)
    told: Callable[[Plan], None] = field(default=lambda plan: None, kw_only=True)

    def decide(self, pairs: Sequence[tuple[E, str]], seed: int = 0) -> list[Generation]:
        """The planned answers, one search after the other."""
        return [self._planned(episode, line, seed) for episode, line in pairs]

    def stream(self, episode: E, line: str, *, seed: int = 0) -> Generator[str | T]:
        """The finished turn: no word is said before the search is over."""
        yield self.reply(episode, line, seed=seed)

    def _planned(self, episode: E, line: str, seed: int) -> Generation:
        plan = self.planner.plan(episode, line, seed)
        self.told(plan)
        cost = plan.cost
        return Generation(
            plan.text, cost.prompt_tokens, cost.completion_tokens, cost.thought_tokens, cost.seconds
        )
