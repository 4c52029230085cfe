"""Whether a spoken line fits what happened: claims of change, refusal and agreement."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from haggle.trade.lines import lines
from haggle.trade.resolve import Resolved
from haggle.trade.session import Session

_SENTENCE = re.compile(r"[^.!?]+[.!?]*")


def claims(text: str) -> set[str]:
    """What a line says that happened: `concluded`, `changed`, `emptied`, `refused`. A sentence that
    asks says nothing."""
    stated = [s.strip() for s in _SENTENCE.findall(text.casefold()) if not s.endswith("?")]
    return {claim for claim, pattern in _patterns().items() if any(map(pattern.search, stated))}


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {claim: _either(patterns) for claim, patterns in lines().claims.items()}


def _either(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def untrue_claims(session: Session, resolved: Resolved) -> list[str]:
    """What the line of an outcome claims that is not so; call before it is carried over."""
    found = claims(resolved.response.npc_dialogue)
    if not found:
        return []
    procedure, state = session.procedure, resolved.proposal.state
    closing = procedure.is_critical(state) or procedure.is_review(state)
    moved = session.cart != resolved.cart
    true = {
        "concluded": closing or not resolved.cart,
        "changed": moved or closing,
        "emptied": not resolved.cart,
        "refused": any(note.kind not in ("told", "unknown") for note in resolved.notes)
        or not (moved or closing),
    }
    return sorted(claim for claim in found if not true[claim])
