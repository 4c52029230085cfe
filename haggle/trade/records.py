"""What is kept of a dialogue: JSON Lines for runs, Parquet for data sets, one schema for both."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from haggle.core.config import Record
from haggle.core.turn import Turn
from haggle.trade.response import MerchantResponse

SCHEMA_VERSION = 1
Scenario = Literal["specific_items", "recommendation"]
SCENARIOS: tuple[Scenario, ...] = ("specific_items", "recommendation")


class TurnRecord(Turn):
    """One round of a trade. `response` is what the player got, `cart` the ledger after it."""

    response: MerchantResponse
    cart: dict[str, int] = {}

    @property
    def says(self) -> str:
        """What the merchant says."""
        return self.response.npc_dialogue


class Truth(Record):
    """What a scripted player meant by a line: its hidden act, and the turn that is due."""

    act: str
    state: str
    cart: dict[str, int] = {}
    price: float | None = None


class PlayedTurn(TurnRecord):
    """One round with a scripted player, and its hidden truth; None where nobody knows it."""

    truth: Truth | None = None

    @property
    def act(self) -> str | None:
        """The player's hidden act."""
        return self.truth.act if self.truth else None

    @classmethod
    def of(cls, turn: TurnRecord, truth: Truth | None) -> PlayedTurn:
        """A turn with the truth beside it."""
        return cls(**(vars(turn) | {"truth": truth}))


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
    turns: list[PlayedTurn]

    def transitions(self) -> list[tuple[str, str]]:
        """Pairs of consecutive states, from `Start` on (ASTP, Figure 4)."""
        states = ["Start", *(turn.state for turn in self.turns)]
        return list(pairwise(states))
