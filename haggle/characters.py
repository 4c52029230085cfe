"""Characters by name: the domain that each is of, and what may be chosen for it."""

from __future__ import annotations

from typing import Any

from haggle.core import domain
from haggle.core.domain import Domain
from haggle.sop.domain import SOP
from haggle.trade.merchant import TRADE

MERCHANT = "merchant"  # every other name is a task's: it keeps to a procedure


def domain_of(character: str) -> Domain[Any, Any, Any, Any]:
    """The domain of a character."""
    return TRADE if character == MERCHANT else SOP


def check_options(character: str, dashes: str = "", **given: object) -> None:
    """Raise HaggleError for a method or an option that means nothing to a character."""
    who = "a merchant" if character == MERCHANT else repr(character)
    domain.check_options(domain_of(character), who, given, dashes)
