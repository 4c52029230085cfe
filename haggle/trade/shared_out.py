"""Which goods of an order the numbers of a line count, where it tells them apart by what they are
like and not by name: "two of the green and one black", "early, one; late, two".

A small model knows which goods are meant and mixes up their numbers. Words of names and
descriptions tell them apart, or else nearness in meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from haggle.core.text import clean_utterance
from haggle.trade.knowledge import adds, asks_what_it_costs, does_not_want, puts_back, whole_number
from haggle.trade.language import CUES, patterns
from haggle.trade.numbers_told import is_denied, numbers_heard, of_time, only_tells, tells_a_change
from haggle.trade.session import Session
from haggle.trade.telling import in_full
from haggle.trade.wanted import goods_stems, name_stems, ruled_out, telling
from haggle.trade.wire import Quantity

NAMED = 2  # what a word of a name is worth; one of a description is 1
NEAR = 0.3  # nearness from which words may mean goods
APART = 0.1  # how much less near all others must be


def shared_out(session: Session, line: str, order: Mapping[str, Quantity]) -> dict[str, int]:
    """The numbers, by id, of goods of an order or of the cart in a line all of whose numbers tell
    those of two or more in clauses of their own; none of a line that takes out, adds, or tells
    shares or a change, nor where the order has changed other numbers."""
    if len(patterns.COUNT.findall(line.casefold())) < 2:
        return {}
    if adds(line) or puts_back(line) or does_not_want(line) or asks_what_it_costs(line):
        return {}
    changed = {i: n for i, n in order.items() if session.cart.get(i) != n} or order
    out = ruled_out(session.world, line)
    goods = [item for item in {**order, **session.cart} if item not in out]
    told, found = _counts(line, numbers_heard(session) | of_time(line)), dict[str, int]()
    for number, words, clause in told:
        left = [item for item in goods if item not in found]
        item = _meant(session, words, left, changed)
        if item and item not in changed and not _only_describes(session, clause, item):
            return {}  # "and the storm took two of my men"
        if not item and len(told) == len(goods) and len(left) == 1 and left[0] in changed:
            item = left[0]  # "two of the green, and one stinky"
        if not item:
            return {}
        found[item] = number
    sure = ((m.candidates[0].id, m.quantity) for m in session.read(line).mentions if m.quantity)
    agree = all(found.get(item, number) == number for item, number in sure)
    decided = changed.keys() <= found.keys() and {*changed.values()} <= {*found.values()}
    return found if len(found) > 1 and agree and decided else {}


def _only_describes(session: Session, clause: str, item: str) -> bool:
    """Whether a clause has no telling words but such as name or describe a good."""
    reading = session.read(clause)
    for mention in reading.mentions:
        clause = clause.replace(reading.line[mention.start : mention.end], " ")
    known = goods_stems(session.world)[0].get(item, frozenset())
    packs = telling(" ".join(CUES.packs))
    return telling(clause) <= known | packs


def _counts(line: str, heard: Set[int]) -> list[tuple[int, str, str]]:
    """The numbers of a line with the words that each counts and the clause, but for those that were
    `heard` before; none where a number has no clause or no words of its own."""
    found, before = list[tuple[int, str, str]](), ""
    for clause in patterns.CLAUSE_OF_SHARES.split(clean_utterance(line).casefold()):
        counts = [match for match in patterns.COUNT.finditer(clause) if match[1]]
        numbers = [whole_number(match[1]) for match in counts]
        if counts and not {*numbers} <= heard:
            around = clause[counts[0].end() :], clause[: counts[0].start()]
            of_that = before if patterns.OF_THAT.search(clause) else ""
            words = next(filter(telling, (*around, of_that)), "")
            told = is_denied(around[1]) or only_tells(clause) or tells_a_change(clause)
            if len(counts) > 1 or "?" in clause or told or not words:
                return []
            bare = around[1] + around[0]
            found.append((numbers[0], words, bare))
        before = clause
    return found


def _meant(session: Session, words: str, goods: Collection[str], changed: Collection[str]) -> str:
    """The one of these goods that words mean; empty where they mean none, or several. Those that
    an order has not `changed` have to be named or described."""
    named = session.named(words) & {*goods}
    stems, items = telling(words), [session.world.by_id[i] for i in goods]
    if len(named) == 1 or not (stems and items):
        return next(iter(named), "")
    known = goods_stems(session.world)[0]
    worth = [
        NAMED * len(stems & name_stems(i.item_name))
        + len(stems & known.get(i.item_id, frozenset()))
        for i in items
    ]
    best = max(worth)
    if best and worth.count(best) == 1:
        return items[worth.index(best)].item_id
    near = session.linker.nearness(words, [in_full(item) for item in items])
    first, second = (*sorted(near, reverse=True), 0.0, 0.0)[:2]
    item = items[near.index(first)].item_id if first >= NEAR and first - second >= APART else ""
    return item if item in changed else ""
