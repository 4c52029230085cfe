"""What is kept of one round, whatever the character."""

from __future__ import annotations

from haggle.core.config import Record


class Usage(Record):
    """Tokens of one answer, as the engine's tokenizer counts them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    thought_tokens: int = 0


class Turn(Record):
    """One round. `raw` is the model's own text; what the player gets is the domain's to add.

    `last` is the true tracked state before the turn, `state` the new one, `proposed_state` what the
    model itself chose ("" when its text could not be read). `failed` names checks that the answer
    given fails, `proposed_failed` those that the model's proposal failed, `interventions` what code
    changed to make it safe. `withheld` is why something irreversible did not happen, and
    `withheld_words` the player's words that say so. `probability` is that of the decision, where
    the engine was asked for it; `cut` says that the text ran into the limit of tokens.
    """

    player: str
    raw: str
    last: str
    state: str
    proposed_state: str = ""
    reported_last: str = ""
    valid_json: bool = True
    usage: Usage = Usage()
    latency_s: float = 0.0
    failed: list[str] = []
    proposed_failed: list[str] = []
    interventions: list[str] = []
    withheld: str = ""
    withheld_words: str = ""
    probability: float | None = None
    cut: bool = False

    @property
    def says(self) -> str:
        """What the character says."""
        raise NotImplementedError
