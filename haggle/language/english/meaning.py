"""Goods called by words that no list has: noun phrases where goods are due, and what is near them
in meaning. `meaning.yaml` has the words and the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import BeforeValidator

from haggle.core.config import Record, load_config
from haggle.language.embeddings import Embedder
from haggle.language.english.choice import MAX_FITTING
from haggle.language.english.cues import CUES, Words
from haggle.language.english.line import Line
from haggle.language.english.names import Run
from haggle.language.english.numbers import begins_number
from haggle.language.reading import Catalogue

Due: TypeAlias = Literal["asked", "place", "article"]
_REACH = 4  # words between a phrase and what it hangs on


def _texts(text: str) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in text.split(","))


class Limits(Record):
    """The words and numbers of `meaning.yaml`, which says what each is for."""

    floor: float
    apart: float
    asked: float
    article: float
    described: float
    lead: float
    most_words: int
    most_phrases: int
    parts: Words
    wanting: Words
    determiners: Words
    owners: Words
    bearers: Words
    polite: Words
    elsewhere: Annotated[tuple[str, ...], BeforeValidator(_texts)]

    def least(self, due: Due, words: int) -> float:
        """How much nearer a thing must be than anything of `elsewhere`."""
        by_place = {"asked": -self.asked, "place": 0.0, "article": self.article}
        return self.apart + by_place[due] - (self.described if words > 1 else 0.0)


LIMITS = load_config(Path(__file__).with_name("meaning.yaml"), Limits)

_PLAIN = LIMITS.parts | CUES.packs | CUES.measures | CUES.holding  # say too little by themselves


class Phrase(NamedTuple):
    """Words from `at` to `end` that may call a thing, and why goods are due there."""

    at: int
    end: int
    due: Due


def meant(
    embedder: Embedder, line: Line, catalogue: Catalogue, is_linked: Callable[[int], bool]
) -> dict[int, Run]:
    """What a line means by words that are not linked, by the place where they begin."""
    goods = [thing for thing in catalogue.things if thing.price is not None]
    if not goods:
        return {}
    found: dict[int, Run] = {}
    for at, end, due in phrases(line, is_linked):
        text = line.text[line.words[at].start : line.words[end - 1].end]
        row = embedder.embed([text])[0]
        scores = (embedder.kept(tuple(thing.name for thing in goods)) @ row).tolist()
        top = max(scores)
        other = float((embedder.kept((*LIMITS.elsewhere, catalogue.currency)) @ row).max())
        if top < LIMITS.floor or top - other < LIMITS.least(due, end - at):
            continue
        ranked = sorted(zip(scores, goods, strict=True), key=lambda pair: -pair[0])
        near = [thing.id for score, thing in ranked if score > top - LIMITS.lead]
        found[at] = Run(tuple(near[:MAX_FITTING]), end - at)
    return found


def phrases(line: Line, is_linked: Callable[[int], bool]) -> list[Phrase]:
    """The noun phrases of words that are not linked, where goods are due; the first few."""
    found: list[Phrase] = []
    for at, end in _runs(line, is_linked):
        if end - at > LIMITS.most_words or not _stands_free(line, at, end, is_linked):
            continue
        due: Due | None = "article" if _is_described(line, at, end) else None
        if _is_joined(line, at, lambda place: is_linked(place) or _is_in(found, place)):
            due = "place"
        if _is_clause(line, at, end):
            due = "place"
        if _is_asked_for(line, at):
            due = "asked"
        if due:
            found.append(Phrase(at, end, due))
        if len(found) == LIMITS.most_phrases:
            break
    return found


def _runs(line: Line, is_linked: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    """The longest rows of words that may be parts of names; a single one says enough by itself."""
    at = 0
    while at < len(line.words):
        end = at
        while end < len(line.words) and not is_linked(end) and _is_part(line, end):
            if end > at and line.gap(end) not in {" ", "-"}:
                break
            end += 3 if _owns(line, end, is_linked) else 1
        if end - at > 1 or (end > at and line.words[at].single not in _PLAIN):
            yield at, end
        at = max(end, at + 1)


def _owns(line: Line, at: int, is_linked: Callable[[int], bool]) -> bool:
    """Whether a phrase goes on behind the word at `at` and an 's: `the captain's bed`."""
    if line.said(at + 1) != "s" or at + 2 >= len(line.words) or is_linked(at + 2):
        return False
    return line.gap(at + 1) in {"'", "’"} and line.gap(at + 2) == " " and _is_part(line, at + 2)


def _is_part(line: Line, at: int) -> bool:
    word = line.said(at)
    if word in LIMITS.parts:
        return True
    strange = not word.isalpha() or len(word) < 3 or begins_number(word)
    return not (strange or word in CUES.common or word in CUES.hollow or word in CUES.pronouns
                or word in CUES.noun_follows or word in CUES.objects)  # fmt: skip


def _stands_free(line: Line, at: int, end: int, is_linked: Callable[[int], bool]) -> bool:
    """Whether words belong to no name beside them, and to nobody: `the miller's geese`."""
    if at and is_linked(at - 1) and line.gap(at) in {" ", "-"}:
        return False
    if end == len(line.words):
        return True
    if is_linked(end) and line.gap(end) in {" ", "-"}:
        return False
    return line.said(end) != "s"


def _is_asked_for(line: Line, at: int) -> bool:
    """Whether a number counts the words from `at` on, or a word before them wants or compares
    something: `two `, `how about the `."""
    counted, place = False, at - 1
    while place >= max(0, at - _REACH):
        if line.gap(place + 1).strip() not in {"", "-"}:
            return counted
        word = line.said(place)
        if word in LIMITS.owners or word in LIMITS.bearers:
            return False
        number = begins_number(word) or word.isdecimal()
        counted = counted or (number and word not in LIMITS.determiners)
        if not number and word not in LIMITS.determiners and word not in CUES.fillers:
            break
        place -= 1
    word = line.said(place)
    return counted or word in LIMITS.wanting


def _is_described(line: Line, at: int, end: int) -> bool:
    """Whether words are an article and at least two words that belong to nobody."""
    if end - at < 2 or not at or line.gap(at).strip():
        return False
    known = line.said(at - 1) in LIMITS.determiners
    return known and line.said(at - 2) not in LIMITS.owners | LIMITS.bearers


def _is_in(found: list[Phrase], place: int) -> bool:
    return any(phrase.at <= place < phrase.end for phrase in found)


def _is_joined(line: Line, at: int, is_goods: Callable[[int], bool]) -> bool:
    """Whether words follow on goods: `two axes and a `."""
    place = at - 1
    while place > 0 and not line.gap(place + 1).strip() and line.said(place) in LIMITS.determiners:
        place -= 1
    return place > 0 and line.said(place) in CUES.joining and is_goods(place - 1)


def _is_clause(line: Line, at: int, end: int) -> bool:
    """Whether words are all there is to a clause but for an article and courtesy: `fat burner,
    please`."""
    while end < len(line.words) and not line.gap(end).strip() and _may_follow(line.said(end)):
        end += 1
    if not line.stops(end - 1):
        return False
    while at and not line.gap(at).strip():
        word = line.said(at - 1)
        if word not in LIMITS.determiners and word not in CUES.joining:
            return False
        at -= 1
    return True


def _may_follow(word: str) -> bool:
    return word in LIMITS.polite or word in CUES.times or begins_number(word) or word.isdecimal()
