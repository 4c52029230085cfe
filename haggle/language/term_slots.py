"""Where a line says the terms of a review again: goods, numbers, money, the merchant's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from haggle.language.chosen import CUES, amount_at
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
    goes on into another sentence; `starts` are the places where sentences begin, `clauses` those
    where clauses do."""

    def __init__(
        self,
        words: Sequence[str],
        terms: Terms,
        starts: Collection[int] = frozenset(),
        clauses: Collection[int] = frozenset(),
    ) -> None:
        self._words, self._terms, self._starts = words, terms, starts
        self._clauses = clauses
        self._read: dict[int, list[Mention]] = {}
        self._amounts: dict[int, tuple[float | None, int]] = {}
        self.by_name = {
            "price": lambda at: self._price(at, lambda n: n == terms.price),
            "paid": lambda at: self._price(at, lambda n: n >= terms.price),
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
            value, used = self._amount(at)
            if used and value not in own:
                return at, min(len(self._words), at + used + 1)
            at += used or 1
        return None

    def strange_amount(
        self, accounted: Collection[int] = (), agreeing: Collection[int] | None = None
    ) -> bool:
        """Whether numbers say what was not reviewed: a good in another number, or counted twice, or
        an amount that is no tip, because the price is not named beside it, or is small against it.
        Numbers at `accounted` places belong to fixed phrases. Where only some places are
        `agreeing`, the rest may speak of `a lantern` and of `forty years`."""
        told = [
            m
            for m in self.mentions
            if agreeing is None or m.start in agreeing or self._is_numbered(m)
        ]
        counted = [mention.key for mention in told if mention.counted]
        if len(counted) > len(set(counted)) or not all(m.fits for m in told):
            return True
        inside = {place for m in self.mentions for place in range(m.start, m.end)}
        price, named, tips = self._terms.price, False, []
        at = 0
        while at < len(self._words):
            value, used = self._amount(at)
            total, end = self._parts(at)
            if end > at and total >= price:
                named, at = True, end
                continue
            idle = agreeing is not None and self._counts_another(at, value, at + used)
            if used and at not in inside and at not in accounted and not idle:
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

    def _counts_another(self, start: int, value: float | None, at: int) -> bool:
        """Whether the word at a place, behind the number from `start` in the same clause, is what
        the number counts, and neither money nor a good: `forty years ago`; `one` may have any word
        behind it. Where a clause says no more than that, or what is paid, it may mean the order."""
        ends = {*self._clauses, len(self._words)}
        led = self._words[start - 1] in CUES.offering if start else False
        if at in ends or led or (start in {0, *self._clauses} and at + 1 in ends):
            return False
        word = self._words[at]
        own = word in self._terms.money_words | self._terms.goods_words | CUES.currencies
        single = value == 1 and word.isalpha() and word not in CUES.leading_on
        return not own and (single or self._of_things(at))

    def _is_numbered(self, mention: Mention) -> bool:
        """Whether a good stands with a number of its own: not `a lantern`, where there are two."""
        article = self._words[mention.start] in {"a", "an"}
        only = not CUES.only.isdisjoint(self._words)
        return mention.counted and (mention.fits or only or not article)

    def _count(self, at: int) -> list[int]:
        """A number of all there is; one that stands before a good's name counts only that."""
        kinds = len(self._terms.goods)
        if at < len(self._words) and self._words[at] == "both":
            end, fits = at + 1, 2 in {*self._terms.counts, kinds}
        else:
            value, used = self._amount(at)
            end = at + used
            lead = self._words[at - 1] if at > 0 else ""
            thing = singular(self._words[end]) if end < len(self._words) else ""
            every = lead == "all" or (lead == "the" and thing in CUES.pieces)
            fits = used > 0 and (value in self._terms.counts or (every and value == kinds))
        return [end] if fits and not self._names(end) else []

    def _price(self, at: int, fits: Callable[[float], bool]) -> list[int]:
        """An amount, or amounts that come to it: `a fifty and a ten`."""
        total, end = self._parts(at + (self._words[at : at + 1] == ["a"]))
        return [*self._money(at, fits), *([end] if total and fits(total) else [])]

    def _money(self, at: int, fits: Callable[[float], bool]) -> list[int]:
        """An amount with or without its currency, in front or behind."""
        sign = at < len(self._words) and self._words[at] in self._terms.signs
        value, used = self._amount(at + sign)
        if not used or value is None or not fits(value):
            return []
        end = at + sign + used
        return [*range(end, self._behind_coins(end) + 1)]

    def _behind_coins(self, at: int) -> int:
        """The place behind the words for the currency that begin at a place."""
        named = self._terms.money_words | {self._terms.currency[:1].casefold()}
        end = at
        while end < len(self._words) and end not in self._starts:
            if self._words[end] not in (named | {"piece", "pieces"} if end > at else named):
                break
            end += 1
        return end

    def _amount(self, at: int) -> tuple[float | None, int]:
        """The amount at a place, and its words."""
        if at not in self._amounts:
            self._amounts[at] = self._read_amount(at)
        return self._amounts[at]

    def _read_amount(self, at: int) -> tuple[float | None, int]:
        """The amount at a place, and its words; also the price as it may be spoken: `one eighteen`,
        `two oh two`, `1.450`."""
        words, price = self._words, self._terms.price
        value, used = amount_at(words, at)
        if not used or value is None:
            return value, used
        digits = words[at].replace(".", "")
        if words[at][0].isdigit():
            grouped = words[at][-4:-3] == "." and value * 1000 == price and digits.isdecimal()
            return (price, used) if grouped else (value, used)
        oh = words[at + used : at + used + 1] == ["oh"]
        more, length = amount_at(words, at + used + oh)
        if length and more is not None and (more < 10 if oh else 10 <= more < 100):
            spoken = value * 100 + more
            if value < 100 and price in (spoken, spoken / 100) and at + used not in self._starts:
                return price, used + oh + length
        return value, used

    def _parts(self, at: int) -> tuple[float, int]:
        """What amounts in a row come to (`50, 50 and 18 more`), none of them the price, and the
        place behind them; 0 for no row."""
        words, total, parts, joined, place, end = self._words, 0.0, 0, False, at, at
        while place < len(words) and not (parts and place in self._starts):
            value, used = self._amount(place)
            if value is None or not 0 < value < self._terms.price:
                break
            place += used
            note = CUES.notes.get(words[place], 0) if place < len(words) else 0
            place = place + 1 if note else self._behind_coins(place)
            place += parts > 0 and words[place : place + 1] == ["more"]
            total, parts, end, last = total + value * (note or 1), parts + 1, place, joined
            joined = False
            while place < len(words) and words[place] in CUES.beside:
                joined = joined or words[place] in CUES.adding
                place += 1
        return (total, end) if parts > 1 and last else (0, at)

    def _goods_at(self, at: int) -> list[Mention]:
        """The goods that may be meant at a place, with the number before or behind the name."""
        if at not in self._read:
            before = {pairs: self._number_before(at, pairs) for pairs in (False, True)}
            found = []
            for good in self._terms.goods:
                number, place = before[good.in_pairs]
                end = self._name_of(good, place) if place >= 0 else None
                if end and not (place == at and self._is_verb(at, end)):
                    found.append(self._mention(good, at, end, number))
            self._read[at] = found
        return self._read[at]

    def _is_verb(self, at: int, end: int) -> bool:
        """Whether a word of a name is what is to be done: `pack` them, `box` 2 sleds."""
        words = self._words
        bare = end == at + 1 < len(words) and end not in self._starts
        if not bare or words[at] not in CUES.packs | CUES.handling:
            return False
        what = CUES.objects | CUES.articles | CUES.counting.keys()
        return words[end] in what or amount_at(words, end)[1] > 0 or self._names(end)

    def _names(self, at: int) -> bool:
        """Whether a good's name begins at a place."""
        return any(self._name_of(good, at) for good in self._terms.goods)

    def _number_before(self, at: int, pairs: bool) -> tuple[float | None, int]:
        """The number before a name (`all of the four`, `a pair of`), and where the name begins;
        -1 where two numbers stand there. `pairs`: a pair is one piece."""
        words, place = self._words, at
        number: float | None = None
        while place < len(words) and not (place > at and place in self._starts):
            value, used = self._amount(place)
            word, then = words[place], words[place + 1 : place + 2]
            if pairs and word in {"pair", "pairs"} and then == ["of"]:
                number = 1 if number is None and word == "pair" else number
                place += 1
            elif word == "a" and then == ["pair"]:
                place += 1
            elif used or word in CUES.counting:
                if number is not None:
                    return None, -1
                number = value if used else CUES.counting[word]
                place += used or 1
            elif word in CUES.articles | CUES.amounts:
                place += 1
            else:
                break
        return number, place

    def _mention(self, good: Good, start: int, end: int, before: float | None) -> Mention:
        words, number = self._words, before
        times = end < len(words) and words[end] in CUES.amounts
        value, used = amount_at(words, end + times) if end not in self._starts else (None, 0)
        own = times or (value == good.quantity and not self._counts_next(end + used))
        if used and before in (None, value) and own:
            number, end = value, end + times + used
        fits = number == good.quantity
        if number is None:
            last = good.names[-1].casefold().split()[-1]
            measure = CUES.packs | CUES.holding | good.words
            of = (w for w, then in pairwise(words[start:end]) if then == "of")
            said = next((w for w in of if singular(w) in measure), words[end - 1])
            several = said != singular(said) or said == last  # not `the blanket`, of three
            uncounted = said in good.contents | CUES.mass or "all" in words[start:end]
            fits = several or uncounted
            if good.quantity == 1:  # not `the horses`, of one horse
                fits = said == singular(said) or said in re.findall(
                    r"\w+", good.names[0].casefold()
                )
        return Mention(start, end, good.key, number is not None, fits)

    def _counts_next(self, at: int) -> bool:
        """Whether the number before a place is of the good named there: no number stands behind."""
        ends = [self._name_of(good, at) or 0 for good in self._terms.goods]
        return max(ends) > 0 and not self._amount(max(ends))[1]

    def _name_of(self, good: Good, at: int) -> int | None:
        """Where a name of a good that begins at a place ends."""
        end = None
        for place in range(at, min(len(self._words), at + MAX_NAME)):
            word = singular(self._words[place])
            if place > at and place in self._starts:
                break
            if word in good.words:
                end = place + 1
            elif not (self._is_pack(place, good) or (word in {"of", "the"} and place > at)):
                break
        return end

    def _is_pack(self, at: int, good: Good) -> bool:
        """Whether a word is a measure that a good may come in, and not the name of another good in
        a list: two bags of flour, no two crates of lamps."""
        word = singular(self._words[at])
        other = word in self._terms.goods_words and self._words[at + 1 : at + 2] != ["of"]
        own = good.words & CUES.packs or any(word in CUES.mass for word in good.words)
        return word in CUES.packs and not other and bool(own or word in CUES.pieces)

    def _name(self, at: int) -> list[int]:
        end = at
        while end < len(self._words) and self._words[end] in self._terms.name_words:
            end += 1
        return [end] if end > at else []
