"""A constraint to vary, a prompt, and the real small model for the slow tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from haggle.engine import GenerationRequest, Message
from haggle.errors import HaggleError
from haggle.models import BaseModel, resolve_base
from haggle.procedure import load_procedure
from haggle.wire import StateShape, WireConstraint

NAMES = ("Copper Kettle", "Waxed Rope (10 m)", "Sœur's Salve [x]", "Tin Whistle", "?odd name")


@pytest.fixture(scope="session")
def constrain() -> Callable[..., WireConstraint]:
    """Builds a constraint over the trading procedure; the states by name, the rest as given."""
    procedure = load_procedure()

    def build(*states: str, wire: str = "compact", **fields: Any) -> WireConstraint:
        chosen = states or tuple(procedure.states)
        shapes = tuple(
            StateShape(s, procedure.state(s).payload, procedure.state(s).may_clear) for s in chosen
        )
        base = WireConstraint(
            wire=wire,  # type: ignore[arg-type]
            last=("OFFER_SELL",),
            states=shapes,
            item_names=NAMES,
            contexts=tuple((s, procedure.state(s).context) for s in chosen),
        )
        return replace(base, **fields)

    return build


@pytest.fixture(scope="session")
def ask() -> Callable[..., GenerationRequest]:
    """Builds a request with a short shop prompt."""
    shop = "You keep a shop. For sale:\n" + "\n".join(f"{name} 20" for name in NAMES[:4])

    def build(line: str, constraint: WireConstraint | None = None, **fields: Any):
        messages = (Message("system", shop), Message("user", f"cart []\nplayer: {line}"))
        return GenerationRequest(messages, constraint, **({"max_tokens": 40} | fields))

    return build


@pytest.fixture(scope="session")
def base() -> BaseModel:
    """The real base model; tests that need it are skipped where it cannot be had."""
    try:
        return resolve_base()
    except (HaggleError, ImportError) as error:
        pytest.skip(f"no base model here: {error}")
