"""What else people call a thing: `torch` for a flashlight, `loo roll` for toilet paper.

`synonyms.txt` has a head a line, the noun that a ware's name ends in, and behind a colon the names
of which whoever asks for one is served rightly with the ware: true synonyms, regional and slang
words, broader words; never siblings (a bow is no crossbow).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

MAX_WORDS = 3  # of a head or a name
_FILE = Path(__file__).with_name("synonyms.txt")


@cache
def other_names() -> dict[str, frozenset[str]]:
    """Names by head; all in the singular, words parted by one space."""
    found: dict[str, frozenset[str]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        head, colon, names = line.partition(":")
        if colon and not line.startswith("#"):
            found[head.strip()] = frozenset(name.strip() for name in names.split(","))
    return found
