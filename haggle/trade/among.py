"""Which of the goods in view a line speaks of: "the long black ones", "which of those"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from haggle.core.text import clean_utterance
from haggle.trade.knowledge import asks_about_goods, asks_for_a_deal, stems, tells_a_need
from haggle.trade.session import Session
from haggle.trade.telling import NEAR, Score, by_words, nearest, questions
from haggle.trade.world import Item

APART = 0.05  # how much nearer one good must be for a question to be about it alone
_THE_ONE = re.compile(
    r"\b((?:the|that|this|these|those)\s+((?:[\w'’-]+\s+){0,3}))ones?\b", re.IGNORECASE
)
_OF_THOSE = re.compile(rf"\bwhich (?:of|ones?)\b|{_THE_ONE.pattern}")


def chooses(session: Session, line: str) -> bool:
    """Whether a line speaks of one or some of several goods in view."""
    said = clean_utterance(line).casefold()
    return len(session.in_view()) > 1 and _OF_THOSE.search(said) is not None


def asked_about(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods, named or in view, that a line asks about and does not order."""
    named = session.named(line)
    if asks_about_goods(line, session.read(line)):
        return named
    if "?" not in line or any(map(asks_for_a_deal, questions(line))):
        return frozenset()
    items = [session.world.by_id[i] for i in named] or _in_view(session)
    near = session.linker.nearness
    return frozenset(item.item_id for item in items if nearest(item, line, near)[0] >= NEAR)


def without_ones(line: str) -> str:
    """A line in which "the red one" is "the red", whose `one` counts nothing."""
    return _THE_ONE.sub(r"\1", line)


def _in_view(session: Session) -> list[Item]:
    return [item for item in map(session.world.find, session.in_view()) if item is not None]


def one_of_those(session: Session, line: str) -> list[Item]:
    """The one of the goods in view that a line speaks of; none where it may be several."""
    said = clean_utterance(line).casefold()
    such = _THE_ONE.search(said)
    if such is None or not chooses(session, line) or tells_a_need(line):
        return []
    view = _in_view(session)
    told = stems(such[2])
    hits = {item.item_id: len(set(told) & set(stems(_all_of(item)))) for item in view}
    best = [item for item in view if 0 < hits[item.item_id] == max(hits.values())]
    found = best if len(best) == 1 else about_alone(view, line, session.linker.nearness)
    return found if len(found) == 1 else []


def likeliest(items: Sequence[Item], line: str) -> list[Item]:
    """Of some goods those of which most of a line is said: "the one that holds three men"."""
    scores = by_words(line, [_all_of(item) for item in items])
    return [item for item, score in zip(items, scores, strict=True) if score == max(scores)]


def about_alone(items: Sequence[Item], line: str, near: Score) -> list[Item]:
    """Of some goods the one that a question is about, by what is known of them; all of them where
    no one is clearly nearer in meaning."""
    scores = [nearest(item, line, near)[0] for item in items]
    best, *others = sorted(scores, reverse=True)
    alone = others and best > others[0] + APART
    return [items[scores.index(best)]] if alone else list(items)


def _all_of(item: Item) -> str:
    return " ".join((item.item_name, item.description, *item.facts))
