"""What else people call a thing: `torch` for a flashlight, `loo roll` for toilet paper.

`synonyms.txt` has a head a line, the noun that a thing's name ends in, and behind a colon the names
of which whoever asks for one is served rightly with the thing: true synonyms, regional and slang
words, broader words; never siblings (a bow is no crossbow). Words stand there as people write them.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from haggle.language.english.cues import CUES
from haggle.language.english.line import TOKEN, singular

MAX_WORDS = 3  # of a head or a name
FILE = Path(__file__).with_name("synonyms.txt")


@lru_cache(maxsize=65536)
def nicknames(name: str) -> frozenset[str]:
    """What else a thing of this name is called, in the singular, by the noun that the name ends in,
    or has before `of`."""
    first, _, content = name.split(" (")[0].casefold().partition(" of ")
    is_measure = content and singular(first.split()[-1]) in CUES.measures
    found: set[str] = set()
    for part in (first, content) if is_measure else (first,):
        words = [singular(match[0]) for match in TOKEN.finditer(part) if match[0] != "s"]
        for length in range(1, MAX_WORDS + 1):
            found.update(map(singulars, other_names().get(" ".join(words[-length:]), ())))
    return frozenset(found)


@cache
def other_names() -> dict[str, tuple[str, ...]]:
    """Names as people write them by head in the singular."""
    found: dict[str, tuple[str, ...]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        head, colon, names = line.partition(": ")
        if colon and not line.startswith("#"):
            found[singulars(head)] = tuple(names.split(", "))
    return found


@cache
def words() -> frozenset[str]:
    """All words of the file, in the singular: what is in it is hardly another word mistyped."""
    text = FILE.read_text(encoding="utf-8").casefold()
    return frozenset(singular(match[0]) for match in TOKEN.finditer(text))


@lru_cache(maxsize=65536)
def singulars(text: str) -> str:
    """Words with each in the singular, parted by one space."""
    return " ".join(map(singular, text.split()))
