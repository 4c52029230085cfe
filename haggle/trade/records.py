"""What is kept of a dialogue: JSON Lines for runs, Parquet for data sets, one schema for both."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

from haggle.core.config import Record
from haggle.core.turn import Turn
from haggle.trade.response import MerchantResponse

SCHEMA_VERSION = 1
Scenario = Literal["specific_items", "recommendation"]
SCENARIOS: tuple[Scenario, ...] = ("specific_items", "recommendation")


class TurnRecord(Turn):
    """One round of a trade. `response` is what the player got, `cart` the ledger after it.

    `act`, `goal_state`, `goal_cart` and `goal_price` are the scripted player's hidden truth.
    """

    response: MerchantResponse
    cart: dict[str, int] = {}
    act: str | None = None
    goal_state: str | None = None
    goal_cart: dict[str, int] | None = None
    goal_price: float | None = None

    @property
    def says(self) -> str:
        """What the merchant says."""
        return self.response.npc_dialogue


class Dialogue(Record):
    """One whole dialogue with everything needed to repeat it."""

    schema_version: int = SCHEMA_VERSION
    id: str
    seed: int
    scenario: Scenario
    world: str
    method: str
    engine: str
    guard: str
    player: str
    turns: list[TurnRecord]

    def transitions(self) -> list[tuple[str, str]]:
        """Pairs of consecutive states, from `Start` on (ASTP, Figure 4)."""
        states = ["Start", *(turn.state for turn in self.turns)]
        return list(pairwise(states))


def dialogue_from(data: dict[str, Any]) -> Dialogue:
    """A dialogue read back from JSON."""
    return Dialogue.model_validate(data)
