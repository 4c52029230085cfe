"""Characters by name: the domain that each is of, and what may be chosen for it."""

from __future__ import annotations

from typing import Any

from haggle.core.domain import Domain
from haggle.core.errors import HaggleError, nearest
from haggle.sop.domain import SOP
from haggle.trade.merchant import TRADE

MERCHANT = "merchant"  # every other name is a task's: it keeps to a procedure


def domain_of(character: str) -> Domain[Any, Any, Any, Any]:
    """The domain of a character."""
    return TRADE if character == MERCHANT else SOP


def check_options(character: str, dashes: str = "", **given: object) -> None:
    """Raise HaggleError for a `method` or another option that a character's domain does not have.

    What is None was not given. `dashes` stand before an option's name.
    """
    who = "a merchant" if character == MERCHANT else repr(character)
    domain = domain_of(character)
    for name, value in given.items():
        method = name == "method"
        wanted, known = (str(value), domain.methods) if method else (name, domain.options)
        if value is not None and wanted not in known:
            told = f"method {wanted!r}" if method else name
            hint = f"leave {dashes}{name} out; {nearest(wanted, known)}"
            raise HaggleError(f"{who} has no {told}", where=f"{dashes}{name}", hint=hint)
