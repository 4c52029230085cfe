"""Where a line says the terms of a review again: goods, numbers, money, the merchant's name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from haggle.language.english.cues import CUES
from haggle.language.english.numbers import amount_at
from haggle.language.terms import Good, Terms, singular

MAX_NAME = 6  # words of a good's name as it may be said


@dataclass(frozen=True, slots=True)
class Mention:
    """A reviewed good named at a place. `counted`: with a number; `fits`: with its own one."""

    start: int
    end: int
    key: str
    counted: bool
    fits: bool


class TermSlots:
    """The slots of a grammar that the terms of a review fill, in one line of words. No mention
    goes on into another sentence; `starts` are the places where sentences begin."""

    def __init__(
        self, words: Sequence[str], terms: Terms, starts: Collection[int] = frozenset()
    ) -> None:
        self._words, self._terms, self._starts = words, terms, starts
        self._read: dict[int, list[Mention]] = {}
        self.by_name = {
            "price": lambda at: self._money(at, lambda n: n == terms.price),
            "paid": lambda at: self._money(at, lambda n: n >= terms.price),
            "any": lambda at: self._money(at, lambda n: 0 < n < terms.price),
            "goods": self.goods,
            "count": self._count,
            "name": self._name,
        }

    def goods(self, at: int) -> list[int]:
        """Where reviewed goods in their number that begin at a place end."""
        return [mention.end for mention in self._goods_at(at) if mention.fits]

    @cached_property
    def mentions(self) -> list[Mention]:
        """Goods named, from the left, the longest first."""
        found: list[Mention] = []
        at = 0
        while at < len(self._words):
            here = self._goods_at(at)
            if here:
                found.append(max(here, key=lambda m: (m.fits, m.end)))
            at = found[-1].end if here else at + 1
        return found

    def strange_number(self) -> tuple[int, int] | None:
        """Where a number stands that is none of the terms, with the word behind it."""
        own = {self._terms.price, *self._terms.counts}
        own |= {float(good.quantity) for good in self._terms.goods}
        at = 0
        while at < len(self._words):
            value, used = amount_at(self._words, at)
            if used and value not in own:
                return at, min(len(self._words), at + used + 1)
            at += used or 1
        return None

    def strange_amount(self, accounted: Collection[int] = ()) -> bool:
        """Whether numbers say what was not reviewed: a good in another number, or counted twice, or
        an amount that is no tip, because the price is not named beside it, or is small against it.
        Numbers at `accounted` places belong to fixed phrases."""
        counted = [mention.key for mention in self.mentions if mention.counted]
        if len(counted) > len(set(counted)) or not all(m.fits for m in self.mentions):
            return True
        inside = {place for m in self.mentions for place in range(m.start, m.end)}
        price, named, tips = self._terms.price, False, []
        at = 0
        while at < len(self._words):
            value, used = amount_at(self._words, at)
            if used and at not in inside and at not in accounted:
                if value is None or self._of_things(at + used):
                    return True
                named = named or value >= price
                if value < price and not self._count(at):
                    tips.append(value)
            at += used or 1
        tipped = named or bool({"keep", "pocket"} & set(self._words))
        most = price / (2 if named else 4)
        return any(not tipped or tip > most for tip in tips)

    def _of_things(self, at: int) -> bool:
        """Whether the word at a place, behind a number, makes it one of other things: `shells`."""
        word = self._words[at] if at < len(self._words) else ""
        plural = word.endswith("s") and len(word) > 3 and word not in CUES.no_plurals
        return plural and word not in self._terms.money_words | self._terms.goods_words

    def _count(self, at: int) -> list[int]:
        """A number of all there is; one that stands before a good's name counts only that."""
        kinds = len(self._terms.goods)
        if at < len(self._words) and self._words[at] == "both":
            end, fits = at + 1, 2 in {*self._terms.counts, kinds}
        else:
            value, used = amount_at(self._words, at)
            all_kinds = value == kinds and at > 0 and self._words[at - 1] == "all"
            end, fits = at + used, used > 0 and (value in self._terms.counts or all_kinds)
        before_goods = any(self._name_of(good, end) for good in self._terms.goods)
        return [end] if fits and not before_goods else []

    def _money(self, at: int, fits: Callable[[float], bool]) -> list[int]:
        """An amount with or without its currency, in front or behind."""
        words, currency = self._words, self._terms.currency
        sign = at < len(words) and words[at] in "$£€¥" and words[at] in currency
        value, used = amount_at(words, at + sign)
        if not used or value is None or not fits(value):
            return []
        end = at + sign + used
        coin = words[end : end + 1]
        named = coin and coin[0] in self._terms.money_words | {currency[:1].casefold()}
        return [end, end + 1] if named else [end]

    def _goods_at(self, at: int) -> list[Mention]:
        """The goods that may be meant at a place, with the number before or behind the name."""
        if at not in self._read:
            number, place = self._number_before(at)
            ends = {good: self._name_of(good, place) for good in self._terms.goods if place >= 0}
            self._read[at] = [
                self._mention(good, at, end, number) for good, end in ends.items() if end
            ]
        return self._read[at]

    def _number_before(self, at: int) -> tuple[float | None, int]:
        """The number before a name (`all of the four`, `a pair of`), and where the name begins;
        -1 where two numbers stand there."""
        words, place = self._words, at
        number: float | None = None
        while place < len(words) and not (place > at and place in self._starts):
            value, used = amount_at(words, place)
            if used or words[place] in CUES.counting:
                if number is not None:
                    return None, -1
                number = value if used else CUES.counting[words[place]]
                place += used or 1
            elif words[place] in CUES.articles | CUES.amounts:
                place += 1
            else:
                break
        return number, place

    def _mention(self, good: Good, start: int, end: int, before: float | None) -> Mention:
        words, number = self._words, before
        times = end < len(words) and words[end] in CUES.amounts
        value, used = amount_at(words, end + times) if end not in self._starts else (None, 0)
        if used and before in (None, value) and (times or value == good.quantity):
            number, end = value, end + times + used
        fits = number == good.quantity
        if number is None:
            last = good.names[-1].casefold().split()[-1]
            said = words[end - 1]
            several = said != singular(said) or said == last  # not `the blanket`, of three
            fits = good.quantity == 1 or several
        return Mention(start, end, good.key, number is not None, fits)

    def _name_of(self, good: Good, at: int) -> int | None:
        """Where a name of a good that begins at a place ends."""
        end = None
        for place in range(at, min(len(self._words), at + MAX_NAME)):
            word = singular(self._words[place])
            if place > at and place in self._starts:
                break
            if word in good.words:
                end = place + 1
            elif not (word in CUES.packs or (word in {"of", "the"} and place > at)):
                break
        return end

    def _name(self, at: int) -> list[int]:
        end = at
        while end < len(self._words) and self._words[end] in self._terms.name_words:
            end += 1
        return [end] if end > at else []
