"""Numbers that count nothing: `minus three axes`, `0.5 of a rope`, `axe x -4`, `infinite maps`.

A small model reads the digits and forgets the sign. Code sees both, and marks the name. It errs on
the side of silence: what may be a hyphen, a price or a remark is left alone.
"""

from __future__ import annotations

import re

from haggle.language.english.cues import CUES

NEAR = 48  # characters before or behind that are looked at
_WISH, _PARTS, _PAYING, _OWNING = map("|".join, (CUES.wish, CUES.parts, CUES.paying, CUES.owning))
_DASH = "[-\u2212]"
_SIGNED = re.compile(
    rf"(?:^\s*|[,;.!?]\s*|\b(?:{_WISH})\s+)"
    rf"(?:(?P<dash>{_DASH})|(?:minus|negative)\s+(?:an?\s+)?)$",
    re.IGNORECASE,
)
_BULLET = re.compile(rf"(?:^|\s){_DASH}\d")
_OWNED = re.compile(rf"\b(?:{_OWNING})\s+$", re.IGNORECASE)
_PART = re.compile(r"\d?\.(?!0+$)\d+")
_PART_OF = re.compile(rf"\b(?:{_PARTS})\s+of\s+$", re.IGNORECASE)
_ENDLESS = (
    r"(?i:infinite(?:ly many)?|infinity|endless(?:ly many)?|unlimited|countless)|NaN|(?i:undefined)"
)
_POINTED = r"(?:\s+(?i:of|the|your|those|these|that|single|units?|pieces?))*"
_BEFORE = re.compile(
    rf"(?:^|.*[\s(,;:])(?P<number>(?:{_ENDLESS}){_POINTED}"
    rf"|(?i:{_PARTS})\s+(?i:of)\s+(?i:an?|one){_POINTED})\s*$",
    re.DOTALL,
)
_BEHIND = re.compile(
    r"\s*(?:(?:\s(?i:x)\s|\s\(|[:=]|[,:]?\s*\(?(?i:quantity|count|number|amount)(?i:\s+of)?\s*[:=]?"
    rf")\s*(?P<number>{_DASH}\d++|(?i:minus|negative)\s+\w+|{_ENDLESS}|(?i:null)|0?\.\d++|0)"
    rf"|\s(?P<bare>{_DASH}\d++))\s*(?=[.,;:!?)]|$)"
)
_BELOW_NOTHING = re.compile(
    rf"(?:^\s*|\b(?:{_PAYING})\s+)"
    rf"(?:{_DASH}\s?|(?:minus|negative)\s+)\d+(?![\d%]|\s*(?:%|percent|off\b))",
    re.IGNORECASE,
)


def bids_below_nothing(text: str) -> bool:
    """Whether a line bids less than nothing: `I pay -20`, `how about minus 5 gold`."""
    return _BELOW_NOTHING.search(text) is not None


def is_no_count(text: str, start: int, end: int) -> bool:
    """Whether the number at `start` to `end`, which stands with a name, is none that one can buy:
    with a sign before it, nought, or a part of one."""
    said, before = text[start:end], text[:start]
    signed = _SIGNED.search(before[-NEAR:])
    if signed is not None:
        return not (signed["dash"] and len(_BULLET.findall(text)) > 1)
    if said.casefold() in {"0", "zero"} or _PART.fullmatch(said):
        return _OWNED.search(before[-NEAR:]) is None
    if said.casefold() in {"1", "one"} and (part := _PART_OF.search(before[-NEAR:])) is not None:
        return _OWNED.search(before[-NEAR:][: part.start()]) is None
    if before.endswith("."):  # .5: the point is no part of the number
        return re.search(r"(?:^|\s)\.$", before) is not None and said.strip("0").isdecimal()
    return re.search(r"\bpoint\s+$", before[-NEAR:], re.IGNORECASE) is not None


def counts_nothing(before: str, behind: str) -> str:
    """What gives a name no number of pieces that one can have, in the text right before it or right
    behind it: without end, a part of one, less than none. Empty where nothing does."""
    before, behind = before[-NEAR:], behind[:NEAR]
    found = _BEFORE.match(before)
    if found is not None:
        owned = _OWNED.search(before[: found.start("number")])
        return "" if owned else found["number"]
    found = _BEHIND.match(behind)
    return (found["number"] or found["bare"]) if found is not None else ""


def is_of_name(number: str, name: str) -> bool:
    """Whether a number, in digits or words, belongs to a name: `0.5` to a 0.5 mm Drill Bit."""

    def parts(text: str) -> set[str]:
        return {
            part.lstrip("0")[:5] or "0" for part in re.findall(r"\d*\.?\d+|[a-z]+", text.casefold())
        }

    return bool(parts(number) & parts(name))
