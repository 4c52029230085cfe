"""When a merchant should ask what was meant: wrong turns against needless questions.

A decision of a low probability is more often wrong (`haggle.trade.asking`). Below which probability
to ask is a matter of what costs a player less: an order taken down wrongly has to be noticed and
put right, a question too many only takes a yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from haggle.grammar.json_text import DecodeError
from haggle.rates import share
from haggle.trade.procedure import load_procedure
from haggle.trade.wire import decode_compact

STEPS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
WRONG, QUESTION = 3.0, 1.0  # lines that each costs a player


def asking_curve(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What asking below each probability would do to answered turns.

    Each point has the questions asked, those of them that were needless (the decision was right)
    and the wrong turns that are left, each a share of all turns, and the lines that mistakes and
    questions cost a turn. `best` is the point that costs least. Empty where no probability is told.
    """
    scored = [record for record in records if record.get("probability") is not None]
    if not scored:
        return {}
    points = [_point(scored, below) for below in STEPS]
    return {"n": len(scored), "points": points, "best": min(points, key=lambda p: p["cost"])}


def _point(records: Sequence[dict[str, Any]], below: float) -> dict[str, Any]:
    asked = [r["probability"] < below and _moves_a_cart(r["answer"]) for r in records]
    pairs = [(question, bool(r["joint"])) for question, r in zip(asked, records, strict=True)]
    wrong = [not question and not right for question, right in pairs]
    return {
        "below": below,
        "asked": share(asked),
        "needless": share(question and right for question, right in pairs),
        "wrong": share(wrong),
        "cost": round((WRONG * sum(wrong) + QUESTION * sum(asked)) / len(records), 4),
    }


def _moves_a_cart(answer: str) -> bool:
    """Whether an answer puts goods into a cart or changes it: only such are asked about."""
    try:
        proposal = decode_compact(answer, load_procedure())
    except DecodeError:
        return False
    return bool(proposal.cart or proposal.change)
