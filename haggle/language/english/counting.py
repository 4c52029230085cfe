"""Which number of a line counts which mention: `two dozen axes`, `axe x2`, `axes, three.`"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from haggle.language.english.impossible import counts_nothing, is_no_count, is_of_name
from haggle.language.english.numerals import read_number
from haggle.language.english.pointing import ONES, ORDINALS, SIZES, Word
from haggle.language.english.vocabulary import TOKEN, Vocabulary, common_words, singular
from haggle.trade.world import Item

MAX_BARE = 24  # more behind a mention, with nothing but a comma between, is rather a price
MAXFILLERS = 3  # words between a number and what it counts
FILLERS = frozenset(
    "x of the your those these them my our some more other another extra fine finest best good new "
    "old piece pieces unit units such same".split()
) | frozenset(SIZES)
_EACH = frozenset("each per percent apiece off".split())
_MONEY = frozenset("pay paying offer offering price cost costs worth charge bid".split())
_JOINTS = frozenset(("x", "×", "*", "-", "–", ":", "=", "("))  # between a mention and its number


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it was typed, and its words in lower case."""

    text: str
    words: list[Word]

    @classmethod
    def of(cls, text: str) -> Line:
        """The line's words and where they stand."""
        return cls(text, [Word(m[0].casefold(), m.start(), m.end()) for m in TOKEN.finditer(text)])


@dataclass(frozen=True, slots=True)
class Number:
    """A number said: its value where it is a whole one, how it is told where it needs telling, how
    many words it takes, the word behind it and where it ends in the text."""

    value: int | None
    told: str
    used: int
    next: int
    end: int


def number_at(words: Sequence[Word], at: int) -> Number | None:
    """The number that the words from `at` on say."""
    said = [word.text for word in words[at:]]
    value, told, used = read_number(said)
    if not used or said[0] in ORDINALS:
        return None
    return Number(value, told, used, at + used, words[at + used - 1].end)


class Counting:
    """Numbers and what they count, in lines about the goods of one vocabulary."""

    def __init__(self, words: Vocabulary) -> None:
        self._words = words

    def of_mention(
        self, line: Line, before: Number | None, at: int, end: int, names: Callable[[int], bool]
    ) -> tuple[Number | None, int]:
        """The number that counts the mention of the words from `at` to `end`, and how many words
        behind it are that number's: one said `before`, or else one behind: `axe x2`, `axes: a
        dozen`, `axes, three.` `names` tells whether a mention begins at a word."""
        if before is not None and before.value and self._near(line, before, at):
            return before, 0
        behind = self._behind(line, end, names)
        return behind, behind.used if behind is not None else 0

    def _behind(self, line: Line, at: int, names: Callable[[int], bool]) -> Number | None:
        """The number behind a mention, at `at`, that counts it."""
        text, words = line.text, line.words
        first = at + (at < len(words) and words[at].text in {"x", "times"})
        if first >= len(words) or at == 0:
            return None
        joint = text[words[at - 1].end : words[at].start].replace(")", "").strip()
        if first == at and joint not in {"", ",", *_JOINTS}:
            return None
        if first > at and joint not in {"", "-", "(", ","}:
            return None
        number = number_at(words, first)
        if number is None or not number.value:
            return None
        rest = text[number.end :].lstrip()
        if rest.startswith("%") or (joint == "(" and not rest.startswith(")")):
            return None
        if first == at and joint in {"", ","}:
            stands = _stands_alone(number, rest) or (not joint and _in_list(text, number))
            one = not joint and words[first].text in ONES  # the red one
            offered = any(word.text in _MONEY for word in words[:at])  # I pay for the axe 20.
            return (
                replace(number, used=number.next - at) if stands and not (one or offered) else None
            )
        if number.next < len(words) and not re.match(r"[.,;!?)]", rest):
            after = words[number.next].text
            if after in _EACH or singular(after) in self._words.dull or names(number.next):
                return None
        return replace(number, used=number.next - at)

    def nothing(
        self, line: Line, number: Number | None, at: int, end: int, items: Collection[Item]
    ) -> bool:
        """Whether the mention of `items` from the word at `at` to `end` in the text has a number
        that nobody can buy."""
        if number is not None and self._near(line, number, at):
            start = line.words[number.next - number.used].start
            none = is_no_count(line.text, start, number.end)
            odd = line.text[start : number.end] if none else ""
        else:
            odd = counts_nothing(line.text[: line.words[at].start], line.text[end:])
        return bool(odd) and not any(is_of_name(odd, item.item_name) for item in items)

    def _near(self, line: Line, number: Number, at: int) -> bool:
        """Whether little stands between a number and the mention that begins at `at`."""
        between = line.words[number.next : at]
        if re.search(r"[^\w\s'’\"(-]", line.text[number.end : line.words[at].start]):
            return False
        if all(word.text in FILLERS for word in between):
            return len(between) <= MAXFILLERS
        unknown = [word for word in between if word.text not in FILLERS]
        return len(unknown) == 1 and len(unknown[0].text) > 2 and not self._parts(unknown[0].text)

    def _parts(self, word: str) -> bool:
        """Whether a word parts a number from what follows: money, or a word of everyday use."""
        common = word in common_words() and word not in FILLERS
        return common or singular(word) in self._words.dull


def _stands_alone(number: Number, rest: str) -> bool:
    """Whether a number too small for a price ends its clause; `rest` is the text behind it."""
    return re.match(r"[.,;)]|$", rest) is not None and (number.value or 0) <= MAX_BARE


def _in_list(text: str, number: Number) -> bool:
    """Whether the clause goes on behind `number` and ends in another: `hemp 4 silk 1`."""
    clause = re.split(r"[.,;:!?\n]", text[number.end :], maxsplit=1)[0]
    words = [match[0].casefold() for match in TOKEN.finditer(clause)]
    return re.match(r"\s*\w", clause) is not None and bool(read_number(words[-1:])[2])
