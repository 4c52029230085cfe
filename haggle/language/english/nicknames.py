"""Goods called by another name than the list's: where a word that no name has may mean one."""

from __future__ import annotations

import re
from itertools import pairwise

from haggle.language.english.pointing import Word
from haggle.language.english.synonyms import MAX_WORDS
from haggle.language.english.vocabulary import HOLLOW, Vocabulary, common_words

_REACH = 3  # words before a noun that may stand between it and its article or number
_NOUN_FOLLOWS = frozenset(
    "a an the that this these those some any another more extra no and or n plus of with want need "
    "get gimme take buy have add drop remove keep forget swap sell got".split()
)
BEFORE_VERBS = frozenset("i you u ya we he she it they my your not be".split())
_OBJECTS = frozenset("the them it me us you him her my these those that this all both up".split())


def also_called(
    vocabulary: Vocabulary, text: str, words: list[Word], at: int, counted: int
) -> tuple[list[str], int]:
    """Ids of the goods that people also call by the words from `at` on, and how many words that is.

    `counted` is where the words behind a number begin that may yet count a mention (0: none). One
    word alone, or everyday words, are taken so only where a noun is due: behind an article, a
    number, a stop or a wish, and not before a word that it may belong to: `a light, please`, not
    `light armour`.
    """
    for length in range(min(MAX_WORDS, len(words) - at), 0, -1):
        run = words[at : at + length]
        if any(text[a.end : b.start] not in {" ", "-"} for a, b in pairwise(run)):
            continue
        ids = vocabulary.called([word.text for word in run])
        clear = length > 1 and any(word.text not in common_words() for word in run)
        if ids and (clear or _noun_due(text, words, at, at + length, counted)):
            return list(ids), length
    return [], 0


def _noun_due(text: str, words: list[Word], at: int, end: int, counted: int) -> bool:
    after = words[end] if end < len(words) else None
    if after is not None and not text[words[end - 1].end : after.start].strip():
        if after.text not in HOLLOW and after.text not in common_words():
            return False
        if after.text in _OBJECTS:  # a verb: `light them both`
            return False
    for before in reversed(range(max(0, at - _REACH), at)):
        if re.search(r"[.,;:!?+&/()]", text[words[before].end : words[before + 1].start]):
            return True
        word = words[before].text
        if word in _NOUN_FOLLOWS or before < counted:
            return True
        if word in BEFORE_VERBS or word in HOLLOW:
            return False
    return not any(word.text in common_words() for word in words[:at])
