"""What a line wants and what it rules out, by the stems of its words: "not coffee", "put it back",
"without a flame". Words that say nothing about goods do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from haggle.core.text import clean_utterance
from haggle.trade.among import without_ones
from haggle.trade.knowledge import does_not_want, has_number, knowledge, puts_back, respelled, stem
from haggle.trade.language import nicknames, patterns
from haggle.trade.world import Item, World, per_world

SHORT = 4  # words of a clause that a `no` at its beginning rules out
PART = 5  # letters of a word at the beginning of another
INSTEAD = 4  # words of "instead of the blue one"

_WORD = re.compile(r"[^\W_]+(?:['’]t)?")
_INSTEAD, _OF, _NO = map(patterns.words, ("instead", "of", "no"))
_WITHOUT, _DENYING = map(patterns.words, ("lacking", "denying_words"))
_UNLESS_BEFORE, _UNLESS_BEHIND = patterns.words("why_if"), patterns.words("only_that")
_NOT_ENDING = tuple(patterns.words("not_ending"))


def needed(world: World, line: str) -> frozenset[str]:
    """The stems of a line that tell what is needed."""
    wanted, _, _ = _wanted(clean_utterance(line))
    return wanted - in_names((world.currency,))


def ruled_out(world: World, line: str) -> frozenset[str]:
    """Ids of the goods that a line does not want: "not coffee", "without the coffee"."""
    wanted, refused, back = _wanted(clean_utterance(line))
    return _meant(world, refused | back, wanted)


def put_back(world: World, line: str) -> frozenset[str]:
    """Ids of the goods that a line takes out of the order: "put the coffee back"."""
    parts = patterns.NEXT_NEED.split(clean_utterance(line))
    told = " ".join(part for part in parts if "?" not in part)
    wanted, refused, back = _wanted(told)
    return _meant(world, back, wanted | refused)


def unwanted(world: World, line: str) -> frozenset[str]:
    """Ids of the goods that a line does not want, or takes out of the order."""
    return ruled_out(world, line) | put_back(world, line)


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
    return any(words & told for told in goods_stems(world)[0].values())


@lru_cache(maxsize=4096)
def name_stems(name: str) -> frozenset[str]:
    """The stems of the words of a name."""
    words = set(_WORD.findall(name.casefold()))
    return frozenset(map(_root, words - knowledge().dull))


def _meant(world: World, words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """Ids of the goods of whose names these words have more than the others; a word that several
    names have counts the less."""
    own, owners = _names_stems(world)

    def share(said: frozenset[str]) -> float:
        return sum(1 / owners[word] for word in said)

    found = {
        i: said
        for i, name in own.items()
        if (said := words & name) and share(said) > share(others & name)
    }
    # "not the watch" means what ends in it
    heads = {i for i, said in found.items() if _head(world, i) in said}
    return frozenset(  # "the small canisters" are not the large ones
        i
        for i, said in found.items()
        if not any(said < more for more in found.values())
        and (i in heads or not any(said <= found[head] for head in heads))  # no watch spring
    )


def _head(world: World, item: str) -> str:
    """The stem of the last word of a name."""
    words = _WORD.findall(world.by_id[item].item_name.casefold())
    return _root(words[-1]) if words else ""


@per_world
def _names_stems(world: World) -> tuple[dict[str, frozenset[str]], Counter[str]]:
    """The stems of the goods' names by id, signs left out, and in how many names each stands."""
    own = {
        item.item_id: frozenset(word for word in in_names((item.item_name,)) if word[0] != "#")
        for item in world.items
    }
    return own, Counter(word for name in own.values() for word in name)


@lru_cache(maxsize=4096)
def _wanted(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The stems of a text that say something; those that it rules out; those that it puts back.

    A clause with a number speaks of how many: "not seventeen ropes" rules out no rope.
    """
    text = respelled(text.casefold())
    for pattern in patterns.REFUSED:
        text = pattern.sub(rf" {patterns.NOT} \1. ", text)
    text = without_ones(text)
    said: set[str] = set()
    refused: set[str] = set()
    back: set[str] = set()
    last: set[str] = set()
    for clause in patterns.CLAUSE_OF_REFUSAL.split(text):
        words = _WORD.findall(clause)
        takes = patterns.OF_THOSE_TOLD.search(clause) and patterns.TAKING.search(clause)
        if takes:  # "I cannot come without jam, so add six of that"
            refused -= last
            said |= last
        at = next((n for n in range(len(words)) if _rules_out(words, n)), len(words))
        if at == len(words) and patterns.COMPLAINT.search(clause) and not puts_back(clause):
            continue
        if has_number(clause) or (puts_back(clause) and patterns.A_PIECE.search(clause)):
            said.update(_telling(words))
        elif does_not_want(clause) and len(words) <= at + SHORT:
            back.update(_telling(words[at:]))
        elif puts_back(clause):
            (said if at < len(words) else back).update(_telling(words))
        else:
            end = len(words) if _INSTEAD.isdisjoint(words[at : at + 1]) else at + INSTEAD
            said.update(_telling((*words[:at], *words[end:])))
            out = set(_telling(words[at:end]))
            last = out or last
            refused |= out
    return frozenset(said), frozenset(refused), frozenset(back)


def _rules_out(words: list[str], at: int) -> bool:
    """Whether what follows a word is not wanted; a `no` must begin a short clause."""
    word, cues = words[at], knowledge()
    if word in _INSTEAD and _OF.isdisjoint(words[at + 1 : at + 2]):
        return False
    if word in cues.ruling_out or word.endswith(_NOT_ENDING):
        behind = words[at + 1 : at + 2]
        told = not (_UNLESS_BEHIND.isdisjoint(behind) and cues.telling.isdisjoint(behind))
        if word in _WITHOUT and any(w in _DENYING or w.endswith(_NOT_ENDING) for w in words[:at]):
            return False  # "I never sail without oil"
        return not told and _UNLESS_BEFORE.isdisjoint(words[at - 1 : at])
    return word in _NO and at <= 1 and len(words) <= at + SHORT


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
def in_names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_telling(_WORD.findall(" ".join(names).casefold())))


@lru_cache(maxsize=4096)
def called(name: str) -> frozenset[str]:
    """The words of a name, and of what else such things are called."""
    others = {word for word in in_names(tuple(nicknames(name))) if word[0] != "#"}
    own = in_names((name,))
    parts = (kinds for word in own for root, kinds in _signs().items() if _begins(word, root))
    return own.union(others, *parts)


def _begins(word: str, root: str) -> bool:
    """Whether a word is made up of another and more: a feverroot is against fever."""
    return len(root) >= PART and word.startswith(root) and len(word) > len(root) + 2


def described(item: Item) -> frozenset[str]:
    """What is said of an item; what is denied ("not warm") is left out, and so are the kinds of
    goods that it only speaks of."""
    said = frozenset().union(*(_wanted(text)[0] for text in (item.description, *item.facts)))
    return said - {f"#{kind}" for kind in knowledge().kinds}


@per_world
def goods_stems(world: World) -> tuple[dict[str, frozenset[str]], Counter[str]]:
    """The stems of what goods for sale are called and said to be, by id, and how many have each."""
    told = {item.item_id: called(item.item_name) | described(item) for item in world.inventory}
    return told, Counter(word for stems in told.values() for word in stems)
