"""An answer as a row of forced texts and open spans, cut where a model's tokens end.

A grammar forces characters, a model reads tokens. Forced text may be handed to it up to a place
that no token crosses. Whatever the model writes, one of its tokens ends at that place, so it says
what it would have said token by token.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from haggle.grammar.forced import DONE, after, forced
from haggle.grammar.nodes import Node
from serving.engines.gguf import Vocabulary

LONGEST = 24  # characters of a token that are looked at; longer ones are rows of one character


@dataclass(frozen=True, slots=True)
class Open:
    """An open span: `text` is forced before it, `grammar` is what may follow."""

    text: str
    grammar: Node

    @property
    def is_end(self) -> bool:
        """Whether nothing is left to decide."""
        return self.grammar == DONE


@lru_cache(maxsize=4096)
def next_open(vocabulary: Vocabulary, grammar: Node) -> Open:
    """The next open span of an answer. Text forced at the very end is forced whole."""
    text, rest = forced(grammar)
    if rest == DONE:
        return Open(text, rest)
    end = len(text)
    while end and _is_crossed(vocabulary, text[:end], text[end:], rest):
        end -= 1
    cut = after(grammar, text[:end])
    assert cut is not None
    return Open(text[:end], cut)


def _is_crossed(vocabulary: Vocabulary, before: str, behind: str, rest: Node) -> bool:
    """Whether a token that the grammar allows begins before the place and ends behind it."""
    return any(
        _may_follow(token[start:], behind, rest)
        for start in range(1, min(len(before), LONGEST) + 1)
        for token in vocabulary.longer(before[-start:])
    )


def _may_follow(text: str, forced_text: str, rest: Node) -> bool:
    if forced_text:
        return text[0] in (forced_text[0], "\ufffd")
    return text[0] == "\ufffd" or after(rest, text[0]) is not None
