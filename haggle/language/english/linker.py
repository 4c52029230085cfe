"""Entity linking in English: what a player's line names, how many of it, and its other numbers.

Finding the listed name behind a spelling is lookup, which code does exactly and a small model does
badly; what the player wants done with it is left to the model. A line is read as a row of spans,
from the left; each kind of span has a function that says whether one begins at a place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from haggle.core.text import clean_utterance
from haggle.language.embeddings import Embedder, load_embedder
from haggle.language.english import choice, counts, meaning
from haggle.language.english.cues import CUES
from haggle.language.english.line import Line, Word, is_verb
from haggle.language.english.names import Names, Run
from haggle.language.english.nicknames import nickname
from haggle.language.evidence import Consent, Judge
from haggle.language.judge import load_judge
from haggle.language.onnx_encoder import Wanted
from haggle.language.reading import Mention, Number, Reading, Thing, View, without_marks

BEFORE, BEHIND = 2, 3  # words beside a name that may describe which of several is meant


class English:
    """Reads English. Nicknames of goods are looked up in the lexicon, and guessed by their meaning
    where there is an embedder. Where there is a judge, small talk may stand beside a yes."""

    def __init__(
        self,
        embedder: Embedder | None = None,
        judge: Judge | None = None,
        *,
        lexicon: bool = True,
    ) -> None:
        self._embedder, self._judge, self._lexicon = embedder, judge, lexicon

    def __repr__(self) -> str:
        with_models = [type(m).__name__ for m in (self._embedder, self._judge) if m is not None]
        return f"English({', '.join(with_models)})"

    def read(self, line: str, view: View) -> Reading:
        """The reading of a line as it was typed."""
        said = Line.of(without_marks(clean_utterance(line)))
        shown = [view.catalogue.by_id[i] for i in view.shown]
        names = _names(*view.catalogue.names, self._lexicon)
        scene = Scene(said, names, view, shown)
        spans = _spans(scene)
        if self._embedder:
            found = meaning.meant(self._embedder, said, view.catalogue, _linked(scene, spans))
            spans = _spans(scene._replace(meant=found)) if found else spans
        counting = [span.counted for span in spans]
        mentions = tuple(mention for span in spans for mention in span.mentions)
        others = any(_elsewhere(mention, view.held) for mention in mentions)
        return Reading(
            said.text,
            mentions,
            tuple(span.number for span in spans if span.number and span.number not in counting),
            Consent(line, self._judge, others),
        )

    def nearness(self, line: str, texts: Sequence[str]) -> list[float]:
        """How near each text is to a line in meaning, where there is an embedder."""
        return self._embedder.scores(line, texts) if self._embedder else []


def _elsewhere(mention: Mention, held: Collection[str]) -> bool:
    """Whether a mention names goods, by words of theirs, and none at hand."""
    ids = {thing.id for thing in mention.candidates}
    return bool(ids) and not mention.guessed and not ids & set(held)


def load_english(wanted: Wanted = "auto") -> English:
    """A reader with what is `wanted` of the shipped models, or for `auto` with what is installed.
    Raises HaggleError where they are asked for by `True` and cannot be loaded."""
    return English(load_embedder(wanted), load_judge(wanted))


_names = lru_cache(maxsize=32)(Names)


class Scene(NamedTuple):
    """A line, and what it may refer to; `shown` is in view, `meant` what words mean that are in no
    list, by the place where they begin."""

    line: Line
    names: Names
    view: View
    shown: list[Thing]
    meant: Mapping[int, Run] = MappingProxyType({})

    def is_named(self, at: int) -> bool:
        """Whether goods are named from a word on: `kettles`, `small ones`."""
        return self.line.said(at) in CUES.sizes or bool(self.names.run(self.line, at).ids)


class State(NamedTuple):
    """What the words so far leave to the next ones: a number that may count them, a superlative and
    a size that they are chosen by, and the last plain word; candidates of each mention so far, and
    where in the text the last name ends."""

    number: Number | None = None
    cheaper: bool | None = None
    size: str = ""
    loose: Word | None = None
    named: tuple[tuple[Thing, ...], ...] = ()
    end: int = -2


class Span(NamedTuple):
    """Words up to the place `end` that belong together, and the state behind them. `number` is said
    by them; `counted` was said before, and counts their mention."""

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
        chosen = scene.line.said(at + 1) in CUES.such_ones
        if at not in scene.meant and not chosen and scene.names.is_idle(word):
            cheaper = state.cheaper if word.text in CUES.hollow else None
            state = State(state.number, cheaper, "", word, state.named, state.end)
            at += 1
            continue
        for read in _KINDS:
            if span := read(scene, at, state):
                break
        else:
            span = _plain(scene, at, state)
        spans.append(span)
        at, state = span.end, span.state
    return spans


def _linked(scene: Scene, spans: Iterable[Span]) -> Callable[[int], bool]:
    """Whether the word at a place is part of a mention, or of a name that too many things have."""
    mentions = (mention for span in spans for mention in span.mentions)
    taken = {place for mention in mentions for place in range(mention.start, mention.end)}

    def is_linked(at: int) -> bool:
        word = scene.line.words[at]
        return word.start in taken or bool(scene.names.owners(word))

    return is_linked


def _meant(scene: Scene, at: int, state: State) -> Span | None:
    run = scene.meant.get(at)
    return _name(scene, at, state, run, guessed=True) if run else None


def _lead(scene: Scene, at: int, state: State) -> Span | None:
    return _name(scene, at, state, scene.names.lead(scene.line, at))


def _number(scene: Scene, at: int, state: State) -> Span | None:
    number, end = counts.number_at(scene.line, at)
    is_chosen = (state.cheaper is not None or state.size) and scene.line.said(at) in CUES.ones
    if number is None or is_chosen or _is_of_name(scene, at):  # the small one
        return None
    return Span(end, state._replace(number=number, loose=None), number=number)


def _is_of_name(scene: Scene, at: int) -> bool:
    """Whether a number word begins a name that has it: the sixty-litre tank."""
    word, run = scene.line.words[at], scene.names.run(scene.line, at)
    hyphened = scene.line.text[word.end : word.end + 1] == "-"
    return hyphened and run.length > 1 and bool(set(run.ids) & set(scene.names.owners(word)))


def _verb(scene: Scene, at: int, state: State) -> Span | None:
    return Span(at + 1, state._replace(loose=None)) if is_verb(scene.line, at) else None


def _listed(scene: Scene, at: int, state: State) -> Span | None:
    run = scene.names.run(scene.line, at)
    single = bool(run.ids) and run.length == 1
    if single and (_is_vague(scene, at, state.loose) or _holds_others(scene, at, run)):
        return None
    return _name(scene, at, state, run)


def _pack(scene: Scene, at: int, state: State) -> Span | None:
    """`five tubes`, `no set`: what goods come in, which names the only ones at hand that do."""
    line, word = scene.line, scene.line.words[at]
    if word.single not in CUES.packs or line.said(at + 1) in counts.OF:
        return None
    found = [i for i in scene.names.owners(word) if i in scene.view.held]
    beside = at + 1 < len(line.words) and bool(line.gap(at + 1) == " " and scene.is_named(at + 1))
    if len(found) != 1 or beside or (at and line.gap(at) == " " and scene.is_named(at - 1)):
        return None
    thing = scene.view.catalogue.by_id[found[0]]
    return _counted(scene, at, at + 1, state, _mention(scene, at, at + 1, (thing,)))


def _holds_others(scene: Scene, at: int, run: Run) -> bool:
    """Whether a word is what other goods are asked for in: "two sacks of the late potatoes" are no
    sacks of manure."""
    line, behind = scene.line, at + 2
    if line.words[at].single not in CUES.packs or line.said(at + 1) not in counts.OF:
        return False
    while line.said(behind) in CUES.hollow or line.said(behind) in CUES.common:
        behind += 1
    if behind >= len(line.words):
        return False
    others = scene.names.run(line, behind).ids or nickname(scene.names, line, behind, 0).ids
    return bool(others) and set(others).isdisjoint(run.ids)


def _guessed(scene: Scene, at: int, state: State) -> Span | None:
    if scene.line.words[at].start - state.end == 1:
        return None
    run = nickname(scene.names, scene.line, at, state.number.end if state.number else 0)
    foreign = _is_foreign(scene, at, state.loose, run)
    return None if foreign else _name(scene, at, state, run, guessed=True)


def _both(scene: Scene, at: int, state: State) -> Span | None:
    if scene.line.said(at) != "both" or len(scene.shown) != 2:
        return None
    if scene.names.run(scene.line, at + 1).ids:
        return None
    mentions = tuple(_mention(scene, at, at + 1, (thing,)) for thing in scene.shown)
    return Span(at + 1, state._replace(number=None, cheaper=None, loose=None), mentions)


def _sized(scene: Scene, at: int, state: State) -> Span | None:
    size = choice.size_word(scene.line.said(at), state.size)
    if not size:
        return None
    things = scene.view.catalogue.things
    kinds = (choice.of_one_kind(named, things) for named in reversed(state.named))
    kind = next(filter(None, kinds), ())
    thing = choice.of_size(size, kind or scene.shown)
    if thing is None or not choice.stands_alone(scene.line, at, thing, bool(kind)):
        return None
    return _counted(scene, at, at + 1, state, _mention(scene, at, at + 1, (thing,)))


def _such(scene: Scene, at: int, state: State) -> Span | None:
    """`the blue one`: the only thing of those in view, else of all for sale, that is so."""
    line, word = scene.line, scene.line.said(at)
    if line.said(at + 1) not in CUES.such_ones or line.gap(at + 1) != " ":
        return None
    in_name = any(word in thing.name.casefold().split() for thing in scene.shown)  # "the late ones"
    if word in _NO_QUALITY and not in_name:
        return None
    several = line.said(at + 1) == "ones" and word not in CUES.sizes  # "a pair of thick ones"
    pointed = several or line.said(at - 1) in CUES.pointing
    pointed = pointed or (word in CUES.sizes and (not at or line.said(at - 1) in CUES.joining))
    if not pointed and line.said(at - 2) not in CUES.pointing:
        return None
    sold = [thing for thing in scene.view.catalogue.things if thing.for_sale]
    if word in CUES.sizes:
        sold = choice.like(scene.shown, sold)
    thing = choice.such(word, scene.shown) or choice.such(word, sold)
    if thing is None or not (pointed or line.said(at - 1) in thing.said | CUES.sizes.keys()):
        return None
    return _counted(scene, at, at + 2, state, _mention(scene, at, at + 2, (thing,)))


def _plain(scene: Scene, at: int, state: State) -> Span:
    """A word that names nothing; it may point at a thing shown."""
    line, shown = scene.line, scene.shown
    cheaper = choice.superlative(line, at, state.cheaper, len(shown) == 2)
    thing, used = choice.pointed_at(line, at, shown, state.cheaper)
    if thing is None and cheaper is not None and line.said(at) in CUES.compared and line.stops(at):
        thing = choice.extreme(shown, cheaper)
    end = at + max(1, used)
    size = choice.size_word(line.said(at), state.size)
    number = None if thing else state.number
    state = State(number, cheaper, size, line.words[at], state.named, state.end)
    return Span(end, state, (_mention(scene, at, end, (thing,)),) if thing else ())


_KINDS = (_meant, _lead, _number, _verb, _pack, _listed, _guessed, _both, _sized, _such)
_NO_QUALITY = (
    CUES.common | CUES.hollow | CUES.cheap | CUES.dear | CUES.better | CUES.priced | CUES.last
) - CUES.sizes.keys()


def _name(scene: Scene, at: int, state: State, run: Run, guessed: bool = False) -> Span | None:
    """The span of a run of words that names something."""
    if not run.ids:
        return None
    end = at + run.length
    mention = _mention(scene, at, end, ())
    state = state._replace(end=mention.end)
    if state.loose and _is_foreign(scene, at, state.loose, run):
        everyday = state.loose.text in CUES.common
        foreign = "" if everyday else scene.line.text[state.loose.start : mention.end]
        return _counted(scene, at, end, state, replace(mention, foreign=foreign))
    headed = scene.names.headed(run.ids, scene.line.words[at]) if run.length == 1 else ()
    things = [scene.view.catalogue.by_id[i] for i in headed or run.ids]
    sized = choice.of_size(state.size, things) if state.size and len(things) > 1 else None
    one = sized or (
        choice.described(_around(scene, at, end, things), things) if len(things) > 1 else None
    )
    near = {*scene.view.held, *scene.view.shown}
    candidates = (one,) if one else choice.fitting(things, near, state.cheaper)
    mention = replace(mention, candidates=candidates, guessed=guessed)
    if len(candidates) > 1 and _means_each(scene, at, candidates):
        several = tuple(replace(mention, candidates=(thing,)) for thing in candidates)
        return Span(end, State(named=(*state.named, candidates), end=state.end), several)
    return _counted(scene, at, end, state, mention, is_named=True)


def _means_each(scene: Scene, at: int, things: tuple[Thing, ...]) -> bool:
    """Whether a word before a name means each of the things that fit it: `both knives`, where there
    are two; `all torches`, where they are at hand."""
    line, first = scene.line, at - 1
    while line.said(first) in CUES.each_of:
        first -= 1
    if line.said(first) == "both":
        return len(things) == 2
    return line.said(first) == "all" and all(thing.id in scene.view.held for thing in things)


def _around(scene: Scene, at: int, end: int, things: Sequence[Thing]) -> list[str]:
    """The telling words right before a name, and behind it what is said of it: two cakes of `black`
    ink, the ink that is `black`."""
    line = scene.line
    first = at
    while first > max(0, at - BEFORE) and line.gap(first) in {" ", "-"}:
        first -= 1
    last = end
    told = line.said(end) in CUES.describing
    while told and last < min(len(line.words), end + BEHIND) and line.gap(last) in {" ", "-"}:
        last += 1
    said = (line.said(place) for place in range(first, last))
    names = {word for thing in things for word in thing.name.casefold().split()}
    idle = (CUES.common | CUES.hollow) - names
    return [word for word in said if word not in idle and len(word) > 2]


def _mention(scene: Scene, at: int, end: int, candidates: tuple[Thing, ...]) -> Mention:
    words = scene.line.words
    return Mention(words[at].start, words[end - 1].end, candidates)


def _counted(
    scene: Scene, at: int, end: int, state: State, mention: Mention, is_named: bool = False
) -> Span:
    """The span of a mention of the words from `at` to `end`, with the number that counts it. It is
    no mention where too many things fit. Only what is named can be uncountable."""
    behind = State(named=state.named, end=state.end)
    if not mention.candidates and not mention.foreign:
        return Span(end, behind)
    if mention.candidates:
        behind = behind._replace(named=(*state.named, mention.candidates))
    line, names, near = scene.line, scene.names, state.number
    if near and not counts.is_near(line, near, at, names):
        near = None
    if is_named and not any(thing.id in scene.view.held for thing in mention.candidates):
        # Of what is at hand, minus two is two less.
        uncountable = counts.is_uncountable(line, near, mention)
        mention = replace(mention, uncountable=uncountable)
    counted = near if near and near.value else None
    number = counted
    if number is None:
        ids = [thing.id for thing in mention.candidates]
        number, after = counts.told_behind(line, end, names, ids)
        if number is None:
            number, after = counts.number_behind(line, end, names, scene.is_named)
        end = after
    if number and not mention.uncountable:
        mention = replace(mention, quantity=number.value)
    return Span(end, behind, (mention,), counted=counted)


def _is_foreign(scene: Scene, at: int, before: Word | None, run: Run) -> bool:
    """Whether the word right before a run belongs to the names of other things only."""
    if before is None or scene.line.words[at].start != before.end + 1:
        return False
    owners = scene.names.owners(before)
    return bool(owners) and set(owners).isdisjoint(run.ids)


def _is_vague(scene: Scene, at: int, before: Word | None) -> bool:
    """Whether a word for any container says nothing, as behind a word that no name has."""
    head = scene.line.words[at]
    if before is None or head.single not in CUES.containers or head.start != before.end + 1:
        return False
    known = before.text in counts.FILLERS or before.text in CUES.common
    return len(before.text) > 3 and not known and not scene.names.scores(before)  # not "ur bag"
