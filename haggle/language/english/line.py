"""A line as words, and words in the singular."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

import inflection

from haggle.language.english.cues import CUES
from haggle.language.english.numbers import DIGITS_ON

TOKEN = re.compile(rf"[^\W\d_]+|\d(?:(?:st|nd|rd|th)\b|{DIGITS_ON}k?\b|\d*)")
_PLURALS = re.compile(r"s$|[ti]a$|i$|en$|ice$|people$|kine$|^oxen")  # what the rules below change
_RULES = [(re.compile(rule), single) for rule, single in inflection.SINGULARS]
_STOP = re.compile(r"\s*([.,;:!?]|$)")


class Word(NamedTuple):
    """A word of a line, in lower case and in the singular, and where it stands in the text."""

    text: str
    single: str
    start: int
    end: int


class Line(NamedTuple):
    """A line as it was typed, and its words."""

    text: str
    words: list[Word]

    @classmethod
    def of(cls, text: str) -> Line:
        """The line with its words."""
        words = [
            Word(word := match[0].casefold(), singular(word), match.start(), match.end())
            for match in TOKEN.finditer(text)
        ]
        return cls(text, words)

    def said(self, at: int) -> str:
        """The word at a place in lower case; empty outside the line."""
        return self.words[at].text if 0 <= at < len(self.words) else ""

    def place(self, start: int) -> int:
        """The place of the word that begins there in the text, or of the next one."""
        return bisect_left(self.words, start, key=lambda word: word.start)

    def gap(self, at: int) -> str:
        """The text between a word, not the first, and the one before it."""
        return self.text[self.words[at - 1].end : self.words[at].start]

    def stops(self, at: int) -> bool:
        """Whether a clause ends behind a word."""
        return _STOP.match(self.text, self.words[at].end) is not None


@lru_cache(maxsize=65536)
def singular(word: str) -> str:
    """A word in the singular, casefolded."""
    word = word.casefold()
    if len(word) < 4 or word.endswith("ss") or word in inflection.UNCOUNTABLES:
        return word
    if word.endswith("ves"):  # inflection would make glofe of gloves
        if word.endswith(CUES.singular_in_f):
            return word[:-3] + "f"
        return word[:-3] + "fe" if word.endswith(CUES.singular_in_fe) else word[:-1]
    if not _PLURALS.search(word):
        return word
    single = next((rule.sub(to, word) for rule, to in _RULES if rule.search(word)), word)
    return word.removesuffix("s") if single.endswith("is") else single  # axes: axe, not axis


@lru_cache(maxsize=65536)
def plural_name(name: str) -> str:
    """The plural of an item name; a bracketed part stays behind it, and what a measure holds:
    `Coils of Rope`."""
    whole, bracket, tail = name.partition(" (")
    head, of, content = whole.partition(" of ")
    plural = head + "es" if head.endswith("ss") else inflection.pluralize(head)
    return f"{plural}{of}{content}{bracket}{tail}"


def is_verb(line: Line, at: int) -> bool:
    """Whether the word at `at` is a verb that is a noun elsewhere: `can I`, not `the can`; `does it
    ring`, not `is it rope`."""
    before, after = line.said(at - 1), line.said(at + 1)
    if line.words[at].text not in CUES.modal:
        acts = before in CUES.doers and line.gap(at) == " "
        return acts and line.said(at - 2) in CUES.before_doers
    if after in CUES.modal_then:
        return True
    return before in CUES.pronouns or (not before and after not in {"", "of"})
