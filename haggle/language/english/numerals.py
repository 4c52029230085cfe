"""Number words, and numbers as people type them: `two dozen`, `two fifty`, `1.5k`."""

from __future__ import annotations

from collections.abc import Sequence

UNITS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen".split()
    )
}
TENS = {
    word: 10 * number
    for number, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2
    )
}
SCALES = {"hundred": 100, "thousand": 1000, "grand": 1000, "dozen": 12, "score": 20}
_FIXED = [
    (("half", "a", "dozen"), "6"),
    (("a", "half", "dozen"), "6"),
    (("half", "dozen"), "6"),
    (("a", "dozen", "and", "a", "half"), "18"),
    (("dozen", "and", "a", "half"), "18"),
    (("one", "and", "a", "half", "dozen"), "18"),
    (("a", "baker", "s", "dozen"), "13"),
    (("baker", "s", "dozen"), "13"),
]
PLAIN = 12  # number words up to here, standing alone, need no translation


def read_number(words: Sequence[str]) -> tuple[int | None, str, int]:
    """The number that lower-case `words` begin with: its value where it is a whole one of less than
    seven digits, how it is told, and how many words it takes; 0 for none.

    It is told in digits, or as an empty text where it needs no telling: plain digits, single words
    up to twelve, a couple.
    """
    if list(words[:2]) == ["a", "couple"]:
        of = list(words[2:3]) == ["of"]
        scale = next((SCALES[word] for word in words[2 + of : 3 + of] if word in SCALES), 0)
        return (2 * scale, str(2 * scale), 3 + of) if scale else (2, "", 2)
    told, used = _told(words)
    if not used:
        return None, "", 0
    value = told or words[0].replace(",", "")
    value = str(UNITS.get(value, value))
    return int(value) if value.isdecimal() and len(value) < 7 else None, told, used


def _told(words: Sequence[str]) -> tuple[str, int]:
    """A number as it is told, and how many words it takes."""
    first = words[0]
    if first[0].isdigit():
        plain = first.rstrip("k").replace(",", "")
        if plain == first:
            scaled = len(words) > 1 and words[1] in SCALES and first.isdigit()
            return _spoken(words) if scaled else ("", 1)
        try:
            value = float(plain) * (1000 if first.endswith("k") else 1)
        except ValueError:
            return "", 1
        return f"{value:g}" if value < 1e6 else "", 1
    for spoken, told in _FIXED:
        if tuple(words[: len(spoken)]) == spoken:
            return told, len(spoken)
    if first == "a" and len(words) > 1 and words[1] in SCALES and words[1] != "score":
        return _spoken(words)
    return _spoken(words) if first in UNITS or first in TENS or first == "dozen" else ("", 0)


def _spoken(words: Sequence[str]) -> tuple[str, int]:
    """The same for number words."""
    total = current = 0
    used = 0
    small = False  # a unit was just said: another one would begin a new number
    for position, word in enumerate(words):
        if word in UNITS:
            if small:
                break
            current += UNITS[word]
            small = True
        elif word in TENS:
            if small and position == 1 and 0 < current < 10:  # two fifty
                current *= 100
            elif small or current % 100:
                break
            current += TENS[word]
            small = False
        elif word.isdigit() and position == 0:
            current, small = int(word), True
        elif word in SCALES and (position or word == "dozen"):
            current = max(1, current) * SCALES[word]
            if SCALES[word] == 1000:
                total, current = total + current, 0
            small = False
        elif not (word == "a" and position == 0) and not (
            word == "and" and current >= 100 and _counts(words[position + 1 : position + 2])
        ):
            break
        if word not in {"a", "and"}:
            used = position + 1
    value = total + current
    if not used or (used == 1 and value <= PLAIN and words[0] != "dozen"):
        return "", used
    return str(value), used


def _counts(words: Sequence[str]) -> bool:
    return any(word in UNITS or word in TENS for word in words)
