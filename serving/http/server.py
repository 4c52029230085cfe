"""What a server has: characters, shops, sessions, a queue, counters."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from haggle.core.agent import Agent
from haggle.core.engine import Engine
from haggle.core.errors import nearest
from haggle.sop.domain import SOP, Talk
from haggle.sop.task import Task
from haggle.trade.merchant import Guard, Merchant
from haggle.trade.methods import Method
from serving.http.errors import Refused
from serving.http.metrics import Metrics
from serving.http.queue import TurnQueue
from serving.http.records import MERCHANT
from serving.store.episodes import Episodes

if TYPE_CHECKING:
    from serving.http.sessions import Sessions


@dataclass(frozen=True)
class Server:
    """An engine for merchants, and one for `characters` with a procedure. `default_shop` is where a
    session opens that names no shop; `confirmation` is what closes a sale in all shops, where it is
    not left to each."""

    engine: Engine
    guard: Guard
    characters: Engine
    ask_below: float
    method: Method
    tasks: Mapping[str, Task]
    default_shop: str
    confirmation: str | None
    episodes: Episodes
    sessions: Sessions
    queue: TurnQueue
    metrics: Metrics
    threads: ThreadPoolExecutor
    under_way: set[Any] = field(default_factory=set)

    def agent(self, episode: Any) -> Agent:
        """Who answers in an episode."""
        if isinstance(episode, Talk):
            return Agent(SOP, self.characters, self.guard)
        return Merchant(self.engine, self.guard, ask_below=self.ask_below)

    def task(self, name: str) -> Task:
        """The task of a character. Raises Refused (404) for an unknown one."""
        if name not in self.tasks:
            raise Refused(
                HTTPStatus.NOT_FOUND,
                f"no character is called {name!r}",
                where="character",
                hint=nearest(name, [MERCHANT, *self.tasks]),
            )
        return self.tasks[name]
