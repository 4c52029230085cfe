"""What is kept of a dialogue: JSON Lines for runs, Parquet for data sets, one schema for both."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

from haggle.core.config import Record
from haggle.trade.response import MerchantResponse

SCHEMA_VERSION = 1
Scenario = Literal["specific_items", "recommendation"]
SCENARIOS: tuple[Scenario, ...] = ("specific_items", "recommendation")


class Usage(Record):
    """Tokens of one answer, as the engine's tokenizer counts them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought_tokens: int = 0


class TurnRecord(Record):
    """One round. `raw` is the model's own text; `response` is what the player got.

    `last` is the true tracked state before the turn, `state` the new one, `proposed_state` what the
    model itself chose ("" when its text could not be read). `act`, `goal_state` and `goal_cart`
    and `goal_price` are the scripted player's hidden truth. `failed` names checks that the answer
    given fails, `proposed_failed` those that the model's proposal failed, `interventions` what code
    changed to make it safe. `withheld` is why a sale stays open (`question`, `number`, `renewed`)
    and `withheld_words` the player's words that say so.
    """

    player: str
    raw: str
    response: MerchantResponse
    last: str
    state: str
    proposed_state: str = ""
    reported_last: str = ""
    valid_json: bool = True
    cart: dict[str, int] = {}
    act: str | None = None
    goal_state: str | None = None
    goal_cart: dict[str, int] | None = None
    goal_price: float | None = None
    usage: Usage = Usage()
    latency_s: float = 0.0
    failed: list[str] = []
    proposed_failed: list[str] = []
    interventions: list[str] = []
    withheld: str = ""
    withheld_words: str = ""

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
