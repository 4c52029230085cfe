"""The settings of a planner."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from haggle.core.config import Record


class PlanConfig(Record):
    """How a planner searches. The defaults are the paper's (A.3) where it names a figure.

    `candidates` are the actions asked of the model at a node (d), `depth` is how many actions a
    path may have (L), `iterations` how many roll-outs there are (N), `exploration` is the weight w
    of equation 6. `votes` is how many yes-or-no answers value an action (the paper: several), and
    how many choose among the paths of ToT. `best_of` is how many answers best-of-k draws.
    `temperature` is that of everything drawn more than once. What is asked once has `once`: the
    paper draws it at 1 as well, and a small model is better off with its likeliest answer.
    `asks` says in which words decisions are asked for: those of the `paper`, or the domain's `own`,
    which a model was trained on. Votes and what comes later are asked for in the paper's.
    `seconds` is how long the search of one turn may take, looked at before each batch of calls;
    None sets no limit.
    """

    asks: Literal["paper", "own"] = "paper"
    candidates: int = Field(3, ge=1)
    depth: int = Field(8, ge=1)
    iterations: int = Field(3, ge=0)
    exploration: float = Field(1.0, ge=0)
    votes: int = Field(3, ge=1)
    best_of: int = Field(5, ge=1)
    temperature: float = Field(1.0, ge=0)
    once: float = Field(0.0, ge=0)
    seconds: float | None = Field(None, ge=0)
