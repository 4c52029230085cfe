"""Candidates: which things of a catalogue a run of words can name.

A word is compared in the singular, and also as the beginning of a name's word, with an ending that
is not its own, or with letters wrong. Everyday words never count as misspelt or shortened names.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple, TypeVar

from rapidfuzz.distance import OSA

from haggle.language.english.cues import CUES
from haggle.language.english.line import TOKEN, Line, Word, is_verb, singular
from haggle.language.english.numbers import UNITS, begins_number
from haggle.language.english.synonyms import nicknames
from haggle.language.english.synonyms import words as known_words

EXACT, PREFIX, TYPO = 1.0, 0.9, 0.8
MAX_RUN = 6  # words a mention may have
KEPT = 4096  # words that players typed, of which a catalogue remembers what they can name
_STOP = re.compile(r"[.,;:!?]")
_ENDINGS = {"e", "s", "es", "y", "ed", "d", "ing", "en", "ish", "ly"}
_JOINING_SIGN = re.compile(r"[+&/]")
T = TypeVar("T")
_Score = tuple[float, bool]  # how well a word fits a name, and whether it can stand for the whole
_NONE: _Score = (0.0, False)
_NOTHING: dict[str, _Score] = {}  # what most words are, once for all
_CUES = {"both"}.union(
    CUES.sizes, CUES.sized_ones, CUES.modal, CUES.ordinals, CUES.last, CUES.ones,
    CUES.cheap, CUES.dear, CUES.better, CUES.priced,
)  # fmt: skip


class _Fit(NamedTuple):
    """How well the words so far fit a name; `covered` are those that they are in it."""

    score: float = 0.0
    strong: bool = False
    covered: frozenset[str] = frozenset()


class Run(NamedTuple):
    """Words that name something: the ids of what they can mean, and how many words."""

    ids: tuple[str, ...] = ()
    length: int = 0


class Names:
    """The words of the names of one catalogue, and of its currency."""

    def __init__(
        self, currency: str, things: Iterable[tuple[str, str, bool]], lexicon: bool = True
    ) -> None:
        """`things` are ids, names, and whether each was ever for sale; `lexicon` says whether what
        else people call them is looked up."""
        self.dull = frozenset(map(singular, _words_of(currency)))
        self._words: dict[str, tuple[str, ...]] = {}
        self._heads: dict[str, str] = {}
        self._known_only: set[str] = set()
        self._owners: dict[str, list[str]] = {}
        self._nicknamed: dict[str, list[str]] = {}
        for thing_id, name, sold in things:
            words = self._words[thing_id] = _words_of(name)
            self._heads[thing_id] = (_words_of(name.split(" (")[0]) or (name,))[-1]
            for word in {*words, *(a + b for a, b in pairwise(words))}:
                self._owners.setdefault(word, []).append(thing_id)
            if not sold:
                self._known_only.add(thing_id)
                continue
            for nickname in nicknames(name) if lexicon else ():
                self._nicknamed.setdefault(nickname, []).append(thing_id)
        names = [words for words in self._words.values() if len(words) > 1]
        self._measures = CUES.sets & {words[0] for words in names}  # of a "set of wheels"
        self._order = {thing_id: place for place, thing_id in enumerate(self._words)}
        self._sorted = sorted(self._owners)
        self._nickname_starts = {nickname.partition(" ")[0] for nickname in self._nicknamed}
        self._scores: dict[str, dict[str, _Score]] = {}
        self._idle: dict[str, bool] = {}

    def is_idle(self, word: Word) -> bool:
        """Whether nothing hangs on a word: it begins no name, and is no cue."""
        if word.text not in self._idle:
            cue = word.text in _CUES or begins_number(word.text) or self.may_be_nicknamed(word)
            idle = not (cue or self._begins_name(word.single) or self.scores(word))
            _remember(self._idle, word.text, idle)
        return self._idle[word.text]

    def _begins_name(self, word: str) -> bool:
        place = bisect_left(self._sorted, word)
        return place < len(self._sorted) and self._sorted[place].startswith(word)

    def may_be_nicknamed(self, word: Word) -> bool:
        """Whether what people also call one of the things begins with a word."""
        return word.single in self._nickname_starts

    def nicknamed(self, words: Iterable[Word]) -> Collection[str]:
        """Ids of the things that people also call by these words, which their names lack."""
        name = " ".join(word.single for word in words)
        return () if name in self.dull else self._nicknamed.get(name, ())

    def owners(self, word: Word) -> Collection[str]:
        """Ids of the things whose names have this word."""
        return self._owners.get(word.single, ())

    def owners_of_pair(self, word: Word, following: Word) -> list[str]:
        """Ids of the things in whose names the two words stand side by side."""
        for last in (following.single, following.single.removesuffix("ed")):  # "five-fingered"
            pair = word.single, last
            owners = self._owners.get("".join(pair), ())
            if found := [i for i in owners if pair in pairwise(self._words[i])]:
                return found
        return []

    def is_whole(self, thing_id: str, said: Collection[str]) -> bool:
        """Whether the words said (in the singular) are all that a name has."""
        return set(self._words[thing_id]) <= set(said)

    def headed(self, ids: Collection[str], word: Word) -> list[str]:
        """Of the things whose names have a word those that it is the last of: a deck lamp is a
        lamp, lamp oil is not."""
        return [i for i in ids if self._heads[i] == word.single]

    def run(self, line: Line, at: int) -> Run:
        """The longest run of words from a place on that can name something."""
        best, fits, before = Run(), dict[str, _Fit](), ""
        for place, word in enumerate(line.words[at : at + MAX_RUN], start=at):
            if place > at and self._parted(line, at, place, fits):
                break
            if word.text in CUES.hollow:
                if place == at:
                    break
                continue
            here = self._joined(word, before, fits) if before else self._first_scores(word)
            if not here:
                return best if before else self._pair(line, at)
            fits = {i: _grown(fits.get(i, _Fit()), score, word) for i, score in here.items()}
            before = word.single
            best = Run(ids, place - at + 1) if (ids := self._chosen(fits)) else best
        return best

    def lead(self, line: Line, at: int) -> Run:
        """What a run that begins with the number at `at` means.

        The number belongs to the name where the two stand side by side in it, `six-shot revolver`,
        `50m of rope`, and counts pieces where the words behind it are the whole name of another.
        """
        word = line.words[at]
        if not (word.text in UNITS or word.text.isdecimal()) or at + 1 == len(line.words):
            return Run()
        leads = self.owners_of_pair(word, line.words[at + 1])
        run = self.run(line, at + 1) if leads else Run()
        kept = tuple(i for i in run.ids if i in leads)
        others = [i for i in run.ids if i not in leads]
        said = {word.single for word in line.words[at + 1 : at + 1 + run.length]}
        if not kept or any(self.is_whole(i, said) for i in others):
            return Run()
        glued = line.gap(at + 1) in {"", "-"} or word.text.isdecimal()
        measures = all(self._is_measured(i, line.words[at + 1]) for i in others)
        return Run(kept, run.length + 1) if glued or measures else Run()

    def _is_measured(self, thing_id: str, word: Word) -> bool:
        """Whether a word of a name has a number before it: the litres of a two-litre bag."""
        pairs = pairwise(self._words[thing_id])
        return any(b == word.single and (a in UNITS or a.isdecimal()) for a, b in pairs)

    def scores(self, word: Word) -> dict[str, _Score]:
        """The ids that a word can belong to, and how well."""
        if word.text not in self._scores:
            _remember(self._scores, word.text, self._look_up(word.text, word.single))
        return self._scores[word.text]

    def _first_scores(self, word: Word) -> dict[str, _Score]:
        """As `scores`, of a word by itself: one that people know is no other word mistyped or
        shortened; spring is no string, a pot no potion."""
        found = self.scores(word)
        if not found or word.single in self._owners or word.single not in known_words():
            return found
        alike = [other for other in self._owners if _is_form(word.single, other)]
        ids = {i for other in alike for i in self._owners[other]}
        return {i: score for i, score in found.items() if i in ids}

    def _look_up(self, said: str, key: str) -> dict[str, _Score]:
        if key in CUES.hollow or key in self.dull or said in UNITS:
            return _NOTHING
        common = said in CUES.common or key in CUES.common
        direct = self._owners.get(key) or self._owners.get(said)
        if direct:
            return {i: (EXACT, self._names_it(i, key, common)) for i in direct}
        if common or len(key) < 3 or not key.isalpha():
            return _NOTHING
        first = bisect_left(self._sorted, key[0])
        alike = takewhile(lambda other: other[0] == key[0], self._sorted[first:])
        likeness = {other: _likeness(key, other) for other in alike}
        top = max(likeness.values(), default=0.0)
        found: dict[str, _Score] = {}
        for other in (other for other, score in likeness.items() if score and score == top):
            for i in self._owners[other]:
                found[i] = max(found.get(i, _NONE), (top, self._names_it(i, other, False)))
        return found

    def _names_it(self, thing_id: str, word: str, common: bool) -> bool:
        """Whether this word of a name can stand for the whole: nouns can, everyday words cannot."""
        if len(word) < 2 or word.isdigit():
            return False
        is_head = self._heads[thing_id] == word
        if is_head and word in self._measures:
            return self._words[thing_id][0] == word  # "two sets" are no chess sets
        return is_head and not common if thing_id in self._known_only else is_head or not common

    def _joined(self, word: Word, before: str, fits: Mapping[str, _Fit]) -> dict[str, _Score]:
        """The scores of a word among what fits so far, by itself or as one with the word before."""
        found = self.scores(word)
        joined = self._owners.get(singular(before + word.single), ())
        return {
            i: max(found.get(i, _NONE), (EXACT, True) if i in joined else _NONE)
            for i in fits
            if i in found or i in joined
        }

    def _pair(self, line: Line, at: int) -> Run:
        """Two words that a name writes as one: `pick axe`."""
        pair = line.words[at : at + 2]
        if len(pair) < 2 or pair[1].start - pair[0].end != 1:
            return Run()
        ids = self._owners.get(singular(pair[0].single + pair[1].single))
        return Run(tuple(ids), 2) if ids else Run()

    def _chosen(self, fits: Mapping[str, _Fit]) -> tuple[str, ...]:
        """Of the things that fit, the best; whole names go before parts of longer ones."""
        usable = {i: fit.score for i, fit in fits.items() if fit.strong}
        top = max(usable.values(), default=0.0) - 0.01
        best = [i for i, score in usable.items() if score >= top]
        whole = [i for i in best if self.is_whole(i, fits[i].covered)]
        return tuple(sorted(whole or best, key=self._order.__getitem__))

    def _parted(self, line: Line, start: int, at: int, fits: Collection[str]) -> bool:
        """Whether a run from `start` ends before the word at `at`: at a stop, a verb, or a word or
        sign that joins two things, unless a name that still fits goes on behind it."""
        gap, words = line.gap(at), line.words
        joins = words[at].text in CUES.joining
        if gap == " " and not joins and words[at].text not in CUES.modal:
            return False
        if _STOP.search(gap) or is_verb(line, at):
            return True
        if not joins and not _JOINING_SIGN.search(gap):
            return False
        before = next(w for w in reversed(words[start:at]) if w.text not in CUES.hollow)
        after = next((w for w in words[at + joins :] if w.text not in CUES.hollow), None)
        return after is None or not set(fits) & set(self.owners_of_pair(before, after))


def _remember(known: dict[str, T], word: str, found: T) -> None:
    """Remember what a word is; from a full memory all go."""
    if len(known) >= KEPT:
        known.clear()
    known[word] = found


@lru_cache(maxsize=65536)
def _words_of(name: str) -> tuple[str, ...]:
    words = (singular(match[0]) for match in TOKEN.finditer(name))
    return tuple(word for word in words if word not in CUES.hollow)


def _grown(fit: _Fit, score: _Score, word: Word) -> _Fit:
    return _Fit(fit.score + score[0], fit.strong or score[1], fit.covered | {word.single})


def _is_form(word: str, other: str) -> bool:
    """Whether a word may be a form of a name's word (rust, rusty), or another spelling of it."""
    likeness = _likeness(word, other)
    if likeness != PREFIX:
        return likeness == TYPO and len(word) != len(other)
    short, long = sorted((word, other), key=len)
    ending = long[len(short) :]
    doubled = ending[:1] == short[-1] and ending[1:] in _ENDINGS  # wrap, wrapping
    return ending in _ENDINGS or doubled


def _likeness(word: str, other: str) -> float:
    """How much a word looks like a name's word: shortened, lengthened or mistyped; 0 for not."""
    longer = len(word) - len(other)
    if other.startswith(word) or (len(other) >= 5 and longer <= 2 and word.startswith(other)):
        return PREFIX
    if len(word) < 5 or len(other) < 5 or word[0] != other[0]:
        return 0.0
    allowed = 1 if min(len(word), len(other)) < 8 else 2
    return TYPO if OSA.distance(word, other, score_cutoff=allowed) <= allowed else 0.0
