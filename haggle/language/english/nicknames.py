"""Goods called by another name than the list's: where a word that no name has may mean one."""

from __future__ import annotations

import re

from haggle.language.english.cues import CUES
from haggle.language.english.line import Line
from haggle.language.english.names import Names, Run
from haggle.language.english.synonyms import MAX_WORDS

_REACH = 3  # words before a noun that may stand between it and its article or number
_PARTS = re.compile(r"[.,;:!?+&/()]")


def nickname(names: Names, line: Line, at: int, counted: int) -> Run:
    """The goods that people also call by the words from `at` on.

    `counted` is where in the text a number ends that may yet count a mention (0: none). One word
    alone, or everyday words, are taken so only where a noun is due: behind an article, a number, a
    stop or a wish, and not before a word that it may belong to: `a light, please`, not `light
    armour`.
    """
    if not names.may_be_nicknamed(line.words[at]):
        return Run()
    for end in range(min(at + MAX_WORDS, len(line.words)), at, -1):
        words = line.words[at:end]
        ids = names.nicknamed(words)
        if not ids or any(line.gap(i) not in {" ", "-"} for i in range(at + 1, end)):
            continue
        clear = len(words) > 1 and any(word.text not in CUES.common for word in words)
        if clear or _noun_due(line, at, end, counted):
            return Run(tuple(ids), len(words))
    return Run()


def _noun_due(line: Line, at: int, end: int, counted: int) -> bool:
    if end < len(line.words) and not line.gap(end).strip():
        after = line.said(end)
        if after in CUES.objects:  # a verb: `light them both`
            return False
        if after not in CUES.hollow and after not in CUES.common:
            return False
    for place in reversed(range(max(0, at - _REACH), at)):
        word = line.words[place]
        if _PARTS.search(line.gap(place + 1)):
            return True
        if word.text in CUES.noun_follows or word.end <= counted:
            return True
        if word.text in CUES.before_verbs or word.text in CUES.hollow:
            return False
    return not any(word.text in CUES.common for word in line.words[:at])
