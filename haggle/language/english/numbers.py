"""Numbers in digits and words, as people type them: `two dozen`, `two fifty`, `1.5k`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from haggle.language.english.cues import CUES

UNITS = {word: number for number, word in enumerate(CUES.units)}
TENS = {word: 10 * number for number, word in enumerate(CUES.tens, start=2)}
SCALES = CUES.scales
PLAIN = 12  # number words up to here, standing alone, need no translation
_FIXED = [(tuple(text.split()), str(number)) for text, number in CUES.fixed_numbers.items()]
_FIRST = {*UNITS, *TENS, "dozen", "a", *(words[0] for words, _ in _FIXED)}
_UNTOLD = (None, "", 0)
DIGITS_ON = r"\d*(?:[.,]\d+)*"  # what may follow the first digit of a number, as a pattern
DIGITS = rf"\d{DIGITS_ON}"  # a number in digits
_NUMBER = re.compile(DIGITS)
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")


class _Sum(NamedTuple):
    """What number words come to. Behind a `unit` another one would begin a new number."""

    thousands: int = 0
    rest: int = 0
    unit: bool = False


def numbers_in(text: str) -> list[float]:
    """Every number written in digits; `1,200` and `1200` are the same, `%` amounts included."""
    found = []
    for match in _NUMBER.findall(text):
        try:
            found.append(float(_THOUSANDS.sub("", match).replace(",", ".")))
        except ValueError:
            found.extend(float(part) for part in re.findall(r"\d+", match))
    return found


def begins_number(word: str) -> bool:
    """Whether a number may begin with a word."""
    return word in _FIRST or word[:1].isdigit()


def read_number(words: Sequence[str]) -> tuple[int | None, str, int]:
    """The number that lower-case `words` begin with: its value where it is a whole one of less than
    seven digits, its digits, and how many words it takes; 0 for none.

    The digits are empty where it needs no translation: plain digits, single words up to twelve, a
    couple.
    """
    if not words or not begins_number(words[0]):
        return _UNTOLD
    if list(words[:2]) == ["a", "couple"]:
        of = list(words[2:3]) == ["of"]
        scale = next((SCALES[word] for word in words[2 + of : 3 + of] if word in SCALES), 0)
        return (2 * scale, str(2 * scale), 3 + of) if scale else (2, "", 2)
    digits, used = _in_digits(words) if words[0][0].isdigit() else _in_words(words)
    if not used:
        return _UNTOLD
    value = digits or words[0].replace(",", "")
    value = str(UNITS.get(value, value))
    return int(value) if value.isdecimal() and len(value) < 7 else None, digits, used


def _in_digits(words: Sequence[str]) -> tuple[str, int]:
    first = words[0]
    plain = first.rstrip("k").replace(",", "")
    if plain == first:
        scaled = len(words) > 1 and words[1] in SCALES and first.isdigit()
        return _spoken(words) if scaled else ("", 1)
    try:
        value = float(plain) * (1000 if first.endswith("k") else 1)
    except ValueError:
        return "", 1
    return f"{value:g}" if value < 1e6 else "", 1


def _in_words(words: Sequence[str]) -> tuple[str, int]:
    for fixed, digits in _FIXED:
        if tuple(words[: len(fixed)]) == fixed:
            return digits, len(fixed)
    first, then = words[0], words[1] if len(words) > 1 else ""
    scaled = first == "a" and then in SCALES and then != "score"
    spoken = scaled or first in UNITS or first in TENS or first == "dozen"
    return _spoken(words) if spoken else ("", 0)


def _spoken(words: Sequence[str]) -> tuple[str, int]:
    found, used = _Sum(), 0
    for place, word in enumerate(words):
        if not (word == "a" and place == 0):
            following = words[place + 1] if place + 1 < len(words) else ""
            grown = _and(found, following) if word == "and" else _with(found, word, place)
            if grown is None:
                break
            found = grown
        if word not in {"a", "and"}:
            used = place + 1
    value = found.thousands + found.rest
    if not used or (used == 1 and value <= PLAIN and words[0] != "dozen"):
        return "", used
    return str(value), used


def _and(found: _Sum, following: str) -> _Sum | None:
    """The sum so far where the word behind an `and` goes on with it: a hundred and fifty."""
    return found if found.rest >= 100 and (following in UNITS or following in TENS) else None


def _with(found: _Sum, word: str, place: int) -> _Sum | None:
    """The sum with one more word; None where the word is no part of this number."""
    thousands, rest, unit = found
    if word in UNITS:
        return None if unit else _Sum(thousands, rest + UNITS[word], True)
    if word in TENS:
        if unit and place == 1 and 0 < rest < 10:  # two fifty
            return _Sum(thousands, rest * 100 + TENS[word])
        return None if unit or rest % 100 else _Sum(thousands, rest + TENS[word])
    if word.isdigit() and place == 0:
        return _Sum(thousands, int(word), True)
    if word in SCALES and (place or word == "dozen"):
        scaled = max(1, rest) * SCALES[word]
        return _Sum(thousands + scaled) if SCALES[word] == 1000 else _Sum(thousands, scaled)
    return None


def amount_at(words: Sequence[str], at: int) -> tuple[float | None, int]:
    """The amount that stands at a place, with fractions, and how many words it takes; 0 for
    none."""
    said = words[at : at + 10]
    if not said:
        return None, 0
    if said[0][0].isdigit():
        return _amount_in_digits(said)
    if said[0] in SCALES and said[0] != "dozen":
        value, _, used = read_number(["a", *said])
        return (float(value), used - 1) if value is not None and used > 1 else (None, 0)
    value, _, used = read_number(said)
    return (None if value is None else float(value)), used


def _amount_in_digits(words: Sequence[str]) -> tuple[float | None, int]:
    try:
        value = float(_THOUSANDS.sub("", words[0]))
    except ValueError:
        return None, 1
    if len(words) > 1 and words[1] in {"k", "grand", "thousand", "hundred", "dozen"}:
        return value * {"hundred": 100, "dozen": 12}.get(words[1], 1000), 2
    return value, 1
