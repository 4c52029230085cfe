"""Which number of a line counts which mention: `two dozen axes`, `axe x2`, `axes, three.`"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from haggle.language.english.cues import CUES
from haggle.language.english.impossible import counts_nothing, is_no_count, is_of_name
from haggle.language.english.line import TOKEN, Line
from haggle.language.english.names import Names
from haggle.language.english.numbers import begins_number, read_number
from haggle.language.reading import Mention, Number

MAX_BARE = 24  # more behind a mention, with nothing but a comma between, is rather a price
MOST_GLUED = 2  # letters before a number that is none: "thanks m8", "gr8"
MAX_FILLERS = 3  # words between a number and what it counts
FILLERS = CUES.fillers | CUES.sizes.keys()
_PACKS = CUES.packs | CUES.measures
OF = {"of", "o"}
_LOOSELY = {"", ","}
_JOINTS = _LOOSELY | {"."} | CUES.joints  # between a mention and the number behind it
_TIMES_JOINTS = _LOOSELY | {"-", "("}  # and before the `x` of `x 2`
_PARTS = re.compile(r"[^\w\s'’\"(-]")
_CLAUSE_END = re.compile(r"[.,;)]|$")
_STOP = re.compile(r"[.,;!?)]")
# "cut the ropes to four"
_SETTING = re.compile(
    rf"\s+(?:(?:(?:{'|'.join(CUES.directions)})\s+)?to|{'|'.join(CUES.settling)})\s+"
)
_ENDS = re.compile(
    rf"\s*(?:[.,;!?)]|$)|\s+(?:and(?! an? (?:{'|'.join(CUES.parts)}))"
    rf"|{'|'.join(CUES.setting_ends)})\b"
)
_OF_THEM = re.compile(rf"\s+(?:of|o['’]?)\s+['’]?(?:{'|'.join(CUES.of_them)})\b")


def number_at(line: Line, at: int) -> tuple[Number | None, int]:
    """The number that the words from `at` on say, and the place behind it."""
    first = line.said(at)
    if not begins_number(first) or first in CUES.ordinals:
        return None, at
    glued = at and not line.gap(at) and len(line.said(at - 1)) <= MOST_GLUED
    if glued and line.said(at - 1) not in CUES.times:
        return None, at  # "thanks m8"
    places = range(at + 1, len(line.words))
    # "Twenty. Two tins" and "twenty, two tins" are two numbers
    end = next((n for n in places if _STOP.search(line.gap(n))), len(line.words))
    value, digits, used = read_number([word.text for word in line.words[at:end]])
    if not used:
        return None, at
    words = line.words[at : at + used]
    return Number(words[0].start, words[-1].end, value, digits), at + used


def is_near(line: Line, number: Number, at: int, names: Names) -> bool:
    """Whether little stands between a number and the mention that begins at `at`: fillers, what it
    comes in ("two coils of"), or one word that may say what a thing is like."""
    if _PARTS.search(line.text, number.end, line.words[at].start):
        return False
    between = [word for word in line.words[:at] if word.start >= number.end]
    if len(between) > 1 and between[0].single in _PACKS and between[1].text in OF:
        between = between[2:]
    unknown = [word for word in between if word.text not in FILLERS]
    if not unknown:
        return len(between) <= MAX_FILLERS
    word = unknown[0]
    everyday = word.text in CUES.common or word.single in names.dull
    return len(unknown) == 1 and len(word.text) > 2 and not everyday


def number_behind(
    line: Line, at: int, names: Names, is_named: Callable[[int], bool]
) -> tuple[Number | None, int]:
    """The number right behind a mention, at `at`, that counts it, and the place behind it.
    `is_named` tells whether a mention begins at a place."""
    if at == len(line.words):
        return None, at
    times = line.said(at) in CUES.times
    number, after = number_at(line, at + times)
    joint = line.gap(at).replace(")", "").strip()
    if number is None or not number.value or joint not in (_TIMES_JOINTS if times else _JOINTS):
        return None, at
    rest = line.text[number.end :].lstrip()
    if rest.startswith("%") or (joint == "(" and not rest.startswith(")")):
        return None, at
    if not times and joint in {*_LOOSELY, "."}:  # "Scale bolts. Twenty."
        counts = _closes(line, number, rest) or (not joint and _in_list(line, number))
        one = not joint and line.said(at) in CUES.ones  # the red one
        offered = any(word.text in CUES.offering for word in line.words[:at])  # I pay for it 20.
        counts = counts and not one and not offered
    else:
        counts = after == len(line.words) or _STOP.match(rest) is not None
        counts = counts or not _counts_next(line, after, names, is_named)
    return (number, after) if counts else (None, at)


def told_behind(
    line: Line, at: int, names: Names, ids: Collection[str]
) -> tuple[Number | None, int]:
    """The number that words behind a mention of things with these ids set, or that is told with
    what it counts: "the ropes down to four", "rope, three of them", "socks, two pairs"."""
    setting = _SETTING.match(line.text, line.words[at - 1].end)
    at = line.place(setting.end()) if setting else at
    number, after = number_at(line, at)
    if number is None or not number.value:
        return None, at
    if setting:
        return (number, after) if _ENDS.match(line.text, number.end) else (None, at)
    if line.gap(at).strip() not in _LOOSELY or (
        line.said(at) in CUES.ones and "," not in line.gap(at)
    ):
        return None, at
    them = _OF_THEM.match(line.text, number.end)
    pack = after < len(line.words) and line.words[after].single in _PACKS
    others = set(names.run(line, after).ids) if pack and not them else set[str]()
    end = them.end() if them else line.words[after].end if pack else 0
    told = end and _ENDS.match(line.text, end) and others <= {*ids}
    return (number, after) if told else (None, at)


def _closes(line: Line, number: Number, rest: str) -> bool:
    """Whether a number too small for a price ends its clause; `rest` is the text behind it."""
    return _CLAUSE_END.match(rest) is not None and (number.value or 0) <= MAX_BARE


def _in_list(line: Line, number: Number) -> bool:
    """Whether the clause goes on behind `number` and ends in another: `hemp 4 silk 1`."""
    clause = re.split(r"[.,;:!?\n]", line.text[number.end :], maxsplit=1)[0]
    words = [match[0].casefold() for match in TOKEN.finditer(clause)]
    return re.match(r"\s*\w", clause) is not None and bool(read_number(words[-1:])[2])


def _counts_next(line: Line, at: int, names: Names, is_named: Callable[[int], bool]) -> bool:
    """Whether the number before a word is a price, or counts what the word names."""
    word = line.words[at]
    return word.text in CUES.each or word.single in names.dull or is_named(at)


def is_uncountable(line: Line, number: Number | None, mention: Mention) -> bool:
    """Whether a mention has a number that nobody can have; `number` is one said near before it."""
    if number is not None:
        none = is_no_count(line.text, number.start, number.end)
        odd = line.text[number.start : number.end] if none else ""
    else:
        odd = counts_nothing(line.text[: mention.start], line.text[mention.end :])
    return bool(odd) and not any(is_of_name(odd, thing.name) for thing in mention.candidates)
