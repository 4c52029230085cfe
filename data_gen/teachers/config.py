"""What a data config says about models: as merchant, as player, as rewriter of scripted lines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from haggle.core.config import Record
from haggle.trade.merchant import Guard
from haggle.trade.methods import get_method

Attempts = Annotated[int, Field(ge=1, le=20)]
Temperature = Annotated[float, Field(ge=0, le=2)]
Tokens = Annotated[int, Field(ge=8, le=8192)]


def _unquoted_off(value: object) -> object:
    """YAML reads an unquoted `off` as false."""
    return "off" if value is False else value


class RewriterConfig(Record):
    """A model rephrases what the scripted player and the oracle say.

    `engine` is a serve config's name or file. `player` and `merchant` say whose lines, `share` what
    part of them. A line is asked for `max_attempts` times in all; then the original stands.
    """

    engine: str
    player: bool = True
    merchant: bool = True
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_attempts: Attempts = 3
    temperature: Temperature = 0.8
    max_tokens: Tokens = 96

    @model_validator(mode="after")
    def _somebodys_lines(self) -> RewriterConfig:
        if not (self.player or self.merchant):
            raise ValueError("rewrites nobody's lines: set player or merchant to true")
        return self


class TeacherConfig(Record):
    """A model as the merchant, and a rewriter of scripted lines; one of the two or both.

    `engine` is a serve config's name or file, None leaves the oracle behind the counter. With an
    engine the rewriter has the player's lines alone. The model is asked by `method`, under `guard`
    while decoding. A turn is asked for `max_attempts` times in all; then, by `on_failure`, the
    oracle's answer stands in or the dialogue is dropped. Before a scripted player the answer must
    be what the oracle would have done, unless `trust` is set. `max_tokens` bounds a compact answer,
    a full one may have four times as many. `concurrency` is the number of dialogues under way at
    once.
    """

    engine: str | None = None
    method: str = "astp"
    guard: Annotated[Guard, BeforeValidator(_unquoted_off)] = "off"
    max_attempts: Attempts = 3
    on_failure: Literal["oracle", "drop"] = "oracle"
    trust: bool = False
    temperature: Temperature = 0.7
    max_tokens: Tokens = 160
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 8
    rewriter: RewriterConfig | None = None

    @model_validator(mode="after")
    def _has_work(self) -> TeacherConfig:
        if self.engine is None and self.rewriter is None:
            raise ValueError("names no model: give `engine`, `rewriter` or both")
        if self.engine is not None and self.rewriter is not None and not self.rewriter.player:
            raise ValueError(
                "rewriter.player is false, and the merchant's lines are those of `engine`: "
                "nothing is left to rewrite"
            )
        get_method(self.method)
        return self


class PlayerConfig(Record):
    """A model as the player (SIBP, Appendices B and C).

    `engine` is a serve config's name or file; the papers sample at temperature 0.7. The first line
    is the scripted player's of the same seed. A line is asked for `max_attempts` times in all;
    then, by `on_failure`, the dialogue is dropped or ends there. A dialogue has at most
    `max_rounds` rounds, and `after_sale` of them after a sale when the model does not say End.
    """

    engine: str
    max_attempts: Attempts = 3
    on_failure: Literal["drop", "end"] = "drop"
    temperature: Temperature = 0.7
    max_tokens: Tokens = 80
    max_rounds: Annotated[int, Field(ge=1, le=100)] = 12
    after_sale: Annotated[int, Field(ge=0, le=100)] = 1
