"""A noise channel: what keyboards, haste and dictation do to a line. Its strength is configurable.

Digits are never touched, and a word loses or gains one letter at most, so the label stays true.
"""

from __future__ import annotations

import random
import re

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_NEAR = {
    key: "".join(
        other
        for r, other_row in enumerate(_ROWS)
        for c, other in enumerate(other_row)
        if abs(r - row) <= 1 and abs(c - column) <= 1 and other != key
    )
    for row, keys in enumerate(_ROWS)
    for column, key in enumerate(keys)
}
_WORD = re.compile(r"[A-Za-z][A-Za-z']*")
FILLERS = ("uh", "um", "like", "er", "hmm", "you know", "i mean", "well")
HEARD = {
    "their": "there", "there": "their", "your": "you're", "you're": "your", "its": "it's",
    "it's": "its", "then": "than", "than": "then", "whole": "hole", "buy": "by", "would": "wood",
    "some": "sum", "here": "hear", "right": "write", "piece": "peace",
    "sale": "sail", "i'll": "ill", "we'll": "well", "what's": "whats", "pair": "pear",
    "great": "grate", "weigh": "way",
}  # fmt: skip
MEANINGFUL = frozenset("no not nope nah yes yeah yep cant don't won't less more".split())
SHORTEST = 4


def typo(word: str, rng: random.Random) -> str:
    """One slip in a word: letters swapped, one dropped, doubled, or a neighbouring key."""
    if len(word) < SHORTEST:
        return word
    at = rng.randrange(1, len(word) - 1)
    kind = rng.random()
    if kind < 0.3:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    if kind < 0.6:
        return word[:at] + word[at + 1 :]
    if kind < 0.75:
        return word[:at] + word[at] + word[at:]
    near = _NEAR.get(word[at].casefold())
    return word[:at] + rng.choice(near) + word[at + 1 :] if near else word


def garble(text: str, strength: float, rng: random.Random) -> str:
    """`text` as typed with noise of that strength: 0 leaves it, 1 is about one slip in ten words.

    Typos, misheard words, a filler, lost apostrophes and punctuation, lost or doubled spaces.
    """
    if strength <= 0 or rng.random() > 0.35 + 0.3 * strength:
        return text
    rate = min(0.5, 0.08 * strength)

    def slip(match: re.Match[str]) -> str:
        word = match[0]
        if rng.random() >= rate or word.casefold() in MEANINGFUL:
            return word
        heard = HEARD.get(word.casefold())
        if heard and rng.random() < 0.5:
            return heard
        if "'" in word and rng.random() < 0.6:
            return word.replace("'", "")
        return typo(word, rng)

    text = _WORD.sub(slip, text)
    if rng.random() < 0.1 * strength:
        words = text.split(" ")
        words.insert(rng.randrange(len(words)), rng.choice(FILLERS))
        text = " ".join(words)
    if rng.random() < 0.15 * strength:
        text = re.sub(r"[,;](?= )", "", text)
    if rng.random() < 0.05 * strength:
        text = text.replace(" ", "  ", 1) if rng.random() < 0.5 else _joined_words(text, rng)
    if rng.random() < 0.05 * strength:
        text = text.upper() if rng.random() < 0.4 else text + rng.choice(("...", "!!", " :)", "??"))
    return text


def _joined_words(text: str, rng: random.Random) -> str:
    """One space lost, not beside a number."""
    places = [m.start() for m in re.finditer(r"(?<=[a-z]) (?=[a-z])", text)]
    if not places:
        return text
    at = rng.choice(places)
    return text[:at] + text[at + 1 :]
