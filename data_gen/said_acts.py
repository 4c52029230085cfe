"""What a scripted player does in a line, in the word that the format `acted` has for it."""

from __future__ import annotations

from data_gen.acts import Act

_KINDS = {
    "browse": "look",
    "recommend": "look",
    "unclear": "look",
    "ask_item": "ask",
    "ask_price": "ask",
    "ask_stock": "ask",
    "ask_unsold": "ask",
    "compare": "ask",
    "restate": "ask",
    "clear": "clear",
    "haggle": "bid",
    "agree": "agree",
    "hesitate": "refuse",
    "leave": "leave",
    "insult": "leave",
}


def word_for(act: Act) -> str:
    """The word for an act."""
    if act.kind == "order":
        return "change" if act.changed else "order"
    return _KINDS.get(act.kind, "talk")
