"""Entity linking: what a player's line names, marked behind the words that name it.

    swap the axe for two dozen heal pots
    swap the axe {Sharp Axe} for two dozen heal pots {Healing Potion x24}

Finding the listed name behind a spelling is lookup, which code does exactly and a small model does
badly; what the player wants done with it is left to the model. Marks are suggestions: `{A / B}`
says that words fit two or three names, `{?A}` that A is known but not for sale or named together
with a word of something else, and words that fit nothing, or more than three names, stay bare. A
number that counts pieces stands in the mark of what it counts; any other that needs reading has a
mark of its own, `{40}`; `{A x?}` has a number that nobody can buy, such as minus three.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from haggle.language.english.counting import FILLERS, Counting, Line, Number, number_at
from haggle.language.english.nicknames import BEFORE_VERBS, also_called
from haggle.language.english.numerals import UNITS
from haggle.language.english.pointing import (
    ONES,
    SIZES,
    Word,
    extreme,
    of_one_kind,
    of_size,
    pointed_at,
    superlative,
)
from haggle.language.english.vocabulary import (
    CONTAINERS,
    HOLLOW,
    Vocabulary,
    common_words,
    singular,
)
from haggle.trade.wire import UNLISTED
from haggle.trade.world import Item, World

MAX_FITTING = 3  # names a mark may hold
MAX_RUN = 6  # words a mention may have
NO_NUMBER: Final = "?"  # in the place of a count that is none
_SIZED = frozenset("one ones kind kinds sort sorts".split())  # a small thing is a remark
_PRAISE = frozenset("great grand".split())
_DEGREES = frozenset("too so very as how not that this".split())
_MODAL = frozenset("can may might must will".split())  # nouns too, but seldom
_SUBJECTS = BEFORE_VERBS | {"have", "get"}
_PRONOUNS = frozenset("i you u ya he she it we they who whoever that which what".split())


@dataclass(frozen=True, slots=True)
class _Mark:
    """What stands behind the words that end at `end`: a text, or the items that fit them."""

    end: int
    text: str = ""
    items: tuple[Item, ...] = ()
    count: int | Literal["?"] | None = None
    guessed: bool = False  # by what people call such a thing, not by its name


def _alone(number: Number | None) -> Iterator[_Mark]:
    """The mark of a number that counts no mention; none where it needs no telling."""
    if number is not None and number.told:
        yield _Mark(number.end, number.told)


def without_marks(text: str) -> str:
    """A line whose own braces are brackets, so that nothing typed can pose as a mark."""
    return text.replace("{", "(").replace("}", ")")


class Linker:
    """Finds the names of one world in what players type. Made once a session."""

    def __init__(self, world: World) -> None:
        self._words = Vocabulary(world)
        self._counting = Counting(self._words)

    def link(self, text: str, world: World, cart: Collection[str], shown: Iterable[str]) -> str:
        """`text` with marks. `cart` holds item ids, `shown` the names in view, in order."""
        pieces, at = [], 0
        for mark in self._marks(text, world, cart, tuple(shown)):
            told = mark.text or " / ".join(map(_name, mark.items))
            if mark.count is not None:
                told += f" x{mark.count}"
            pieces += [text[at : mark.end], f" {{{told}}}"]
            at = mark.end
        return "".join(pieces) + text[at:]

    def named(
        self,
        text: str,
        world: World,
        cart: Collection[str],
        shown: Iterable[str],
        *,
        sure: bool = True,
    ) -> frozenset[str]:
        """Ids of the items that `text` names by words that fit no other; without `sure`, also of
        those it may name."""
        marks = self._marks(text, world, cart, tuple(shown))
        return frozenset(
            item.item_id
            for mark in marks
            for item in mark.items
            if not sure or (len(mark.items) == 1 and not mark.guessed)
        )

    def uncountable(
        self, text: str, world: World, cart: Collection[str], shown: Iterable[str]
    ) -> frozenset[str]:
        """Ids of the items that `text` names only with numbers that nobody can buy."""
        odd: set[str] = set()
        even: set[str] = set()
        for mark in self._marks(text, world, cart, tuple(shown)):
            (odd if mark.count == NO_NUMBER else even).update(i.item_id for i in mark.items)
        return frozenset(odd - even)

    def _marks(
        self, text: str, world: World, cart: Collection[str], shown: tuple[str, ...]
    ) -> Iterator[_Mark]:
        """Marks in the order of the text."""
        line = Line.of(text)
        words = line.words
        known = [item for item in map(world.find, shown) if item is not None]
        near = {*cart, *(item.item_id for item in known)}
        cheaper: bool | None = None  # a superlative that the next mention is chosen by
        loose: Word | None = None  # a name's word that named nothing: "elven" before "sword"
        number: Number | None = None  # one that may yet count a mention
        size = ""  # a word of size that the next mention is chosen by
        kind: tuple[Item, ...] = ()  # what the last name fits, of more than one
        marked = -2  # where the last mention ends
        at = 0

        def names(place: int) -> bool:
            """Whether goods are named from a word on: `kettles`, `small ones`."""
            return words[place].text in SIZES or self._mention(text, words[place:])[1] > 0

        while at < len(words):
            ids, used = self._leads(text, words, at)
            read = None if used else number_at(words, at)
            chosen_by = cheaper is not None or bool(size)
            if read is not None and not (chosen_by and words[at].text in ONES):
                yield from _alone(number)
                number, loose = read, None
                at += read.used
                continue
            helps = self._helps(words, at)
            if not used and not helps:
                ids, used = self._mention(text, words[at:])
            strange = ""
            if used == 1 and loose is not None and self._vague(loose, words[at]):
                ids, used = [], 0
            guessed = not used and not helps and words[at].start - marked != 1
            if guessed:
                ids, used = also_called(self._words, text, words, at, number.next if number else 0)
                if used and loose is not None and self._of_others(loose, words[at], ids):
                    ids, used = [], 0
            end = words[at + used - 1].end if used else 0
            if used and loose is not None and self._of_others(loose, words[at], ids):
                strange = "" if loose.text in common_words() else text[loose.start : end]
                ids = []
            if used:
                marked = end
                items = [world.by_id[i] for i in ids if i in world.by_id]
                sized = of_size(size, items) if size and len(items) > 1 else None
                items = [sized] if sized else _fitting(items, near, cheaper)
                kind = _kind(items, world) or kind
                told = UNLISTED + strange if strange else ""
                mark = _Mark(end, told, tuple(items), guessed=guessed)
                held = any(item.item_id in cart for item in items)  # minus two of it is two less
                if items and not held and self._counting.nothing(line, number, at, end, items):
                    mark = replace(mark, count=NO_NUMBER)
                at += used
                if mark.text or mark.items:
                    counting, taken = self._counting.of_mention(line, number, at - used, at, names)
                    if counting is not number:
                        yield from _alone(number)
                    if counting is not None and mark.count is None:
                        mark = replace(mark, count=counting.value)
                    yield mark
                    at += taken
                else:
                    yield from _alone(number)
                cheaper = loose = number = None
                size = ""
                continue
            if helps:
                loose = None
                at += 1
                continue
            if (
                len(known) == 2
                and words[at].text == "both"
                and not self._mention(text, words[at + 1 :])[1]
            ):
                yield from _alone(number)
                yield from (_Mark(words[at].end, items=(item,)) for item in known)
                number = cheaper = loose = None
                at += 1
                continue
            size = _size(words[at].text, size)
            sized = of_size(size, kind or known) if size else None
            if sized is not None and _stands(line, at, sized, bool(kind)):
                end, at = words[at].end, at + 1
                counting, used = self._counting.of_mention(line, number, at - 1, at, names)
                if counting is not number:
                    yield from _alone(number)
                kind = _kind([sized], world) or kind
                yield _Mark(end, items=(sized,), count=counting.value if counting else None)
                at += used
                cheaper = loose = number = None
                size = ""
                continue
            the = at > 0 and words[at - 1].text == "the"
            pointed, used = pointed_at(words[at:], known, cheaper, the)
            cheaper = superlative(words, at, cheaper, len(known) == 2)
            priced = words[at].text in {"expensive", "priced"}  # the less expensive, please
            if pointed is None and cheaper is not None and priced and _stops(line, at):
                pointed = extreme(known, cheaper)
            if pointed is not None:
                yield from _alone(number)
                number = None
                yield _Mark(words[at + max(1, used) - 1].end, items=(pointed,))
            loose = words[at]
            at += max(1, used)
        yield from _alone(number)

    def _leads(self, text: str, words: list[Word], at: int) -> tuple[list[str], int]:
        """The items that a mention beginning with the number at `at` means, and its length.

        The number belongs to the name where the two stand side by side in it, `six-shot revolver`,
        `50m of rope`, and counts pieces where the words behind it are the whole name of another.
        """
        if at + 1 >= len(words) or not (words[at].text in UNITS or words[at].text.isdecimal()):
            return [], 0
        leads = self._words.joined(words[at].text, words[at + 1].text)
        ids, used = self._mention(text, words[at + 1 :]) if leads else ([], 0)
        kept = [item_id for item_id in ids if item_id in leads]
        if not kept:
            return [], 0
        said = {singular(word.text) for word in words[at + 1 : at + 1 + used]}
        glued = re.fullmatch(r"-?", text[words[at].end : words[at + 1].start]) is not None
        others = [item_id for item_id in ids if item_id not in leads]
        counts = any(self._words.whole(item_id, said) for item_id in others)
        if counts or (others and not glued and not words[at].text.isdecimal()):
            return [], 0
        return kept, used + 1

    def _helps(self, words: list[Word], at: int) -> bool:
        """Whether the word at `at` is a verb that is a noun elsewhere: `can I`, not `the can`."""
        if words[at].text not in _MODAL:
            return False
        after = words[at + 1].text if at + 1 < len(words) else ""
        if after in _SUBJECTS or after == "t":  # can't
            return True
        if not after or after == "of":
            return at > 0 and words[at - 1].text in _PRONOUNS
        return at == 0 or words[at - 1].text in _PRONOUNS

    def _of_others(self, word: Word, following: Word, ids: Collection[str]) -> bool:
        """Whether the word right before a mention belongs to the names of other items only."""
        owners = self._words.owners(word.text)
        return bool(owners) and following.start == word.end + 1 and not set(owners) & set(ids)

    def _vague(self, before: Word, head: Word) -> bool:
        """Whether a word for any container says nothing, as behind a word that no name has."""
        return (
            singular(head.text) in CONTAINERS
            and head.start == before.end + 1
            and len(before.text) > 3  # not "ur bag"
            and before.text not in FILLERS
            and before.text not in common_words()
            and not self._words.score(before.text)
        )

    def _parted(self, text: str, words: list[Word], at: int, fits: Collection[str]) -> bool:
        """Whether a mention ends before the word at `at`: at a stop, a verb, or a word or sign
        that joins two things, unless a name that still fits goes on behind it."""
        between = text[words[at - 1].end : words[at].start]
        if re.search(r"[.,;:!?]", between) or self._helps(words, at):
            return True
        joins = words[at].text in {"and", "or"}
        if not joins and not re.search(r"[+&/]", between):
            return False
        before = next((w for w in reversed(words[:at]) if w.text not in HOLLOW), words[at - 1])
        after = next((w for w in words[at + joins :] if w.text not in HOLLOW), None)
        return after is None or not set(fits) & set(self._words.joined(before.text, after.text))

    def _mention(self, text: str, words: list[Word]) -> tuple[list[str], int]:
        """The items that the longest run of words at the start can mean, and its length."""
        best: tuple[list[str], int] = ([], 0)
        fits: dict[str, float] = {}
        covered: dict[str, set[str]] = {}
        strong: set[str] = set()
        before = ""
        for length, word in enumerate(words[:MAX_RUN], start=1):
            if length > 1 and self._parted(text, words, length - 1, fits):
                break
            if word.text in HOLLOW:
                if length == 1:
                    break
                continue
            found = self._words.score(word.text)
            joined = self._words.score(before + singular(word.text), exact=True) if before else {}
            here: dict[str, float] = {}
            for item_id in found.keys() | joined.keys():
                if length > 1 and item_id not in fits:
                    continue
                score, is_strong = max(
                    found.get(item_id, (0.0, False)), joined.get(item_id, (0.0, False))
                )
                here[item_id] = fits.get(item_id, 0.0) + score
                if is_strong:
                    strong.add(item_id)
                covered.setdefault(item_id, set()).add(singular(word.text))
            if not here:
                if length == 1 and singular(word.text) and len(words) > 1:
                    pair = self._words.score(
                        singular(word.text) + singular(words[1].text), exact=True
                    )
                    if pair and words[1].start - word.end == 1:
                        return list(pair), 2
                break
            fits, before = here, singular(word.text)
            chosen = self._words.chosen(fits, strong, covered)
            if chosen:
                best = (chosen, length)
        return best


def _fitting(items: list[Item], near: Collection[str], cheaper: bool | None) -> list[Item]:
    """The items a mark holds: those at hand go before others; none when too many fit."""
    if len(items) > 1:
        items = [item for item in items if item.item_id in near] or items
    if len(items) > 1:
        items = [item for item in items if item.for_sale] or items
    if len(items) > 1 and cheaper is not None:
        chosen = extreme(items, cheaper)
        items = [chosen] if chosen else items
    return items if len(items) <= MAX_FITTING else []


def _kind(items: list[Item], world: World) -> tuple[Item, ...]:
    """What a word of size may choose from, behind a name that fits these."""
    if len(items) == 1:
        return of_one_kind(items[0], world.inventory)
    return tuple(items)


def _size(word: str, earlier: str) -> str:
    """The word of size that the words so far end in: `small`, `small ones`."""
    said = word in SIZES and word not in _PRAISE
    return word if said else earlier if word in _SIZED else ""


def _stops(line: Line, at: int) -> bool:
    """Whether a clause ends behind a word."""
    return re.match(r"\s*([.,;:!?]|$)", line.text[line.words[at].end :]) is not None


def _stands(line: Line, at: int, item: Item, named: bool) -> bool:
    """Whether a word of size stands for an item: `the small one`, `the big, please`. Without a
    `the` it is a word of the item's name, and such things were `named`, or it is all there is to
    the answer: `huge!` is a remark."""
    if line.words[at].text in _SIZED:
        return True
    if not _stops(line, at):
        return False
    before = line.words[at - 1].text if at else ""
    literal = line.words[at].text in item.item_name.casefold().split()
    return before == "the" or (literal and (not at or (named and before not in _DEGREES)))


def _name(item: Item) -> str:
    return item.item_name if item.for_sale else UNLISTED + item.item_name
