"""How players name items and numbers: full, plural, partial, nickname; digits, words, `x3`.

A name is only used where nothing else could be meant by it: in the whole shop, or, for what lies in
the cart or was just shown, among those.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from data_gen.bank import last_word
from data_gen.bank import words as words_of
from data_gen.worlds import Shop
from haggle.language.english.line import plural_name
from haggle.language.english.numbers import TENS, UNITS
from haggle.trade.lines import listed

_ONES = list(UNITS)
_TENS = ["zero", "ten", *TENS]
ORDINALS = ("first", "second", "third", "fourth", "fifth")
NICKNAME, PARTIAL = 0.25, 0.2


def number_word(number: int) -> str:
    """A whole number from 0 to 999 in words."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        ten, one = divmod(number, 10)
        return _TENS[ten] + (f"-{_ONES[one]}" if one else "")
    hundred, rest = divmod(number, 100)
    return f"{_ONES[hundred]} hundred" + (f" and {number_word(rest)}" if rest else "")


def quantity_word(number: int, rng: random.Random, words: float = 0.4, *, of: bool = True) -> str:
    """A quantity as typed: `3`, `three`, now and then `a couple of`, `a pair of`, `a dozen`.

    `of` says whether a name follows at once; without one it is `a couple`, `a pair`.
    """
    roll = rng.random()
    if number == 2 and roll < 0.2:
        text = rng.choice(("a couple of", "a couple of", "a pair of", "a brace of"))
        return text if of else text.removesuffix(" of")
    if number == 6 and roll < 0.25:
        return rng.choice(("half a dozen", "half-a-dozen", "a half dozen"))
    if number == 12 and roll < 0.5:
        return rng.choice(("a dozen", "one dozen"))
    if number == 24 and roll < 0.3:
        return "two dozen"
    if number == 20 and roll < 0.15:
        return "a score of" if of else "a score"
    if number < 1000 and rng.random() < words * (1 if number < 13 else 0.5):
        return number_word(number)
    return str(number)


class Names:
    """The names of one shop's items as players may use them."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self._bags = {
            item.item_name: [
                words_of(item.item_name),
                words_of(shop.heads.get(item.item_name, item.item_name)),
                *map(words_of, shop.nicknames.get(item.item_name, ())),
            ]
            for item in shop.world.items
        }
        self._aliases: dict[tuple[str, frozenset[str] | None], tuple[list[str], list[str]]] = {}

    def _meant(self, alias: str, name: str, among: Iterable[str]) -> bool:
        """Whether `alias` can mean no item of `among` but `name`."""
        words = words_of(alias)
        return not any(
            words <= bag for other in among if other != name for bag in self._bags[other]
        )

    def aliases(
        self, name: str, among: frozenset[str] | None = None
    ) -> tuple[list[str], list[str]]:
        """(nicknames, partial names) that can only mean `name`, all in the singular."""
        key = (name, among)
        found = self._aliases.get(key)
        if found is None:
            others = self._bags if among is None else [n for n in among if n in self._bags]
            nicknames = [
                a for a in self.shop.nicknames.get(name, ()) if self._meant(a, name, others)
            ]
            partial = [a for a in self._partial(name) if self._meant(a, name, others)]
            first, *rest = name.split(" (")[0].split()
            clip = first[:4].rstrip("aeiou")
            if (
                len(first) > 6
                and rest
                and not any(other.startswith(clip) for other in others if other != name)
            ):
                partial.append(" ".join((clip, *rest)))
            found = self._aliases[key] = (nicknames, partial)
        return found

    def _partial(self, name: str) -> list[str]:
        """Shorter forms of a name: its head, its ends, without the bracket, a clipped word."""
        plain = name.split(" (")[0]
        words = plain.split()
        forms = {plain, self.shop.heads.get(name, words[-1])}
        if len(words) > 1:
            forms |= {words[-1], " ".join(words[1:]), f"{words[0]} {words[-1]}"}
            if len(words[0]) > 4:
                forms.add(words[0])
        forms.discard(name)
        return sorted(forms)

    def ambiguous(self, names: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Words that exactly two of `names` share as their last, with those two."""
        by_head: dict[str, list[str]] = {}
        for name in names:
            by_head.setdefault(last_word(name), []).append(name)
        return [
            (head, pair)
            for head, pair in by_head.items()
            if len(pair) == 2
            and sum(any(words_of(head) <= bag for bag in bags) for bags in self._bags.values()) == 2
        ]

    def say(
        self,
        name: str,
        plural: bool,
        rng: random.Random,
        among: frozenset[str] | None = None,
    ) -> str:
        """One item as a player names it, without article or number."""
        roll = rng.random()
        text = name
        if roll < NICKNAME + PARTIAL:
            nicknames, partial = self.aliases(name, among)
            pool = nicknames if roll < NICKNAME else partial
            if pool:
                text = rng.choice(pool)
        if plural:
            item = self.shop.world.find(name)
            text = item.plural if text == name and item and item.plural else plural_name(text)
        return text.casefold() if rng.random() < 0.7 else text

    def counted(
        self,
        name: str,
        number: int,
        rng: random.Random,
        words: float = 0.4,
        among: frozenset[str] | None = None,
    ) -> str:
        """One item with its number: `2 sharp axes`, `a rope`, `sharp axe x2`."""
        if number == 1:
            return single(self.say(name, False, rng, among), rng)
        roll = rng.random()
        if roll < 0.12:
            mark = rng.choice(("x{}", "x{}", "x {}", "({})", "- {}", ": {}"))
            return f"{self.say(name, False, rng, among)} {mark.format(number)}"
        text = self.say(name, rng.random() < 0.93, rng, among)
        if roll < 0.2:
            return f"{number}x {text}" if rng.random() < 0.7 else f"{number} x {text}"
        return f"{quantity_word(number, rng, words)} {text}"


def single(text: str, rng: random.Random) -> str:
    """A single item with an article or the number one."""
    article = "an" if text[:1].casefold() in "aeiou" else "a"
    lead = rng.choice((article, article, article, "1", "one", "the", "your", "that", ""))
    return f"{lead} {text}".strip()


def join(parts: Sequence[str], rng: random.Random) -> str:
    """Several items as one list: `2 axes, a map and 3 ropes`, with `+`, commas, slashes, `n`."""
    parts = list(parts)
    if len(parts) < 2:
        return "".join(parts)
    roll = rng.random()
    if roll < 0.55:
        return listed(parts)
    if roll < 0.67:
        return ", ".join(parts)
    if roll < 0.75:
        return rng.choice((" + ", " / ", "; ", " & ")).join(parts)
    link = rng.choice((" and ", " plus ", " n ", ", and also ", " as well as ", " along with "))
    if roll < 0.85:
        return " and ".join(parts)
    return ", ".join(parts[:-1]) + link + parts[-1]
