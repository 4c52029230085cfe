"""The methods by name, and the plan of a turn: an action, its words, and what it took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal

from haggle.core.engine import Engine
from haggle.core.errors import HaggleError, nearest
from haggle.planning import best_of, cot, mcts, tot
from haggle.planning.asking import Asker, Cost, Stopped
from haggle.planning.config import PlanConfig
from haggle.planning.problem import Choice, E, Position, Problem
from haggle.planning.reading import RESPONSE, read_words
from haggle.planning.search import Search, own_question, response_question

SOP = "+sop"
_CHOOSE: dict[str, Callable[[Search[Any]], None]] = {
    "cot": cot.choose,
    "tot": tot.choose,
    "mcts": mcts.choose,
    "best-of-k": best_of.choose,
}
METHODS = ("cot", "cot+sop", "tot", "tot+sop", "mcts", "mcts+sop", "best-of-k+sop")
SEEDS = 100_000  # apart, so that no two turns draw alike

Ended = Literal["", "early", "time", "engine"]


@dataclass(frozen=True)
class Plan:
    """What was planned for a turn. `text` is the answer in the domain's own format.

    `ended` says why the search stopped: "" after its whole budget, `early` when the choice could
    not change any more, `time`, or `engine` where that failed (`trouble` says how). `found` is
    False where nothing that the model said could be used, and the plan is the safe one (MCTS with
    the procedure always finds something: the procedure's own next steps).
    """

    text: str
    choice: Choice | None
    cost: Cost
    ended: Ended = ""
    trouble: str = ""
    found: bool = True
    rounds: int = 0


def check_method(name: str) -> str:
    """`name` as a method. Raises HaggleError naming the nearest known one."""
    if name not in METHODS:
        raise HaggleError(f"unknown planner {name!r}", hint=nearest(name, METHODS))
    return name


def keeps_procedure(method: str) -> bool:
    """Whether a method keeps to the procedure. Raises HaggleError for an unknown method."""
    return check_method(method).endswith(SOP)


@dataclass(frozen=True)
class Planner(Generic[E]):
    """A method over a problem. `constrained` holds the engine to the forms of its answers."""

    method: str
    problem: Problem[E]
    engine: Engine
    config: PlanConfig = field(default_factory=PlanConfig)
    constrained: bool = True

    def plan(self, episode: E, line: str, seed: int = 0) -> Plan:
        """Choose an action for a line, and write it out. The episode is not changed.

        An engine that fails before it gave any answer fails as it would without a planner.
        """
        turn = seed * 1000 + len(episode.exchanges)
        asker = Asker(self.engine, self.problem, self.config, self.constrained, SEEDS * turn)
        search = Search(self.problem, self.config, asker, Position(episode, line))
        ended: Ended = ""
        trouble = ""
        text = ""
        try:
            _CHOOSE[self.method.removesuffix(SOP)](search)
            ended = "early" if search.early else ""
            text = self._written(search)
        except Stopped as stop:
            if stop.reason == "engine" and not asker.cost.calls and stop.cause is not None:
                raise stop.cause from None
            ended, trouble = stop.reason, str(stop.cause or "")
        asker.cost.seconds = time.perf_counter() - asker.started
        choice = search.best or (self.problem.fallback(search.at) if self.problem.sop else None)
        if not text:
            text = self.problem.answer(search.at, choice) if choice else asker.last
        found = search.best is not None
        return Plan(text, choice, asker.cost, ended, trouble, found, search.rounds)

    def _written(self, search: Search[E]) -> str:
        """The chosen action with its words, in the domain's format; "" where nothing was chosen."""
        choice = search.best
        if choice is None:
            return ""
        at = Position(search.at.episode, search.at.line, choice.heard)
        request = self.problem.writing(at, choice.act)
        if request is not None:
            return search.asker.send([request])[0].text
        if not choice.say:
            own = own_question(search, at, choice.act, spoken=True)
            text = search.asker.ask([own or response_question(at, choice.act)])[0]
            choice = Choice(choice.heard, choice.act, self._words(at, text, own is not None))
            search.best = choice
        return self.problem.answer(search.at, choice)

    def _words(self, at: Position[E], text: str, own: bool) -> str:
        """What is said in an answer."""
        if not own:
            return read_words(text, RESPONSE)
        choice = self.problem.read(at, text)
        return choice.say if choice else ""
