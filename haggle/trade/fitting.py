"""Goods that fit what a player describes: "something against rats", "my phone has no power".

A small model shows any goods to who names none. Here words decide: those of the line that an
item's name, its other names, its kind, its description or its facts have too. A word counts the
less the more goods have it. What is ruled out ("not coffee", "without a flame") counts for nothing.
Where the linker has sentence embeddings, nearness in meaning decides, and words help (`suited`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from haggle.core.text import clean_utterance
from haggle.language.english.synonyms import nicknames
from haggle.trade.among import chooses, likeliest, one_of_those, without_ones
from haggle.trade.knowledge import (
    asks_about_goods,
    asks_what_it_costs,
    compares,
    does_not_want,
    has_number,
    knowledge,
    puts_back,
    refers,
    stem,
    tells_a_need,
    with_g,
)
from haggle.trade.ledger import Note
from haggle.trade.resolve import Resolved, finish, worded
from haggle.trade.session import Session
from haggle.trade.world import Item, World, listed_or

NAMED = 1.5  # what a word of a name is worth; one of a description is 1
LEAST = 0.3  # a score under which nothing is said to fit
BESIDE = 0.5  # of the best score that other goods must reach
SHORT = 4  # words of a clause that a `no` at its beginning rules out
PART = 5  # letters of a word at the beginning of another
INSTEAD = 4  # words of "instead of the blue one"
MOST = 3  # goods that are shown so
NEAR = 0.2  # nearness in meaning under which nothing is said to fit
APART = 0.08  # how much less near than the best other goods may be
WORDS = 0.1  # what a score by words is worth in nearness, as far as MOST_WORDS
MOST_WORDS = 2.0

_WORD = re.compile(r"[^\W_]+(?:['’]t)?")
_SENTENCE = re.compile(
    r"(?<=[.!?;])\s+|,\s+and\s+(?=an?\b)"
    r"|,?\s+and\s+(?=(?:have|has|do|can|could|is|would|what|got|any)\b)",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(  # "add the train drop the crayons" are two; "don't drop the rope" is one
    r"[.,;:!?()]|\b(?:but|keep)\b"
    r"|(?<=\w)(?<!not)(?<!n['’]t)(?<!dont)(?<!never)(?<!say)(?<!said)\s+"
    r"(?=(?:add|drop|remove|scrap|skip|ditch)\b)"
)
_REFUSED = (  # "Ink? Nay, ...", "coffee no.", "I said moth but I meant ..." rule these out
    re.compile(
        r"(?:^|(?<=[.,;:!?]))\s*((?:[\w'’-]+\s+){0,3}[\w'’-]+)\?\s*(?=(?:no|nay|nah|nope|not)\b)"
    ),
    re.compile(r"(?:^|(?<=[.,;:!?]))\s*([\w'’-]+) no(?=[.,;!]|$)"),
    re.compile(r"\b(?:said|asked for|wrote) ((?:[\w'’-]+ ){0,3}[\w'’-]+),? but (?=.*\bmeant\b)"),
)
_A_PIECE = re.compile(r"\b(?:a|an|another)\b")  # "drop a rope" leaves the others
_WHICH = re.compile(
    r"\b(?:which|what)(?: of (?:the|your|these|those)(?: two| three)?)? ([a-z]{3,})\b"
)
_ELSE = re.compile(  # "what else have you got?"
    r"\b(?:what|anything|something) (?:else|others?)\b|\bother (?:wares|goods|things|items)\b"
)
_OTHER = re.compile(
    r"\b(?:the other|another|any other|other)\b(?!.*\b(?:day|time|way|hand)\b)[^.!]*\?"
)


def fitting(session: Session, line: str, resolved: Resolved) -> Resolved:
    """The outcome with goods on show that fit what a line describes, where it names none and the
    model would show others."""
    world, out = session.world, ruled_out(session.world, line)
    alike = of_kind(session, line) if resolved.shown else []
    new = _ELSE.search(line.casefold()) and {i.item_name for i in alike} & set(resolved.shown)
    if alike and "?" in line and not new:
        chosen = alike if compares(line) else likeliest(alike, line)
        return _showing(session, resolved, chosen[:MOST])
    view, choosing = _known(world, session.in_view()), chooses(session, line)
    if resolved.shown and "?" in line and (one := one_of_those(session, line)):
        return _showing(session, resolved, one)
    if not resolved.shown or session.named(line) - out:
        return resolved
    if session.named(line, sure=False) & {item.item_id for item in _known(world, resolved.shown)}:
        return resolved
    if asks_what_it_costs(line) and (priced := _described_alone(session, line, resolved.shown)):
        return _showing(session, resolved, priced)
    held = {*session.in_view(), *(world.by_id[i].item_name for i in session.cart)}
    asks = "?" in line or refers(line)
    of_those = asks and not tells_a_need(line) and set(resolved.shown) <= held
    of_shown = session.shown and asks_about_goods(line, session.read(line))
    if (of_those or of_shown) and not choosing:
        return resolved  # a question about goods in cart or view
    items = likeliest(view, line) if choosing else suited(session, line)
    return _showing(session, resolved, items)


def _showing(session: Session, resolved: Resolved, items: Sequence[Item]) -> Resolved:
    names = tuple(item.item_name for item in items)
    if not items or set(names) == set(resolved.shown):
        return resolved
    proposal = replace(resolved.proposal, show=names)
    told = (*resolved.interventions, "fitting")
    return finish(
        session, proposal, resolved.cart, resolved.sale_price, items, resolved.notes, told
    )


def _described_alone(session: Session, line: str, shown: Sequence[str]) -> list[Item]:
    """Goods that a line describes, where it has no word of those that would be shown."""
    scores = _by_words(session.world, line)
    if any(scores.get(item.item_id) for item in _known(session.world, shown)):
        return []
    return fits(session.world, line)[:1]


def of_kind(session: Session, line: str) -> list[Item]:
    """Goods of the kind that a line asks to choose from: "which seal stands the cold?"; what is
    like the goods in view where it asks for the other: "is there another one?"; what was not seen
    yet where it asks what else there is."""
    world, said = session.world, clean_utterance(line).casefold()
    asked = name_stems(" ".join(_WHICH.findall(said)))
    if found := [item for item in world.inventory if asked & name_stems(item.item_name)]:
        return found
    if _ELSE.search(said) and "?" in said:
        seen = {*session.in_view(), *session.shown, *session.named(line, sure=False)}
        seen |= session.cart.keys()
        return [i for i in world.inventory if not seen & {i.item_id, i.item_name}]
    if _OTHER.search(said):
        held = (world.by_id[i].item_name for i in session.cart)
        view = _known(world, (*session.in_view(), *session.shown, *held))
        kinds = frozenset().union(*(name_stems(item.item_name) for item in view))
        named = said_stems(said) & kinds
        return [
            i
            for i in world.inventory
            if i not in view and (named or kinds) & name_stems(i.item_name)
        ]
    return []


def _known(world: World, names: Sequence[str]) -> list[Item]:
    return [item for item in map(world.find, names) if item is not None]


def further(session: Session, line: str, resolved: Resolved) -> Resolved:
    """The outcome with goods on offer for a need that a line tells beside its order: "two ropes.
    And have you something for my knees?"""
    state = session.procedure.state(resolved.proposal.state)
    if state.clears or not session.codec.speaks_after:
        return resolved
    if state.payload == "show" and not session.named(line, sure=False):
        return resolved  # those that fit are shown
    seen = {*resolved.cart, *(item.item_id for item in _known(session.world, resolved.shown))}
    items = fitting_needs(session, line, seen)
    if not items:
        return resolved
    notes = (*resolved.notes, Note("also", listed_or([item.item_name for item in items])))
    shown = tuple(item.item_name for item in items)
    return replace(
        worded(session, replace(resolved, notes=notes), resolved.proposal.say), shown=shown
    )


def fitting_needs(session: Session, line: str, met: Collection[str] = ()) -> list[Item]:
    """Goods, none of them in the cart, that fit the needs which sentences of a line tell without a
    name. A need that goods with the ids `met` fit is met by these."""
    found: dict[str, Item] = {}
    for part in _SENTENCE.split(clean_utterance(line)):
        if not tells_a_need(part) or session.named(part, sure=False):
            continue
        fitting = {item.item_id: item for item in suited(session, part)}
        if not fitting.keys() & set(met):
            found |= fitting
    return [item for i, item in found.items() if i not in session.cart][:MOST]


def fits(world: World, line: str) -> list[Item]:
    """The goods for sale that fit a description best by their words, the best one first; none where
    none do."""
    scores = _by_words(world, line)
    return _best(world, scores, max(LEAST, BESIDE * max(scores.values(), default=0.0)))


def suited(session: Session, line: str) -> list[Item]:
    """The goods for sale that fit a need best: by what is meant, where the linker can tell, else by
    words. None where the line says nothing that goods could fit."""
    world = session.world
    scores = _by_words(world, line)
    texts = [
        " ".join((f"{item.item_name}.", item.description, *item.facts)) for item in world.inventory
    ]
    near = session.linker.nearness(line, texts) if _needed(world, line) else []
    if not near:
        return fits(world, line)
    found = {
        item.item_id: nearness + WORDS * min(scores[item.item_id], MOST_WORDS)
        for item, nearness in zip(world.inventory, near, strict=True)
        if item.item_id in scores
    }
    return _best(world, found, max(NEAR, max(found.values(), default=0.0) - APART))


def _needed(world: World, line: str) -> frozenset[str]:
    """The stems of a line that tell what is needed."""
    wanted, _, _ = _wanted(clean_utterance(line))
    return wanted - _in_names((world.currency,))


def _by_words(world: World, line: str) -> dict[str, float]:
    """How well goods fit a line by the words in common, by id; none of those that it rules out."""
    wanted, refused = _needed(world, line), ruled_out(world, line)
    owners = Counter(
        word for item in world.inventory for word in _called(item.item_name) | _described(item)
    )
    return {
        item.item_id: sum(
            (NAMED if word in _called(item.item_name) else 1.0) / owners[word]
            for word in wanted & (_called(item.item_name) | _described(item))
        )
        for item in world.inventory
        if item.item_id not in refused
    }


def _best(world: World, scores: dict[str, float], least: float) -> list[Item]:
    found = [world.by_id[i] for i, score in scores.items() if score >= least]
    return sorted(found, key=lambda item: -scores[item.item_id])[:MOST]


def ruled_out(world: World, line: str) -> frozenset[str]:
    """Ids of the goods that a line does not want: "not coffee", "without the coffee"."""
    wanted, refused, back = _wanted(clean_utterance(line))
    return _meant(world, refused | back, wanted)


def put_back(world: World, line: str) -> frozenset[str]:
    """Ids of the goods that a line takes out of the order: "put the coffee back"."""
    told = " ".join(part for part in _SENTENCE.split(clean_utterance(line)) if "?" not in part)
    wanted, refused, back = _wanted(told)
    return _meant(world, back, wanted | refused)


def said_stems(text: str) -> frozenset[str]:
    """The stems of what a text says and does not rule out, signs left out."""
    return frozenset(stem for stem in _wanted(text)[0] if stem[0] != "#")


def telling(words: str) -> frozenset[str]:
    """The stems of words that tell goods apart, signs left out."""
    return frozenset(stem for stem in _telling(_WORD.findall(words)) if stem[0] != "#")


def has_word_of(world: World, name: str) -> bool:
    """Whether anything for sale is called by a word of a name, is said to be such a thing, or is of
    its kind."""
    words = frozenset(_telling(_WORD.findall(name)))
    return any(words & (_called(i.item_name) | _described(i)) for i in world.inventory)


def name_stems(name: str) -> frozenset[str]:
    """The stems of the words of a name."""
    return frozenset(_root(word) for word in _WORD.findall(name.casefold()))


def _meant(world: World, words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """Ids of the goods of whose names these words have more than the others; a word that several
    names have counts the less."""
    names = {item.item_id: _in_names((item.item_name,)) for item in world.items}
    own = {i: {word for word in found if word[0] != "#"} for i, found in names.items()}
    owners = Counter(word for name in own.values() for word in name)

    def share(said: frozenset[str], name: set[str]) -> float:
        return sum(1 / owners[word] for word in said & name)

    return frozenset(i for i, name in own.items() if share(words, name) > share(others, name))


@lru_cache(maxsize=4096)
def _wanted(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The stems of a text that say something; those that it rules out; those that it puts back.

    A clause with a number speaks of how many: "not seventeen ropes" rules out no rope.
    """
    text = with_g(text.casefold())
    for pattern in _REFUSED:
        text = pattern.sub(r" not \1. ", text)
    text = without_ones(text)
    said: set[str] = set()
    refused: set[str] = set()
    back: set[str] = set()
    for clause in _CLAUSE_END.split(text):
        words = _WORD.findall(clause)
        at = next((n for n in range(len(words)) if _rules_out(words, n)), len(words))
        if has_number(clause) or (puts_back(clause) and _A_PIECE.search(clause)):
            said.update(_telling(words))
        elif does_not_want(clause) and len(words) <= at + SHORT:
            back.update(_telling(words[at:]))
        elif puts_back(clause):
            (said if at < len(words) else back).update(_telling(words))
        else:
            end = at + INSTEAD if words[at : at + 1] == ["instead"] else len(words)
            said.update(_telling((*words[:at], *words[end:])))
            refused.update(_telling(words[at:end]))
    return frozenset(said), frozenset(refused), frozenset(back)


def _rules_out(words: list[str], at: int) -> bool:
    """Whether what follows a word is not wanted; a `no` must begin a short clause."""
    word, cues = words[at], knowledge()
    if word in cues.ruling_out or word.endswith(("n't", "n’t")):
        behind = words[at + 1 : at + 2]
        told = behind == ["only"] or not cues.telling.isdisjoint(behind)
        return not told and words[at - 1 : at] not in (["why"], ["if"])
    return word == "no" and at <= 1 and len(words) <= at + SHORT


def _telling(words: Sequence[str]) -> Iterator[str]:
    """The stems of words that say something, and `#` what such a word is a sign of."""
    for word in words:
        if len(word) > 2 and (root := _root(word)) not in _idle():
            yield root
            yield from _signs().get(root, ())


@cache
def _signs() -> dict[str, frozenset[str]]:
    """Kinds of goods, and the conditions that goods help in, by the stems that tell of them."""
    found: dict[str, set[str]] = {}
    for kind, words in (knowledge().kinds | knowledge().conditions).items():
        for word in words:
            found.setdefault(_root(word), set()).add(f"#{kind}")
    return {root: frozenset(kinds) for root, kinds in found.items()}


def _root(word: str) -> str:
    """A stem of which `play` and `playing` are one."""
    return stem(stem(word))


@cache
def _idle() -> frozenset[str]:
    return frozenset(map(_root, knowledge().dull | knowledge().idle))


@lru_cache(maxsize=4096)
def _in_names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_telling(_WORD.findall(" ".join(names).casefold())))


@lru_cache(maxsize=4096)
def _called(name: str) -> frozenset[str]:
    """The words of a name, and of what else such things are called."""
    others = {word for word in _in_names(tuple(nicknames(name))) if word[0] != "#"}
    own = _in_names((name,))
    parts = (kinds for word in own for root, kinds in _signs().items() if _begins(word, root))
    return own.union(others, *parts)


def _begins(word: str, root: str) -> bool:
    """Whether a word is made up of another and more: a feverroot is against fever."""
    return len(root) >= PART and word.startswith(root) and len(word) > len(root) + 2


def _described(item: Item) -> frozenset[str]:
    """What is said of an item; what is denied ("not warm") is left out, and so are the kinds of
    goods that it only speaks of."""
    said = frozenset().union(*(_wanted(text)[0] for text in (item.description, *item.facts)))
    return said - {f"#{kind}" for kind in knowledge().kinds}
