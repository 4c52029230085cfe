"""Evidence in a player's own words, read by code alone.

A line affirms a review when every word of it is accounted for: it is a row of phrases of a grammar
(`english/evidence`), at least one of which is an agreement, with the reviewed goods, numbers and
price in their slots. Whatever is left over keeps the sale open. A model takes no part in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from haggle.language.english.impossible import bids_below_nothing
from haggle.language.lexicon import Reader, reader
from haggle.language.term_slots import TermSlots
from haggle.language.terms import Terms
from haggle.language.tokens import Token, hidden_characters

Verdict = Literal["affirms", "refuses", "cancels", "open"]
NEUTRAL = ("courtesy", "terms")
AGREEING = ("affirm", "plain", "bare", "assent")
REMARKS = ("remark", "wish")
SPOKEN = (*AGREEING, "parting", *REMARKS, *NEUTRAL)
ACTED = ("gesture", "deed", *AGREEING, *NEUTRAL)
MAX_LINE = 500  # characters; what is longer is not read as an agreement


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a line is evidence of. `reason` and `words` say why it is none of an agreement."""

    verdict: Verdict
    reason: str = ""
    words: str = ""


def read_answer(line: str, terms: Terms) -> Evidence:
    """What a line, said to a review of these terms, is evidence of."""
    if len(line) > MAX_LINE or hidden_characters(line):
        return Evidence("open", "unclear")
    english = reader()
    answer = _Answer(english.words(line, terms.words), terms, english)
    if answer.is_all("refuse"):
        return Evidence("refuses")
    if answer.is_all("cancel"):
        return Evidence("cancels")
    if answer.affirms():
        return Evidence("affirms")
    return answer.doubt(line)


class _Answer:
    """One line on the way to a verdict."""

    def __init__(self, found: Sequence[Token], terms: Terms, english: Reader) -> None:
        self._terms, self._english, self._found = terms, english, found
        self._tokens = [t for t in found if t.kind not in {"comma", "stop"}]
        self._words = [self._generic(t.text) for t in self._tokens]
        self._sentences = list(_sentences(found))
        self._slots = TermSlots(self._words, terms, {start for start, _ in self._sentences})
        self._line = english.grammar.line(self._words, self._slots.by_name, self._joined())

    def _generic(self, word: str) -> str:
        """A word, or `coins` for the plural of a currency that no template says."""
        own = self._terms.currency_words - self._terms.goods_words
        unknown = word.endswith("s") and word not in self._english.known
        return "coins" if unknown and word in own else word

    def _joined(self) -> set[int]:
        """Places of words that belong to the word before, with no comma between: no phrase begins
        there. `I'm in | a bag would be grand`, `it's | cold outside`."""
        joined, at = set(), 0
        for _, clauses in self._sentences:
            for clause in clauses:
                for place, (one, two) in enumerate(pairwise(clause), at + 1):
                    if (one.text, two.text) in self._english.joints or one.shortened:
                        joined.add(place)
                at += len(clause)
        return joined

    def is_all(self, role: str) -> bool:
        """Whether the line is phrases of this role, and courtesy."""
        beside = ("courtesy", "parting")
        return bool(self._words) and self._line.covers(0, len(self._words), role, beside)

    def affirms(self) -> bool:
        """Whether every word is accounted for, and at least one phrase agrees.

        A yes is no agreement beside a farewell; a weak one (`assent`: "fine", "sure") and a
        mere action (`deed`) neither beside a farewell nor beside a remark, which might mock them.
        """
        if self._vetoed() or self._asks() or self._slots.strange_amount(self._fixed()):
            return False
        if self._quotes() or self._breaks_off() or self._tagged() or self._waits():
            return False
        found: set[str] = set()
        goods: set[str] = set()
        for start, clauses in self._sentences:
            end = start + sum(map(len, clauses))
            acted = clauses[0][0].aside
            if not (self._acted(start, end) if acted else self._line.tiles(start, end, SPOKEN)):
                return False
            goods |= self._goods_agreed_to(start, end)
            if acted:
                found |= self._roles(start, end, ("deed",), ACTED)
            else:
                found |= self._agreement(start, end) | self._beside(start, end)
        return self._agreed(found) and len(goods) in {0, len(self._terms.goods)}

    def _beside(self, start: int, end: int) -> set[str]:
        """What stands beside courtesy, terms and agreement: a remark, a farewell, both or none."""
        plain = (*AGREEING, *NEUTRAL)
        for beside, roles in (("", ()), ("remark", REMARKS), ("parting", ("parting",))):
            if self._line.tiles(start, end, (*plain, *roles)):
                return {beside}
        return {"remark", "parting"}

    def _agreement(self, start: int, end: int) -> set[str]:
        """The agreements in a sentence. A bare yes in one breath with a remark is said to that:
        `yes, nice weather`."""
        found = self._roles(start, end, AGREEING, SPOKEN)
        idle = "bare" in found and not {"affirm", "plain", "assent"} & found
        if idle and not self._line.tiles(start, end, (*AGREEING, *NEUTRAL, "wish")):
            return found - {"bare"}
        return found

    def _roles(
        self, start: int, end: int, wanted: Collection[str], beside: Collection[str]
    ) -> set[str]:
        """Which of the wanted roles have a phrase among those that tile these words."""
        return {role for role in wanted if self._line.covers(start, end, role, beside)}

    def _agreed(self, found: Collection[str]) -> bool:
        """Whether what was found in a line comes to an agreement."""
        if "affirm" in found or "parting" in found:
            return "affirm" in found
        return bool({"plain", "bare"} & set(found)) or (
            "remark" not in found and bool({"assent", "deed"} & set(found))
        )

    def _vetoed(self) -> bool:
        """Whether a phrase that keeps a sale open stands within a sentence."""
        ends = [start + sum(map(len, clauses)) for start, clauses in self._sentences]
        return any(
            self._keeps_open(role, self._words[stop - 1])
            and not any(at < end < stop for end in ends)
            for at in range(len(self._words))
            for stop, role in self._line.phrases(at)
        )

    def _keeps_open(self, role: str, last: str) -> bool:
        """Whether phrases of a role, of which this is the last word, keep this sale open."""
        kinds, pieces = len(self._terms.goods), self._terms.counts
        return (
            role == "veto"
            or (role == "epithet" and last not in self._terms.goods_words)
            or (role == "several" and self._terms.single)
            or (role == "two" and not {2} & {kinds, *pieces})
        )

    def _breaks_off(self) -> bool:
        """Whether a line ends in a word that leads on to more: `ok so`, `yeah, well`."""
        if not self._words or self._words[-1] not in self._english.lexicon.hanging:
            return False
        end = len(self._words)
        return not any(
            (end, role) in self._line.phrases(at) for at in range(end - 1) for role in SPOKEN
        )

    def _tagged(self) -> bool:
        """Whether a line reads terms back and asks: `four axes, right`."""
        start, clauses = self._sentences[-1] if self._sentences else (0, [])
        last = start + sum(map(len, clauses)) - 1
        tags = self._english.lexicon.tags
        return (
            last > start
            and self._words[last] in tags
            and self._line.covers(start, last, "terms", NEUTRAL)
        )

    @cached_property
    def _others(self) -> frozenset[str]:
        """Words that name who speaks or acts, and is not the player: `merchant`, `Ada`."""
        return self._terms.name_words.union(self._english.lexicon.speakers)

    def _quotes(self) -> bool:
        """Whether a line begins with who speaks, and a colon: `Merchant: yes`."""
        colon = next((n for n, token in enumerate(self._found) if token.text == ":"), 0)
        return colon > 0 and all(token.text in self._others for token in self._found[:colon])

    def _waits(self) -> bool:
        """Whether an agreement is for a time named before it: `We sail at dawn. I'll buy then.`"""
        named = False
        for start, clauses in self._sentences:
            said = self._words[start : start + sum(map(len, clauses))]
            if named and "then" in said[1:] and {"will", "shall"} & set(said):
                return True
            named = named or any(
                role == "moment"
                for at in range(start, start + len(said))
                for _, role in self._line.phrases(at)
            )
        return False

    def _fixed(self) -> set[int]:
        """Places of number words that belong to idioms: `a thousand times yes`."""
        return {
            place
            for at in range(len(self._words))
            for stop, role in self._line.phrases(at)
            if role == "idiom"
            for place in range(at, stop)
        }

    def _goods_agreed_to(self, start: int, end: int) -> set[str]:
        """The goods that are named with a number, or not in a courtesy: `he will love the lamp`."""
        spoken_of = [
            (at, stop)
            for at in range(start, end)
            for stop, role in self._line.phrases(at)
            if role in {"courtesy", *REMARKS} and not self._read_back(start, at, stop)
        ]
        return {
            m.key
            for m in self._slots.mentions
            if start <= m.start and m.end <= end
            and (m.counted or not any(at <= m.start and m.end <= stop and
                                      stop - at > m.end - m.start for at, stop in spoken_of))
        }  # fmt: skip

    def _read_back(self, start: int, at: int, stop: int) -> bool:
        """Whether words are part of longer terms: 118 `for the hens` and the feed."""
        return any(
            role == "terms" and end >= stop and end - first > stop - at
            for first in range(start, at + 1)
            for end, role in self._line.phrases(first)
        )

    def _asks(self) -> bool:
        """Whether a line asks: with a sign, or in a clause that begins as a question does."""
        if "?" in self._words:
            return True
        at = 0
        for _, clauses in self._sentences:
            for clause in clauses:
                begin, end = at, at + len(clause)
                while begin < end - 1 and self._words[begin] in self._english.lexicon.leading:
                    begin += 1
                asks = any(role == "question" for _, role in self._line.phrases(begin))
                if asks and not clause[0].aside:
                    return True
                at = end
        return False

    def _acted(self, start: int, end: int) -> bool:
        """Whether these words are an action of the player's that takes nothing back."""
        if self._words[start] in self._others:
            return False
        said = f" {' '.join(self._words[start:end])} "
        if any(f" {phrase} " in said for phrase in self._english.lexicon.gestures_against):
            return False
        reached = {start}
        for at in range(start, end):
            if at not in reached:
                continue
            reached.update(stop for stop in self._slots.goods(at) if stop <= end)
            reached.update(s for s, role in self._line.phrases(at) if role in ACTED and s <= end)
            if self._words[at] in self._english.gestures | self._terms.goods_words:
                reached.add(at + 1)
        return end in reached

    def doubt(self, line: str) -> Evidence:
        """Why the line is no agreement, and the words that say so."""
        strange = self._slots.strange_number()
        if strange is not None:
            first, last = strange
            words = line[self._tokens[first].start : self._tokens[last - 1].end]
            return Evidence("open", "number", words)
        texts = set(self._words)
        for reason, telling in self._english.lexicon.doubts.items():
            hit = next((word for word in telling if word in texts), None)
            if hit is not None:
                token = next(t for t in self._tokens if t.text == hit)
                return Evidence("open", reason, line[token.start : token.end])
        return Evidence("open", "unclear")


def _sentences(found: Sequence[Token]) -> Iterator[tuple[int, list[list[Token]]]]:
    """The sentences of a line, each as its clauses, with the number of its first word."""
    clauses: list[list[Token]] = [[]]
    start = count = 0
    for token in found:
        if token.kind == "stop":
            if count > start:
                yield start, [c for c in clauses if c]
            clauses, start = [[]], count
        elif token.kind == "comma":
            clauses.append([])
        else:
            clauses[-1].append(token)
            count += 1
    if count > start:
        yield start, [c for c in clauses if c]


@dataclass(frozen=True, slots=True)
class Consent:
    """What a line, as it was typed, is evidence of; read when somebody asks."""

    line: str

    def answer(self, terms: Terms) -> Evidence:
        """What it says to a review of these terms."""
        return read_answer(self.line, terms)

    def leaves(self) -> bool:
        """Whether the player leaves, or ends the talk by abuse."""
        lexicon = reader().lexicon
        return self._holds((*lexicon.leaving, *lexicon.abuse))

    def abuses(self) -> bool:
        """Whether the player is abusive."""
        return self._holds(reader().lexicon.abuse)

    def calls_off(self) -> bool:
        """Whether the whole order is called off."""
        return self._holds(reader().lexicon.calling_off)

    def replaces(self) -> bool:
        """Whether another order takes the place of the last one."""
        return self._holds(reader().lexicon.replacing)

    def bids_below_nothing(self) -> bool:
        """Whether it bids less than nothing."""
        return bids_below_nothing(self.line)

    def _holds(self, phrases: Collection[str]) -> bool:
        said = f" {' '.join(token.text for token in reader().words(self.line))} "
        return any(f" {phrase} " in said for phrase in phrases)
