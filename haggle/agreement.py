"""How far an answer agrees with the right one, in whatever domain the right one is.

Both are texts as a model writes them; nothing but the texts is needed, so the same score serves
training (held-out accuracy), evaluation over data sets and rewards.
"""

from __future__ import annotations

from haggle.core.domain import Verdict
from haggle.grammar.json_text import read_object
from haggle.sop.domain import SOP
from haggle.trade.merchant import TRADE


def agreement(right: str, answer: str, line: str) -> Verdict:
    """Compare an answer with the right one; `line` is the user message that was answered.

    Raises DecodeError when the right one is unreadable.
    """
    if "user" in read_object(right):
        return SOP.agreement(right, answer, line)
    return TRADE.agreement(right, answer, line)
