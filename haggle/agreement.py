"""How far an answer agrees with the right one, in whatever domain the right one is.

Both are texts as a model writes them; nothing but the texts is needed, so the same score serves
training (held-out accuracy), evaluation over data sets and rewards.
"""

from __future__ import annotations

from haggle.grammar.json_text import DecodeError, is_strict_json, read_object
from haggle.trade import agreement as trade
from haggle.trade.agreement import Agreement as Agreement


def agreement(right: str, answer: str, line: str) -> Agreement:
    """Compare an answer with the right one; `line` is the user message that was answered.

    Raises DecodeError when the right one is unreadable.
    """
    if "user" not in read_object(right):
        return trade.agreement(right, answer, line)
    gold = read_object(right)
    try:
        given = read_object(answer)
    except DecodeError:
        return Agreement(False, False, False, None, None)
    return Agreement(
        valid=is_strict_json(answer),
        last=given.get("user") == gold["user"],
        state=given.get("act") == gold["act"],
        cart=None,
        bid=None,
    )
