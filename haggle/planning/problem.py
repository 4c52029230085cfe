"""A domain as a planner sees it: positions, the actions that may be taken there, what they come to.

A search takes short actions: names, without words and numbers. The domain's own format comes back
once the action is chosen.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from haggle.core.engine import GenerationRequest
from haggle.core.episode import Episode

E = TypeVar("E", bound=Episode)


@dataclass(frozen=True, slots=True)
class Position(Generic[E]):
    """A line that waits for an answer: the episode before it, its words ("" in the future), and
    the user state that it was taken for ("" where it is not known)."""

    episode: E
    line: str = ""
    heard: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a planner chose: the user state it read, the action, its words ("" before they are
    written)."""

    heard: str
    act: str
    say: str = ""


@dataclass(frozen=True, slots=True)
class Brief:
    """What a prompt tells of a position. Actions and states are names with what they mean;
    `context` are lines with their label, oldest first."""

    role: str
    user_information: str
    task_knowledge: str
    actions: tuple[tuple[str, str], ...]
    states: tuple[tuple[str, str], ...]
    context: tuple[tuple[str, str], ...]


class Problem(Protocol[E]):
    """What a domain tells a planner. Nothing here changes the episode of a position.

    With the procedure (the methods `...+sop`) only what it allows may be done; without it every
    action may.
    """

    @property
    def sop(self) -> bool:
        """Whether the procedure is kept."""
        ...

    def states(self, at: Position[E]) -> tuple[str, ...]:
        """The user states that the line may be; none where the domain has no user states."""
        ...

    def actions(self, at: Position[E]) -> tuple[str, ...]:
        """The actions that may be taken."""
        ...

    def advised(self, at: Position[E]) -> tuple[str, ...]:
        """Of these, the ones that the procedure comes to in its next two levels."""
        ...

    def step(self, at: Position[E], act: str) -> E:
        """The episode after an action: a branch."""
        ...

    def reached(self, at: Position[E], after: E) -> bool:
        """Whether the step between the two reached the goal."""
        ...

    def key(self, at: Position[E]) -> Hashable:
        """Positions of one key are the same to a search."""
        ...

    def brief(self, at: Position[E]) -> Brief:
        """What a prompt tells."""
        ...

    def fallback(self, at: Position[E]) -> Choice:
        """What is done where nothing was found."""
        ...

    def writing(self, at: Position[E], act: str) -> GenerationRequest | None:
        """What the engine is asked to write the chosen action out in the domain's own format; None
        where an action has no more to it than its words."""
        ...

    def own(self, at: Position[E], act: str = "", *, spoken: bool = False) -> GenerationRequest:
        """What a model is asked that was trained on the domain's own format: a decision, of this
        user state and action where they are known; with its words where they are `spoken`."""
        ...

    def read(self, at: Position[E], text: str) -> Choice | None:
        """The choice in an answer to `own`; None for none."""
        ...

    def answer(self, at: Position[E], choice: Choice) -> str:
        """A choice in the domain's own format."""
        ...
