"""Entity linking in English: what a player's line names, how many of it, and its other numbers.

Finding the listed name behind a spelling is lookup, which code does exactly and a small model does
badly; what the player wants done with it is left to the model. A line is read as a row of spans,
from the left; each kind of span has a function that says whether one begins at a place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from haggle.core.text import clean_utterance
from haggle.language.english.choice import (
    SIZES,
    extreme,
    fitting,
    of_one_kind,
    of_size,
    pointed_at,
    size_word,
    stands_alone,
    superlative,
)
from haggle.language.english.counts import (
    FILLERS,
    is_near,
    is_uncountable,
    number_at,
    number_behind,
)
from haggle.language.english.cues import CUES
from haggle.language.english.line import Line, Word, is_verb
from haggle.language.english.names import Names, Run
from haggle.language.english.nicknames import nickname
from haggle.language.evidence import Consent
from haggle.language.reading import Catalogue, Mention, Number, Reading, Thing, View, without_marks


class English:
    """Reads English. Names are prepared once a catalogue."""

    def read(self, line: str, view: View) -> Reading:
        """The reading of a line as it was typed."""
        said = Line.of(without_marks(clean_utterance(line)))
        scene = Scene.of(said, view)
        spans = _spans(scene)
        counting = {span.counted.start for span in spans if span.counted}
        numbers = (span.number for span in spans if span.number)
        return Reading(
            said.text,
            tuple(mention for span in spans for mention in span.mentions),
            tuple(number for number in numbers if number.start not in counting),
            Consent(line),
        )


@lru_cache(maxsize=256)
def _names(catalogue: Catalogue) -> Names:
    return _names_of(*catalogue.names)  # the same ones, whatever was sold


_names_of = lru_cache(maxsize=256)(Names)


@dataclass(frozen=True, slots=True)
class Scene:
    """A line and what it may refer to; `shown` is in view, and `near` are the ids at hand."""

    line: Line
    names: Names
    things: Catalogue
    shown: tuple[Thing, ...]
    held: frozenset[str]
    near: frozenset[str]

    @classmethod
    def of(cls, line: Line, view: View) -> Scene:
        """The scene of a line in a view."""
        things = view.catalogue
        shown = tuple(things.by_id[i] for i in view.shown)
        held = frozenset(view.held)
        return cls(line, _names(things), things, shown, held, held.union(view.shown))

    def is_named(self, at: int) -> bool:
        """Whether goods are named from a word on: `kettles`, `small ones`."""
        return self.line.said(at) in SIZES or self.names.run(self.line, at).length > 0


class State(NamedTuple):
    """What the words so far leave to the next ones: a number that may count them, a superlative and
    a size that they are chosen by, the last plain word, and what was named."""

    number: Number | None = None
    cheaper: bool | None = None
    size: str = ""
    loose: Word | None = None
    named: tuple[tuple[Thing, ...], ...] = ()
    end: int = -2  # where the last name ends in the text

    def kind(self, scene: Scene) -> tuple[Thing, ...]:
        """What a word of size chooses from: the kind that was named last."""
        kinds = (of_one_kind(named, scene.things.things) for named in reversed(self.named))
        return next((kind for kind in kinds if kind), ())


class Span(NamedTuple):
    """Words up to `end` that belong together, and the state behind them. `number` is said by them,
    `counted` was said before and counts their mention."""

    end: int
    state: State
    mentions: tuple[Mention, ...] = ()
    number: Number | None = None
    counted: Number | None = None


def _spans(scene: Scene) -> list[Span]:
    spans: list[Span] = []
    words, at, state = scene.line.words, 0, State()
    while at < len(words):
        word = words[at]
        if scene.names.is_idle(word):
            cheaper = state.cheaper if word.text in CUES.hollow else None
            at, state = at + 1, State(state.number, cheaper, "", word, state.named, state.end)
            continue
        for read in _KINDS:
            span = read(scene, at, state)
            if span is not None:
                break
        spans.append(span)
        at, state = span.end, span.state
    return spans


def _number(scene: Scene, at: int, state: State) -> Span | None:
    number, end = number_at(scene.line, at)
    chosen_by = state.cheaper is not None or state.size
    if number is None or (chosen_by and scene.line.said(at) in CUES.ones):
        return None
    return Span(end, state._replace(number=number, loose=None), number=number)


def _verb(scene: Scene, at: int, state: State) -> Span | None:
    return Span(at + 1, state._replace(loose=None)) if is_verb(scene.line, at) else None


def _lead(scene: Scene, at: int, state: State) -> Span | None:
    return _name(scene, at, state, scene.names.lead(scene.line, at))


def _listed(scene: Scene, at: int, state: State) -> Span | None:
    run = scene.names.run(scene.line, at)
    if run.length == 1 and state.loose and _is_vague(scene, at, state.loose):
        return None
    return _name(scene, at, state, run)


def _guessed(scene: Scene, at: int, state: State) -> Span | None:
    if scene.line.words[at].start - state.end == 1:
        return None
    run = nickname(scene.names, scene.line, at, state.number.end if state.number else 0)
    if not run.length or (state.loose and _is_foreign(scene, at, state.loose, run)):
        return None
    return _name(scene, at, state, run, guessed=True)


def _name(scene: Scene, at: int, state: State, run: Run, guessed: bool = False) -> Span | None:
    """The span of a run of words that names something."""
    if not run.length:
        return None
    line, behind = scene.line, at + run.length
    start, end = line.words[at].start, line.words[behind - 1].end
    state = state._replace(end=end)
    if state.loose and _is_foreign(scene, at, state.loose, run):
        everyday = state.loose.text in CUES.common
        foreign = "" if everyday else line.text[state.loose.start : end]
        return _counted(scene, at, behind, state, Mention(start, end, foreign=foreign))
    candidates = _candidates(scene, state, run)
    number = _near_number(scene, at, state)
    uncountable = scene.held.isdisjoint(thing.id for thing in candidates) and is_uncountable(
        line, number, start, end, [thing.name for thing in candidates]
    )  # of what is at hand, minus two is two less
    mention = Mention(start, end, candidates, uncountable=uncountable, guessed=guessed)
    return _counted(scene, at, behind, state, mention)


def _candidates(scene: Scene, state: State, run: Run) -> tuple[Thing, ...]:
    things = [scene.things.by_id[i] for i in run.ids]
    sized = of_size(state.size, things) if state.size and len(things) > 1 else None
    return (sized,) if sized else fitting(things, scene.near, state.cheaper)


def _both(scene: Scene, at: int, state: State) -> Span | None:
    if scene.line.said(at) != "both" or len(scene.shown) != 2:
        return None
    if scene.names.run(scene.line, at + 1).length:
        return None
    word = scene.line.words[at]
    mentions = tuple(Mention(word.start, word.end, (thing,)) for thing in scene.shown)
    return Span(at + 1, state._replace(number=None, cheaper=None, loose=None), mentions)


def _sized(scene: Scene, at: int, state: State) -> Span | None:
    size = size_word(scene.line.said(at), state.size)
    if not size:
        return None
    kind = state.kind(scene)
    thing = of_size(size, kind or scene.shown)
    if thing is None or not stands_alone(scene.line, at, thing, bool(kind)):
        return None
    word = scene.line.words[at]
    return _counted(scene, at, at + 1, state, Mention(word.start, word.end, (thing,)))


def _plain(scene: Scene, at: int, state: State) -> Span:
    """A word that names nothing; it may point at a thing shown."""
    line = scene.line
    thing, used = pointed_at(line, at, scene.shown, state.cheaper)
    cheaper = superlative(line, at, state.cheaper, len(scene.shown) == 2)
    if thing is None and cheaper is not None and line.said(at) in _PRICED and line.stops(at):
        thing = extreme(scene.shown, cheaper)
    end = at + max(1, used)
    behind = State(
        number=None if thing else state.number,
        cheaper=cheaper,
        size=size_word(line.said(at), state.size),
        loose=line.words[at],
        named=state.named,
        end=state.end,
    )
    if thing is None:
        return Span(end, behind)
    return Span(end, behind, (Mention(line.words[at].start, line.words[end - 1].end, (thing,)),))


_PRICED = {"expensive", "priced"}  # the less expensive, please
_KINDS: Sequence[Callable[[Scene, int, State], Span | None]] = (
    _lead, _number, _verb, _listed, _guessed, _both, _sized, _plain
)  # fmt: skip


def _near_number(scene: Scene, at: int, state: State) -> Number | None:
    """The number said before that may count a mention at a place."""
    number = state.number
    return number if number and is_near(scene.line, number, at, scene.names) else None


def _counted(scene: Scene, at: int, end: int, state: State, mention: Mention) -> Span:
    """The span of a mention of the words from `at` to `end`, with the number that counts it. It is
    no mention where too many things fit."""
    behind = State(named=state.named, end=state.end)
    if not mention.candidates and not mention.foreign:
        return Span(end, behind)
    if mention.candidates:
        behind = behind._replace(named=(*state.named, mention.candidates))
    before = _near_number(scene, at, state)
    number = before if before and before.value else None
    if number is None:
        counted = None
        number, end = number_behind(scene.line, end, scene.names, scene.is_named)
    else:
        counted = number
    if number and not mention.uncountable:
        mention = replace(mention, quantity=number.value)
    return Span(end, behind, (mention,), counted=counted)


def _is_foreign(scene: Scene, at: int, before: Word, run: Run) -> bool:
    """Whether the word right before a run belongs to the names of other things only."""
    owners = scene.names.owners(before)
    adjacent = scene.line.words[at].start == before.end + 1
    return bool(owners) and adjacent and not set(owners) & set(run.ids)


def _is_vague(scene: Scene, at: int, before: Word) -> bool:
    """Whether a word for any container says nothing, as behind a word that no name has."""
    head = scene.line.words[at]
    return (
        head.single in CUES.containers
        and head.start == before.end + 1
        and len(before.text) > 3  # not "ur bag"
        and before.text not in FILLERS
        and before.text not in CUES.common
        and not scene.names.scores(before)
    )
