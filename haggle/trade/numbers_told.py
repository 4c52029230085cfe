"""The numbers that a player's words tell of goods: "make it six axes", "two, not three"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Set
from itertools import pairwise

from haggle.core.text import clean_utterance
from haggle.language.reading import Reading
from haggle.trade.edits import numbers_said
from haggle.trade.knowledge import knowledge, removes, whole_number
from haggle.trade.language import CUES, patterns
from haggle.trade.session import Session
from haggle.trade.world import Item

BRIEF = 14  # characters of a clause beside a name

_WORD = re.compile(r"[a-z]+")


def numbers_told(
    session: Session, line: str, *, strictly: bool, unchanged: Set[str] = frozenset()
) -> dict[str, int]:
    """The numbers that a line tells of goods, by id; what it asks is left out. Of goods in the cart
    "one more rope" is one more than there are, and with `strictly` only words that set a number
    count: "make it six axes"; but of goods which an order leaves `unchanged` any number."""
    reading, found = session.read(line), dict[str, set[int]]()
    if strictly and "?" not in line and (listed := _listed(session, line)):
        return listed
    for mention in reading.mentions:
        if len(mention.candidates) != 1 or not mention.quantity or mention.guessed:
            continue
        item, sentence = mention.candidates[0].id, sentence_of(reading.line, mention.start)
        clause = clause_of(reading.line, mention.start).casefold()
        words, held = set(_WORD.findall(clause)), session.cart.get(item)
        settled = item in unchanged and _is_brief(clause, mention.end - mention.start)
        shares = CUES.each & set(_WORD.findall(sentence.casefold()))
        denied = is_denied(reading.line[: mention.start])
        if "?" in sentence or shares or words & CUES.shared or denied:
            continue
        if held and patterns.MORE.search(clause):
            found.setdefault(item, set()).add(held + mention.quantity)
        elif not words & CUES.by and (
            not held or not strictly or settled or patterns.SETS.search(clause)
        ):
            found.setdefault(item, set()).add(mention.quantity)
    told = {item: max(numbers) for item, numbers in found.items() if len(numbers) == 1}
    return _put_right(session, line) | told | _said_again(session, line)


def _put_right(session: Session, line: str) -> dict[str, int]:
    """The number of the one good in the cart that a line puts right without its name: "no, two, not
    three", of three."""
    reading = session.read(line)
    named = [sentence_of(reading.line, mention.start) for mention in reading.mentions]
    for one, other in pairwise(reading.numbers):
        before, between = reading.line[: one.start], reading.line[one.end : other.start]
        if sentence_of(reading.line, one.start) in named:
            continue
        if patterns.NOT_BETWEEN.fullmatch(between):
            right, wrong = one.value, other.value
        elif patterns.NOT_BEFORE.search(before) and patterns.BUT_BETWEEN.fullmatch(between):
            right, wrong = other.value, one.value
        else:
            continue
        meant = [item for item, held in session.cart.items() if held == wrong]
        if right and right != wrong and len(meant) == 1:
            return {meant[0]: right}
    return {}


def _is_brief(clause: str, name: int) -> bool:
    """Whether a clause says little more than a number and a name of so many characters, and takes
    nothing out: "ten small ones, yes"."""
    tells = removes(clause) or patterns.TELLS.search(clause)
    return not tells and len(clause) - name <= BRIEF


def tells_a_change(line: str) -> bool:
    """Whether a line has words of shares or of a change: "two each", "up by two"."""
    words = set(_WORD.findall(clean_utterance(line).casefold()))
    return not words.isdisjoint(CUES.by | CUES.shared | CUES.each | CUES.twice)


def only_tells(line: str) -> bool:
    """Whether words complain of a number, or tell of other goods than those that are ordered: "I
    have five ropes at home"."""
    ways = (patterns.TOO_MANY, patterns.AT_HOME, patterns.LONG_AGO)
    return any(way.search(line) for way in ways)


def _said_again(session: Session, line: str) -> dict[str, int]:
    """The number that a line says it told of the good it names before: "one wedge, and I did say
    two"; of a good in the cart."""
    reading = session.read(line)
    match = patterns.SAID_NUMBER.search(reading.line)
    before = [m for m in reading.mentions if match and m.end <= match.start() and m.quantity]
    if match is None or "?" in line or not before or len(before[-1].candidates) != 1:
        return {}
    if _WORD.search(reading.line[before[-1].end : match.start()]):
        return {}  # "two lamps? We spoke of ten, I said five"
    item, number = before[-1].candidates[0].id, whole_number(match[1].casefold())
    return {item: number} if number and item in session.cart else {}


def _listed(session: Session, line: str) -> dict[str, int]:
    """The numbers of goods where a line tells each of two or more in full: "two cartridges with the
    one fan"; none where any word may tell of a change."""
    mentions = session.read(line).mentions
    sure = [m for m in mentions if len(m.candidates) == 1 and m.quantity and not m.guessed]
    ids = {m.candidates[0].id for m in sure}
    told = tells_a_change(line) or removes(line) or only_tells(line)
    if told or len(ids) < 2 or len(sure) < len(mentions) or len(ids) < len(sure):
        return {}
    return {m.candidates[0].id: m.quantity for m in sure if m.quantity}


def swapped_with(session: Session, line: str, said: Mapping[str, int], item: Item) -> set[int]:
    """The numbers that a line says once, and of other goods alone: a model swaps them."""
    words = set(_WORD.findall(line.casefold()))
    own = {
        mention.quantity
        for mention in session.read(line).mentions
        if item.item_id in {thing.id for thing in mention.candidates}
    }
    times = Counter(numbers_said(session.linked_line(line)))
    told = {n for i, n in said.items() if i != item.item_id and times[n] == 1}
    return told - own if words.isdisjoint(CUES.twice) else set()


def shares(line: str) -> int:
    """Among how many a line shares something out: "one for me and one for her"; 0 for none."""
    times = len(patterns.ONE_FOR.findall(line))
    return times if times > 1 else 0


def numbers_heard(session: Session) -> set[int]:
    """The numbers in what the merchant just told of goods: "eighty centimetres"."""
    outcome = session.exchanges[-1].outcome if session.exchanges else ""
    return numbers_of(session.read(outcome.partition("told: ")[2]))


def numbers_of(reading: Reading) -> set[int]:
    """All numbers of a line, those of goods and the others."""
    told = (*(m.quantity for m in reading.mentions), *(n.value for n in reading.numbers))
    return {number for number in told if number is not None}


def all_told(line: str) -> set[int]:
    """The numbers that a line tells of all pieces together."""
    return {whole_number(word) for word in patterns.ALL_TOLD.findall(line.casefold())}


def of_time(line: str) -> set[int]:
    """The numbers in a line that tell a time: "twelve hours"."""
    return {whole_number(match[1].casefold()) for match in patterns.OF_TIME.finditer(line)}


def in_sum(line: str) -> int:
    """The number that a line comes to: "one each for us both, so two", "so two of them"; 0 where it
    tells none."""
    match = patterns.IN_SUM.search(line)
    if match is None or "?" in line:
        return 0
    shares = CUES.each & set(_WORD.findall(line[: match.start()].casefold()))
    return whole_number(match[1].casefold()) if shares or patterns.OF_THAT.search(match[0]) else 0


def sentence_of(line: str, at: int) -> str:
    """The sentence of a line that a place in it belongs to."""
    ends = [0, *(match.end() for match in patterns.SENTENCE_END.finditer(line)), len(line)]
    return next(line[start:end] for start, end in pairwise(ends) if at < end)


def clause_of(line: str, at: int) -> str:
    """The clause of a line that a place in it belongs to."""
    ends = [match.start() for match in patterns.CLAUSE_OF_NUMBERS.finditer(line)]
    start = max((end for end in ends if end <= at), default=0)
    return line[start : min((end for end in ends if end > at), default=len(line))]


def is_denied(before: str) -> bool:
    """Whether the words of a clause before a name say that it is not wanted now."""
    clause = patterns.CLAUSE_OF_NUMBERS.split(before.casefold())[-1]
    words = set(_WORD.findall(clause))
    return bool(patterns.DENIED.search(clause) or words & knowledge().ruling_out)
