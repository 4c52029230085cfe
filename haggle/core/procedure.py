"""The procedure as data: states, what may follow what, and which transitions are critical."""

from __future__ import annotations

from functools import cached_property
from typing import Generic, Literal, Self, TypeVar

from pydantic import model_validator

from haggle.core.config import Record
from haggle.core.errors import HaggleError, nearest


class State(Record):
    """One dialogue state (ASTP, State Space). `after` lists tracked states it may follow.

    `payload` names what an answer in this state carries; the domain says what that is.
    A `transparent` state leaves the tracked state as it was; one that `resets` ends the dialogue.
    """

    payload: str | None = None
    transparent: bool = False
    resets: bool = False
    after: Literal["any"] | list[str] = "any"
    brief: str


class Critical(Record):
    """A state that may be entered only from certain states (ASTP, Property 1.2)."""

    state: str
    only_after: list[str]


S = TypeVar("S", bound=State)


class Procedure(Record, Generic[S]):
    """A named set of states with its legal transitions E (ASTP, Property 1)."""

    name: str
    start: str = ""
    fallback: str
    critical: list[Critical] = []
    states: dict[str, S]
    aliases: dict[str, dict[str, str]] = {}

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        mentioned = [self.fallback, *(c.state for c in self.critical)]
        mentioned += [name for c in self.critical for name in c.only_after]
        mentioned += [n for s in self.states.values() if s.after != "any" for n in s.after]
        mentioned += [name for table in self.aliases.values() for name in table.values()]
        for name in mentioned:
            if name not in {*self.states, self.start}:
                raise ValueError(f"unknown state {name!r}; {nearest(name, self.states)}")
        return self

    def state(self, name: str) -> S:
        """The state called `name`. Raises HaggleError for an unknown one."""
        try:
            return self.states[name]
        except KeyError:
            raise HaggleError(
                f"unknown state {name!r}", where=self.name, hint=nearest(name, self.states)
            ) from None

    @cached_property
    def _conditions(self) -> dict[str, list[list[str]]]:
        """By critical state the states of which one must stand before it, a list a condition."""
        found: dict[str, list[list[str]]] = {}
        for c in self.critical:
            found.setdefault(c.state, []).append(c.only_after)
        return found

    @property
    def tracked(self) -> list[str]:
        """Labels that may be reported as the last state, besides the empty string."""
        return [n for n, s in self.states.items() if not s.transparent and not s.resets]

    def track(self, last: str, new: str) -> str:
        """The label to report as last after the dialogue moved on to `new`."""
        state = self.state(new)
        if state.resets:
            return self.start
        return last if state.transparent else new

    def is_valid(self, last: str, new: str) -> bool:
        """Transition validity and critical transition (ASTP, Property 1.1 and 1.2)."""
        if new not in self.states:
            return False
        after = self.states[new].after
        return (after == "any" or last in after) and not self.breaks_critical(last, new)

    def follows(self, last: str) -> list[str]:
        """States that may follow `last`."""
        return [name for name in self.states if self.is_valid(last, name)]

    def breaks_critical(self, last: str, new: str) -> bool:
        """Whether entering `new` from `last` skips a mandatory state."""
        return any(last not in before for before in self._conditions.get(new, ()))

    def is_critical(self, state: str) -> bool:
        """Whether a state may be entered only after a mandatory one: nothing undoes it."""
        return state in self._conditions

    def mandatory(self, state: str) -> list[str]:
        """The states one of which a critical state needs before it, such as a review."""
        return [name for before in self._conditions.get(state, ()) for name in before]

    def is_review(self, state: str) -> bool:
        """Whether a state is the mandatory one before a critical state."""
        return any(state in c.only_after for c in self.critical)

    def after_review(self, review: str) -> str:
        """The critical state that a review leads to. Raises HaggleError for no review."""
        for c in self.critical:
            if review in c.only_after:
                return c.state
        raise HaggleError(f"{review!r} is no review", where=self.name)

    def alias(self, table: str, label: str) -> str:
        """Our label for a label of another paper; unknown labels come back unchanged."""
        return self.aliases.get(table, {}).get(label, label)
