"""The trading procedure: what its states carry, and which of them may follow given a cart."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from haggle.core import procedure as core
from haggle.core.config import load_config, named_config

Payload = Literal["show", "cart", "bid"]


class State(core.State):
    """A state of a trade.

    `context` is the papers' context_type. `priced`: the answer states a total. `needs_cart`: not
    with an empty cart. `clears` empties the cart; `may_clear`: the answer may call the order off.
    `meaning` (Element 1; first line the situation, then how to behave) and `condition` (Element 2)
    are the words of the full prompt, `brief` those of the compact one.
    """

    context: str
    payload: Payload | None = None
    priced: bool = False
    needs_cart: bool = False
    clears: bool = False
    may_clear: bool = False
    meaning: list[str] = []
    condition: str = ""


class Procedure(core.Procedure[State]):
    """The states of a trade with its legal transitions E (ASTP, Property 1)."""

    def legal(self, last: str, has_cart: bool) -> list[str]:
        """States that may follow `last`, given whether the cart holds anything."""
        return [name for name in self.follows(last) if has_cart or not self.states[name].needs_cart]


@cache
def load_procedure(name: str = "trade") -> Procedure:
    """The procedure in `configs/procedures/<name>.yaml`, or in the file `name`."""
    return load_config(Path(named_config("procedures", name)), Procedure)
