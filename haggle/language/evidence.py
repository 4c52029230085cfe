"""Evidence in a player's own words.

A sale needs a yes that code reads: phrases of a grammar (`Answer`). Where all words of a line are
accounted for they are the evidence. Where other words stand beside a clause that agrees, a judge
says whether they are harmless; it is a model, and can only refuse. Without one they are not.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Protocol

from haggle.language.answer import Answer
from haggle.language.chosen import bids_below_nothing
from haggle.language.lexicon import reader
from haggle.language.terms import Terms
from haggle.language.tokens import affirmed, hidden_characters, is_marked, spoken

Verdict = Literal["affirms", "refuses", "cancels", "open"]
MAX_LINE = 500  # characters; what is longer is not read as an agreement
BARE = 2  # words of a clause that is nothing but abuse
TRAILS_OFF = " .…"  # how a line ends that trails off
AGAIN = "again: "  # before an answer to a second question
HARMLESS = 6.5  # log odds above which a judge finds nothing beside an agreement but small talk
DOUBTFUL = -6.9  # below which it overrules an agreement that code has read


class Judge(Protocol):
    """A model of what answers mean."""

    def agreement(self, answer: str) -> float:
        """Log odds that an answer to a review agrees to it. In the answer the reviewed goods are
        called `the goods`, the price `the price`; AGAIN stands before it where it answers a second
        question."""
        ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a line is evidence of. `reason` and `words` say why it is none of an agreement."""

    verdict: Verdict
    reason: str = ""
    words: str = ""


def read_answer(
    line: str,
    terms: Terms,
    judge: Judge | None = None,
    *,
    others: bool = False,
    again: bool = False,
) -> Evidence:
    """What a line, said to a review of these terms, is evidence of; `others`: it names other goods
    of the shop; `again`: a first answer was not understood. A second yes of which every word is
    accounted for is not doubted again."""
    if len(line) > MAX_LINE or hidden_characters(line) or is_marked(line):
        return Evidence("open", "unclear")
    answer = Answer(line, terms)
    if answer.is_all("refuse"):
        return Evidence("refuses")
    if answer.is_all("cancel"):
        return Evidence("cancels")
    if again and (answer.affirms() or _is_mere_yes(line.rstrip(TRAILS_OFF), terms)):
        return Evidence("affirms")  # who was asked for just a yes and says "yes...", says it
    least = _least_odds(answer, others=others, again=again, judged=judge is not None)
    affirms = least < math.inf and (
        judge is None or judge.agreement(AGAIN * again + answer.in_general()) > least
    )
    return Evidence("affirms") if affirms else Evidence("open", *answer.doubt())


def _is_mere_yes(line: str, terms: Terms) -> bool:
    """Whether a line is nothing but a yes, with courtesy: more than "fine", "deal", "I take it"."""
    answer = Answer(line, terms)
    return answer.is_all("bare") and answer.affirms()


def _least_odds(answer: Answer, *, others: bool, again: bool, judged: bool) -> float:
    """The log odds above which a judge lets a line agree; infinite where code reads no yes."""
    if answer.affirms():
        return DOUBTFUL
    in_part = judged and not others and answer.agrees_in_part(again=again)
    return HARMLESS if in_part else math.inf


@dataclass(frozen=True, slots=True)
class Consent:
    """What a line, as it was typed, is evidence of; read when somebody asks."""

    line: str
    judge: Judge | None = None
    others: bool = False  # whether it names goods that are not in the cart

    def answer(self, terms: Terms, *, again: bool = False) -> Evidence:
        """What it says to a review of these terms, `again` where a first answer was not clear."""
        return read_answer(self.line, terms, self.judge, others=self.others, again=again)

    def leaves(self) -> bool:
        """Whether the player leaves, or ends the talk by abuse. Nobody leaves by a question."""
        lexicon = reader().lexicon
        return self._says((*lexicon.leaving, *lexicon.abuse))

    def abuses(self) -> bool:
        """Whether the player is abusive: "bye, the dog must out" is a mere farewell."""
        lexicon = reader().lexicon
        abusive = self._saying(lexicon.abuse)
        meant = any(len(w) <= BARE or not {*lexicon.you}.isdisjoint(w) for w in abusive)
        return meant or bool(abusive and not self._says(lexicon.leaving))

    def calls_off(self) -> bool:
        """Whether the whole order is called off, or is asked to be: `could you cancel it?`"""
        return self._says(reader().lexicon.calling_off, requested=True)

    def replaces(self) -> bool:
        """Whether another order takes the place of the last one: `can I swap it?`"""
        return self._says(reader().lexicon.replacing, requested=True)

    def bids_below_nothing(self) -> bool:
        """Whether it bids less than nothing."""
        return bids_below_nothing(self.line)

    def _says(self, phrases: Collection[str], requested: bool = False) -> bool:
        return bool(self._saying(phrases, requested))

    def _saying(self, phrases: Collection[str], requested: bool = False) -> list[list[str]]:
        """The clauses that say one of these phrases; in a question only what is `requested`."""
        lexicon, found = reader().lexicon, list[list[str]]()
        for clauses, is_asked in spoken(reader().words(self.line)):
            first = next((word for word in clauses[0] if word not in lexicon.leading), "")
            if not is_asked or (requested and first in lexicon.requesting):
                found += [words for words in clauses if affirmed(words, phrases)]
        return found
