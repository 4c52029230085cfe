"""Numbers that count nothing: `minus three axes`, `0.5 of a rope`, `axe x -4`, `infinite maps`.

A small model reads the digits and forgets the sign. Code sees both, and marks the name.
"""

from __future__ import annotations

import re

from haggle.numerals import SCALES, TENS, UNITS

_NUMBER = rf"(?:\d+(?:[.,]\d+)?|(?:a\s+)?(?:{'|'.join((*UNITS, *TENS, *SCALES))}))"
_MINUS = (
    rf"(?:(?<![\w)])[-\u2212]\d+(?:[.,]\d+)?|(?:minus|negative)\s+{_NUMBER}(?:[\s-]{_NUMBER})*)"
)
_ENDLESS = (
    r"(?:infinite(?:ly many)?|infinity|endless(?:ly many)?|unlimited|countless|nan|null|undefined)"
)
_PARTS = (
    r"(?:half|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?"
    r"|hundredths?|thousandths?)"
)
_POINTED = rf"(?:(?<![\w.,])\d*\.\d+|(?:nought|{_NUMBER})\s+point\s+{_NUMBER}|(?<![\w.,-])0|zero)"
_OF = r"(?:\s+(?:of|the|your|those|these|that|single|units?|pieces?))*"
_PART_OF_ONE = rf"{_PARTS}\s+of\s+(?:an?|one)(?:\s+of)?(?:\s+(?:the|your|those|these|single))*"
_BEFORE = re.compile(
    rf"(?:^|.*[\s(,;:])(?:(?:{_MINUS}|{_ENDLESS}|{_POINTED}){_OF}|{_PART_OF_ONE})\s*\(?$", re.DOTALL
)
_BEHIND = re.compile(
    r"\s*(?:x\s|[(:=]|[,:]?\s*\(?(?:quantity|count|number|amount)(?:\s+of)?\s*[:=]?)?\s*"
    rf"(?:(?<!\w)[-\u2212]\d++(?:\.\d++)?|(?:minus|negative)\s+{_NUMBER}\b|{_ENDLESS}\b"
    r"|(?<=[x:=(] )0(?![\w.,])|(?<=[x:=(] )\d*+\.\d++)(?!\s*(?:%|percent|per\b))"
)
NEAR = 48  # characters before a name that may hold its number


def counts_nothing(before: str, behind: str) -> bool:
    """Whether the text right before a name or right behind it gives it a number of pieces that
    nobody can have: less than none, a part of one, none or without end."""
    before, behind = before[-NEAR:].casefold(), behind[:NEAR].casefold()
    return _BEFORE.match(before) is not None or _BEHIND.match(behind) is not None
