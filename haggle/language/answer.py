"""A line that was said to a review, as phrases of a grammar (`english/evidence`).

It affirms where every word is accounted for: a row of phrases, at least one of which is an
agreement, with the reviewed goods, numbers and price in their slots. It agrees in part where a
clause does so by itself and nothing in the line says other terms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from haggle.language.lexicon import reader
from haggle.language.term_slots import TermSlots
from haggle.language.terms import Terms
from haggle.language.tokens import NEGATIONS, Token, holds

NEUTRAL = ("courtesy", "terms")
DEAL = ("affirm",)
STRONG = (*DEAL, "plain")
YES = (*STRONG, "bare")
AGREEING = (*YES, "assent")
REMARKS = ("remark", "wish")
SPOKEN = (*AGREEING, "parting", *REMARKS, *NEUTRAL)
ACTED = ("gesture", "deed", *AGREEING, *NEUTRAL)


class Answer:
    """One line on the way to a verdict."""

    def __init__(self, line: str, terms: Terms) -> None:
        english = reader()
        found = english.words(line, terms.words)
        self._said, self._terms, self._english, self._found = line, terms, english, found
        self._tokens = [t for t in found if t.kind not in {"comma", "stop"}]
        self._words = [self._generic(t.text) for t in self._tokens]
        self._sentences = list(_sentences(found))
        self._clauses = [clause for sentence in self._sentences for clause in sentence.clauses]
        starts, clauses = ({s.start for s in spans} for spans in (self._sentences, self._clauses))
        self._slots = TermSlots(self._words, terms, starts, clauses)
        self._line = english.grammar.line(self._words, self._slots.by_name, self._joined())

    def _generic(self, word: str) -> str:
        """A word, or `coins` for the plural of this sale's currency."""
        own = self._terms.currency_words - self._terms.goods_words
        return "coins" if word.endswith("s") and word in own else word

    def _joined(self) -> set[int]:
        """Places of words that belong to the word before, with no comma between: no phrase begins
        there. `I'm in | a bag would be grand`, `it's | cold outside`, `it is so | cold`."""
        return {
            place + 1
            for clause in self._clauses
            for place in range(clause.start, clause.stop - 1)
            if self._tokens[place].shortened
            or (place > clause.start and self._words[place] in self._english.lexicon.intensifying)
            or (self._tokens[place].text, self._tokens[place + 1].text) in self._english.joints
        }

    def is_all(self, role: str) -> bool:
        """Whether the line is phrases of this role, and courtesy."""
        beside = ("courtesy", "parting")
        return bool(self._words) and self._line.covers(0, len(self._words), role, beside)

    def affirms(self) -> bool:
        """Whether every word is accounted for, and at least one phrase agrees.

        A yes is no agreement beside a farewell; a weak one (`assent`: "fine", "sure") and a
        mere action (`deed`) neither beside a farewell nor beside a remark, which might mock them.
        """
        if self._held_back() or self._asks() or self._slots.strange_amount(self._fixed()):
            return False
        found: set[str] = set()
        goods: set[str] = set()
        for sentence in self._sentences:
            start, end = sentence.start, sentence.stop
            acted = self._tokens[start].aside
            if not (self._acted(start, end) if acted else self._line.tiles(start, end, SPOKEN)):
                return False
            goods |= self._goods_agreed_to(start, end)
            if acted:
                found |= self._roles(start, end, ("deed",), ACTED)
            else:
                found |= self._agreement(start, end) | self._beside(start, end)
        return self._agreed(found) and len(goods) in {0, len(self._terms.goods)}

    def agrees_in_part(self, *, again: bool = False) -> bool:
        """Whether a sentence agrees by itself, all goods or none are named in such sentences, none
        in one with a negation, and no number says other terms. What the rest means is left open.
        Where the merchant asks `again`, a yes does in place of an agreement, but not in leaving."""
        again = again and not self._leaves()
        if self._held_back() or self._asks() or self._takes_back():
            return False
        agreeing, denied = set[int](), set[int]()
        for sentence in self._sentences:
            if self._agrees_by_itself(sentence, again):
                if self._hedges(sentence):
                    return False
                agreeing.update(sentence.places)
            if NEGATIONS.intersection(self._said_at(sentence.places)):
                denied.update(sentence.places)
        named = {m.key for m in self._slots.mentions if m.start in agreeing}
        return (
            bool(agreeing)
            and len(named) in {0, len(self._terms.goods)}
            and not any(m.start in denied for m in self._slots.mentions)
            and not self._slots.strange_amount(self._fixed(), agreeing)
        )

    def _leaves(self) -> bool:
        """Whether a farewell, or other words of going, are in the line."""
        places = range(len(self._words))
        parts = any(role == "parting" for at in places for _, role in self._line.phrases(at))
        return parts or holds(self._words, self._english.lexicon.leaving)

    def _takes_back(self) -> bool:
        """Whether a clause is a mere denial (`deal, not`), or an action puts something back."""
        return any(
            NEGATIONS.issuperset(self._said_at(clause))
            or (self._tokens[clause.start].aside and self._against(clause))
            for clause in self._clauses
        )

    def _against(self, places: range) -> bool:
        """Whether words tell an action that is none of an agreement: `puts the coins back`."""
        return holds(self._said_at(places), self._english.lexicon.gestures_against)

    def _said_at(self, places: range) -> list[str]:
        return self._words[places.start : places.stop]

    def _agrees_by_itself(self, sentence: _Sentence, again: bool) -> bool:
        """Whether a sentence agrees, or a clause of it closes the deal or begins to."""
        clauses = [self._led(clause) for clause in sentence.clauses]
        return (
            self._is_one_of(YES if again else STRONG, sentence.places)
            or any(self._is_one_of(YES if again else DEAL, clause) for clause in clauses)
            or any(self._opens(clause) for clause in clauses)
        )

    def _hedges(self, sentence: _Sentence) -> bool:
        """Whether a clause of a sentence that no phrases account for has a word that puts off,
        limits or turns terms down: `cheaper sounds good to me, ring it up`."""
        return any(
            self._english.hedges.intersection(self._said_at(clause))
            for clause in sentence.clauses
            if not self._line.tiles(clause.start, clause.stop, SPOKEN)
        )

    def _led(self, clause: range) -> range:
        """A clause without the words that lead it on: `so`, `and`."""
        start = clause.start
        while start < clause.stop - 1 and self._words[start] in self._english.lexicon.leading:
            start += 1
        return range(start, clause.stop)

    def _is_one_of(self, roles: Collection[str], places: range) -> bool:
        """Whether these words are a row of phrases, one of them of such a role."""
        return any(self._line.covers(places.start, places.stop, role, SPOKEN) for role in roles)

    def _opens(self, clause: range) -> bool:
        """Whether a clause begins as one that closes the deal."""
        phrases = self._line.phrases(clause.start)
        return any(role == "opening" and end <= clause.stop for end, role in phrases)

    def in_general(self) -> str:
        """The line with the reviewed goods and price as plain words, whatever they are."""
        spans = [(m.start, m.end, "the goods") for m in self._slots.mentions if m.fits]
        spans += [
            (at, end, "the price")
            for at in range(len(self._words))
            for end in self._slots.by_name["price"](at)
        ]
        told, done = "", 0  # of spans that overlap, the first and longest stands
        for start, end, words in sorted(spans, key=lambda span: (span[0], -span[1])):
            first, last = self._tokens[start].start, self._tokens[end - 1].end
            if first >= done:
                told, done = f"{told}{self._said[done:first]}{words}", last
        return told + self._said[done:]

    def _held_back(self) -> bool:
        """Whether words of doubt, a quotation or an unfinished end keep the sale open."""
        broken = self._breaks_off() or self._tagged()
        return broken or self._vetoed() or self._quotes() or self._waits()

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
        ends = [sentence.stop for sentence in self._sentences]
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
        """Whether a line ends in a word that leads on to more: `ok so`, `yeah, well, I'm`."""
        if self._tokens and self._tokens[-1].shortened:
            return True
        if not self._words or self._words[-1] not in self._english.lexicon.hanging:
            return False
        end = len(self._words)
        return not any(
            (end, role) in self._line.phrases(at) for at in range(end - 1) for role in SPOKEN
        )

    def _tagged(self) -> bool:
        """Whether a line reads terms back and asks: `four axes, right`."""
        if not self._sentences:
            return False
        start, last = self._sentences[-1].start, self._sentences[-1].stop - 1
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
        for sentence in self._sentences:
            said = self._said_at(sentence.places)
            if named and "then" in said[1:] and {"will", "shall"} & set(said):
                return True
            named = named or any(
                role == "moment" for at in sentence.places for _, role in self._line.phrases(at)
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
        return any(
            not self._tokens[clause.start].aside and self._is_question(clause)
            for clause in self._clauses
        )

    def _is_question(self, clause: range) -> bool:
        """Whether a clause begins as a question does, behind words that may lead it."""
        begin = self._led(clause).start
        return any(role == "question" for _, role in self._line.phrases(begin))

    def _acted(self, start: int, end: int) -> bool:
        """Whether these words are an action of the player's that takes nothing back."""
        if self._words[start] in self._others or self._against(range(start, end)):
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

    def doubt(self) -> tuple[str, str]:
        """Why the line is no agreement, and the words that say so."""
        line = self._said
        strange = self._slots.strange_number()
        if strange is not None:
            first, last = strange
            words = line[self._tokens[first].start : self._tokens[last - 1].end]
            return "number", words
        texts = set(self._words)
        for reason, telling in self._english.lexicon.doubts.items():
            hit = next((word for word in telling if word in texts), None)
            if hit is not None:
                token = next(t for t in self._tokens if t.text == hit)
                return reason, line[token.start : token.end]
        return "unclear", ""


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The places of a sentence's words, and of each clause's."""

    clauses: tuple[range, ...]

    @property
    def start(self) -> int:
        return self.clauses[0].start

    @property
    def stop(self) -> int:
        return self.clauses[-1].stop

    @property
    def places(self) -> range:
        return range(self.start, self.stop)


def _sentences(found: Sequence[Token]) -> Iterator[_Sentence]:
    """The sentences of a line."""
    clauses: list[range] = []
    start = at = 0
    for token in (*found, Token(".", "stop", 0, 0)):
        if token.kind not in {"stop", "comma"}:
            at += 1
            continue
        if at > start:
            clauses.append(range(start, at))
            start = at
        if token.kind == "stop" and clauses:
            yield _Sentence(tuple(clauses))
            clauses = []
