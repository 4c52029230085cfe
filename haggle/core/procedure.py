"""The procedure as data: states, what may follow what, and which transitions are critical."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from haggle.core.config import Record, load_config, named_config
from haggle.core.errors import HaggleError, nearest

Payload = Literal["show", "cart", "bid"]


class State(Record):
    """One dialogue state (ASTP, State Space). `after` lists tracked states it may follow.

    `meaning` (Element 1; first line the situation, then how to behave) and `condition` (Element 2)
    are the words of the full prompt, `brief` those of the compact one.
    """

    context: str
    payload: Payload | None = None
    transparent: bool = False
    priced: bool = False
    needs_cart: bool = False
    clears: bool = False
    may_clear: bool = False
    resets: bool = False
    after: Literal["any"] | list[str] = "any"
    brief: str
    meaning: list[str] = []
    condition: str = ""


class Critical(Record):
    """A state that may be entered only from certain states (ASTP, Property 1.2)."""

    state: str
    only_after: list[str]


class Procedure(Record):
    """A named set of states with its legal transitions E (ASTP, Property 1)."""

    name: str
    start: str = ""
    fallback: str
    critical: list[Critical] = []
    states: dict[str, State]
    aliases: dict[str, dict[str, str]] = {}

    @model_validator(mode="after")
    def _names_are_known(self) -> Procedure:
        mentioned = [self.fallback, *(c.state for c in self.critical)]
        mentioned += [name for c in self.critical for name in c.only_after]
        mentioned += [n for s in self.states.values() if s.after != "any" for n in s.after]
        mentioned += [name for table in self.aliases.values() for name in table.values()]
        for name in mentioned:
            if name not in self.states:
                raise ValueError(f"unknown state {name!r}; {nearest(name, self.states)}")
        return self

    def state(self, name: str) -> State:
        """The state called `name`. Raises HaggleError for an unknown one."""
        try:
            return self.states[name]
        except KeyError:
            raise HaggleError(
                f"unknown state {name!r}", where=self.name, hint=nearest(name, self.states)
            ) from None

    @property
    def tracked(self) -> list[str]:
        """Labels that `last_trade_context` may hold besides the empty string."""
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

    def breaks_critical(self, last: str, new: str) -> bool:
        """Whether entering `new` from `last` skips a mandatory state."""
        return any(c.state == new and last not in c.only_after for c in self.critical)

    def is_critical(self, state: str) -> bool:
        """Whether a state may be entered only after a mandatory one: nothing undoes it."""
        return any(c.state == state for c in self.critical)

    def mandatory(self, state: str) -> list[str]:
        """The states one of which a critical state needs before it: the review of a sale."""
        return [name for c in self.critical if c.state == state for name in c.only_after]

    def is_review(self, state: str) -> bool:
        """Whether a state is the mandatory one before a critical state."""
        return any(state in c.only_after for c in self.critical)

    def after_review(self, review: str) -> str:
        """The critical state that a review leads to. Raises HaggleError for no review."""
        for c in self.critical:
            if review in c.only_after:
                return c.state
        raise HaggleError(f"{review!r} is no review", where=self.name)

    def legal(self, last: str, has_cart: bool) -> list[str]:
        """States that may follow `last`, given whether the cart holds anything."""
        return [
            name
            for name, state in self.states.items()
            if self.is_valid(last, name) and (has_cart or not state.needs_cart)
        ]

    def alias(self, table: str, label: str) -> str:
        """Our label for a label of another paper; unknown labels come back unchanged."""
        return self.aliases.get(table, {}).get(label, label)


@cache
def load_procedure(name: str = "trade") -> Procedure:
    """The procedure in `configs/procedures/<name>.yaml`, or in the file `name`."""
    return load_config(Path(named_config("procedures", name)), Procedure)
