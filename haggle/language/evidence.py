"""Evidence in a player's own words, read by code alone.

A line affirms a review when every word of it is accounted for: the line is a row of phrases of a
grammar (`english/evidence.yaml`), at least one of which is an agreement, with the reviewed goods,
numbers and price in their slots, and remarks of harmless words (`english/harmless.txt`) in
sentences of their own. Whatever is left over keeps the sale open. A model takes no part in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from haggle.config import Record, parse, read_mapping
from haggle.language.phrases import Grammar
from haggle.language.terms import Terms, TermSlots
from haggle.language.tokens import Token, asides, hidden_characters, one_slip_from, tokens

Verdict = Literal["affirms", "refuses", "cancels", "open"]
SLOTS = {"price", "paid", "any", "goods", "count", "name"}
NEUTRAL = ("courtesy", "terms")
ACTING = frozenset(("gesture", "affirm", *NEUTRAL))
MAX_LINE = 500  # characters; what is longer is not read as an agreement
MAX_REMARK = 24  # words of a harmless sentence
ENGLISH = Path(__file__).parent / "english"


class Lexicon(Record):
    """`english/evidence.yaml`."""

    sets: dict[str, list[str]]
    roles: dict[str, list[str]]
    gestures: list[str]
    gestures_against: list[str]
    openers: list[str]
    openers_after_comma: list[str]
    never_in_remarks: str
    doubts: dict[str, list[str]]
    leaving: list[str]
    abuse: list[str]
    calling_off: list[str]
    replacing: list[str]
    spellings: dict[str, str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a line is evidence of. `reason` and `words` say why it is none of an agreement."""

    verdict: Verdict
    reason: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class _Either:
    """Words that are in one of two collections."""

    first: Collection[str]
    second: Collection[str]

    def __contains__(self, word: object) -> bool:
        return word in self.first or word in self.second


@dataclass(frozen=True)
class Reader:
    """The grammar of a language, ready to read lines."""

    lexicon: Lexicon
    grammar: Grammar
    harmless: frozenset[str]
    ordinary: frozenset[str]
    gestures: frozenset[str]
    known: frozenset[str]
    mendable: frozenset[str]

    def words(self, line: str, extra: Collection[str] = ()) -> list[Token]:
        """The words of a line in canonical spelling; `extra` are names that need no mending."""
        found = tokens(line, self.lexicon.spellings, _Either(self.known, extra))
        return asides([self._mended(token, extra) for token in found])

    def _mended(self, token: Token, extra: Collection[str]) -> Token:
        if token.kind != "word" or token.text in self.known or token.text in extra:
            return token
        meant = one_slip_from(token.text, self.mendable)
        return replace(token, text=meant) if meant else token


@cache
def reader() -> Reader:
    """The reader of English."""
    lexicon = _lexicon()
    grammar = Grammar(lexicon.roles, lexicon.sets, SLOTS)
    harmless = _listed("harmless.txt")
    ordinary = _listed("words.txt") - set(lexicon.never_in_remarks.split())
    spoken = {word for entry in lexicon.spellings.values() for word in entry.split()}
    affirming = Grammar({"affirm": lexicon.roles["affirm"]}, lexicon.sets, SLOTS)
    return Reader(
        lexicon=lexicon,
        grammar=grammar,
        harmless=harmless,
        ordinary=ordinary | harmless,
        gestures=harmless.union(lexicon.gestures),
        known=frozenset(grammar.words | harmless | ordinary | spoken).union(lexicon.gestures),
        mendable=frozenset(w for w in affirming.words if len(w) >= 4 and w.isalpha()),
    )


def _lexicon() -> Lexicon:
    """The files of `english/evidence` as one. Raises HaggleError naming a file with a mistake."""
    whole: dict[str, Any] = {}
    for path in sorted((ENGLISH / "evidence").glob("*.yaml")):
        for key, value in read_mapping(path).items():
            whole[key] = _joined(whole[key], value) if key in whole else value
    return parse(whole, Lexicon, str(ENGLISH / "evidence"))


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, dict):
        return {k: _joined(first[k], second[k]) if k in first and k in second
                else {**first, **second}[k] for k in {**first, **second}}  # fmt: skip
    return f"{first} {second}" if isinstance(first, str) else [*first, *second]


def _listed(name: str) -> frozenset[str]:
    lines = (ENGLISH / name).read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def read_answer(line: str, terms: Terms) -> Evidence:
    """What a line, said to a review of these terms, is evidence of."""
    if len(line) > MAX_LINE or hidden_characters(line):
        return Evidence("open", "unclear")
    english = reader()
    found = english.words(line, terms.words)
    answer = _Answer(found, terms, english)
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
        self._terms, self._english = terms, english
        self._tokens = found
        self._kept = [t for t in found if t.kind not in {"comma", "stop"}]
        self._words = [t.text for t in self._kept]
        self._slots = TermSlots(self._words, terms)
        self._line = english.grammar.line(self._words, self._slots.by_name)
        self._sentences = list(_parts(found, {"stop"}))

    def is_all(self, role: str) -> bool:
        """Whether the line is phrases of this role, and courtesy."""
        return bool(self._words) and self._line.covers(0, len(self._words), role, ("courtesy",))

    def affirms(self) -> bool:
        """Whether every word is accounted for, and at least one phrase agrees."""
        if self._line.holds("mocking"):
            return False
        agreed = False
        goods: set[str] = set()
        for start, clauses in self._sentences:
            end = start + sum(map(len, clauses))
            if clauses[0][0].aside:
                if not self._gesture(start, end):
                    return False
                continue
            spoken = self._agreeing(start, clauses)
            if spoken is None:
                if not self._harmless(start, end):
                    return False
                continue
            agreed = agreed or self._line.covers(start, spoken, "affirm", NEUTRAL)
            goods |= self._slots.goods_named(start, spoken)
        return agreed and self._terms.not_in_part(goods, self._words)

    def _agreeing(self, start: int, clauses: Sequence[Sequence[Token]]) -> int | None:
        """Where the phrases of a sentence end and a remark may begin; None where it has none."""
        ends = [start]
        for clause in clauses:
            ends.append(ends[-1] + len(clause))
        for number in range(len(clauses), 0, -1):
            if not self._line.tiles(start, ends[number], ("affirm", *NEUTRAL)):
                continue
            if number == len(clauses):
                return ends[number]
            opened = clauses[number][0].text in self._english.lexicon.openers_after_comma
            if opened and self._harmless(ends[number], ends[-1]):
                return ends[number]
        return None

    def _gesture(self, start: int, end: int) -> bool:
        """Whether these words are an action that takes nothing back."""
        said = f" {' '.join(self._words[start:end])} "
        if any(f" {phrase} " in said for phrase in self._english.lexicon.gestures_against):
            return False
        safe = self._english.gestures | self._terms.words
        reached = {start}
        for at in range(start, end):
            if at in reached:
                reached |= {stop for stop, role in self._line.phrases(at) if role in ACTING}
                reached |= {at + 1} if self._words[at] in safe else set()
        return end in reached

    def _harmless(self, start: int, end: int) -> bool:
        """Whether these words are a remark: harmless ones, and the names of the reviewed goods."""
        words = self._words[start:end]
        if not words or len(words) > MAX_REMARK:
            return not words
        opened = words[0] in self._english.lexicon.openers
        safe = self._english.ordinary if opened else self._english.harmless
        offers = any(
            role == "offering" and stop <= end
            for at in range(start, end)
            for stop, role in self._line.phrases(at)
        )
        if offers:
            return False
        reached = {start}
        for at in range(start, end):
            if at in reached:
                reached |= {stop for stop in self._slots.stated(at) if stop <= end}
                known = self._words[at] in safe or self._words[at] in self._terms.words
                reached |= {at + 1} if known else set()
        return end in reached

    def doubt(self, line: str) -> Evidence:
        """Why the line is no agreement, and the words that say so."""
        number = self._slots.strange_number()
        if number is not None:
            return Evidence("open", "number", line[slice(*self._span(*number))])
        texts = set(self._words)
        for reason, words in self._english.lexicon.doubts.items():
            hit = next((w for w in words if w in texts), None)
            if hit is not None:
                token = next(t for t in self._tokens if t.text == hit)
                return Evidence("open", reason, line[token.start : token.end])
        return Evidence("open", "unclear")

    def _span(self, start: int, end: int) -> tuple[int, int]:
        return self._kept[start].start, self._kept[end - 1].end


def _parts(found: Sequence[Token], at: Collection[str]) -> Iterator[tuple[int, list[list[Token]]]]:
    """The sentences of a line, each as its clauses, with the number of its first word."""
    clauses: list[list[Token]] = [[]]
    start = count = 0
    for token in found:
        if token.kind in at:
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


def holds_any(line: str, phrases: Collection[str]) -> bool:
    """Whether a line holds one of these words or phrases."""
    said = f" {' '.join(token.text for token in reader().words(line))} "
    return any(f" {phrase} " in said for phrase in phrases)


def leaves(line: str) -> bool:
    """Whether a line holds evidence that the player leaves, or ends the talk by abuse."""
    lexicon = reader().lexicon
    return holds_any(line, (*lexicon.leaving, *lexicon.abuse))


def calls_off(line: str) -> bool:
    """Whether a line holds evidence that the whole order is called off."""
    return holds_any(line, reader().lexicon.calling_off)


def replaces(line: str) -> bool:
    """Whether a line holds evidence that another order takes the place of the last one."""
    return holds_any(line, reader().lexicon.replacing)
