"""What a line says, read back: which items, how many of each, which other numbers.

The reverse of `data_gen.language.mentions`, for judging lines that a model wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from data_gen.bank import load_bank, load_unsold
from data_gen.language.mentions import Names
from data_gen.worlds import Shop
from haggle.language.english.line import plural_name
from haggle.language.english.numbers import DIGITS, TENS, UNITS, numbers_in, read_number
from haggle.trade.wire import UNLISTED
from haggle.trade.world import name_words

_ONES = list(UNITS)[1:]


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_TO_99 = rf"(?:(?:{_any(TENS)})(?:[ -](?:{_any(_ONES[:9])}))?|{_any(_ONES)})"
_TO_999 = rf"(?:(?:{_TO_99}|a)[ -]hundred(?:(?: and)?[ -]{_TO_99})?|{_TO_99})"
_SPELLED = rf"(?:(?:{_TO_999}|a)[ -]thousand(?:(?: and)?[ -]{_TO_999})?|{_TO_999})"
_SETS = {"half a dozen": 6, "half-a-dozen": 6, "a half dozen": 6, "half dozen": 6}
_SIZES = {"dozen": 12, "score": 20, "couple": 2, "pair": 2, "brace": 2}
_NUMBER = re.compile(
    rf"(?P<digits>{DIGITS})(?P<k>k\b)?"
    rf"|\b(?:(?P<set>{_any(_SETS)})"
    rf"|(?:(?P<many>a|an|{_SPELLED}) )?(?P<size>{_any(_SIZES)})"
    rf"|(?P<spelled>{_SPELLED})"
    r"|(?P<soft>a|an|another|single))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_TEXT_WORD = re.compile(r"\w+(?:['’]\w+)*['’]?")
_BETWEEN = re.compile(r"\s*[x×]?\s*(?:[\w'’-]+\s+){0,3}", re.IGNORECASE)
_PARTING = frozenset(
    "for on per off from percent to at and or with in is are if as than but plus minus each apiece "
    "a an".split()
)  # a number before one of these does not count the item behind it
_BEHIND = re.compile(r"\s*[x×(:-]\s*[x×]?\s*(\d{1,6})(?![\d.,]*\d|\s*%)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text. `soft` ones may be no number at all: a, an, another, one."""

    value: float
    start: int
    end: int
    soft: bool = False


@dataclass(frozen=True, slots=True)
class Mention:
    """An item named in a text, and how many of it; None where no number goes with it.

    The name itself, in the `plural` or not, stands from `start` to `end`, with its number from
    `begin` to `stop`.
    """

    name: str
    start: int
    end: int
    begin: int
    stop: int
    quantity: float | None = None
    plural: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """Items in the order named, and the numbers that belong to none of them."""

    mentions: tuple[Mention, ...]
    numbers: tuple[Number, ...]

    @property
    def lines(self) -> dict[str, float]:
        """The largest quantity named with each item; one where none is."""
        found: dict[str, float] = {}
        for mention in self.mentions:
            found[mention.name] = max(found.get(mention.name, 1), mention.quantity or 1)
        return found

    @property
    def values(self) -> list[float]:
        """The values of the other numbers, those that may be none left out, sorted."""
        return sorted(number.value for number in self.numbers if not number.soft)


def numbers(text: str) -> list[Number]:
    """Every number in `text`: digits, words, `a couple`, `half a dozen`, `2k`."""
    return [_number(match) for match in _NUMBER.finditer(text)]


def _number(match: re.Match[str]) -> Number:
    start, end = match.span()
    if match["digits"]:
        value = numbers_in(match["digits"])[0] * (1000 if match["k"] else 1)
        return Number(value, start, end)
    if match["set"]:
        return Number(_SETS[match["set"].casefold()], start, end)
    if match["size"]:
        many = (match["many"] or "a").casefold()
        return Number(_SIZES[match["size"].casefold()] * _spelled(many), start, end)
    if match["soft"]:
        return Number(1, start, end, soft=True)
    value = _spelled(match["spelled"].casefold())
    return Number(value, start, end, soft=value == 1)


def _spelled(words: str) -> float:
    """The value of a number in words; an article is one."""
    said = re.sub(r"\ban?\b", "one", words).replace("-", " ").replace(" and ", " ")
    return float(read_number(said.split())[0] or 1)


def _key(form: str) -> str:
    """What spellings of a name have in common: its words, without apostrophes and brackets."""
    return " ".join(word[0] for word in _WORD.finditer(_bare(form)))


def _bare(text: str) -> str:
    return text.replace("'", "").replace("’", "").casefold()


@cache
def _unsold_forms() -> dict[str, str]:
    """Items that no shop sells, or that another shop of the bank does, by name and plural."""
    names = [(i.name, i.plural) for genre in load_bank().genres.values() for i in genre.items]
    names += [(item.name, item.plural) for item in load_unsold().items]
    return {_key(form): f"{UNLISTED}{pair[0].casefold()}" for pair in names for form in pair}


@cache
def _longest_unsold() -> dict[str, int]:
    return _longest(_unsold_forms())


def _longest(forms: Iterable[str]) -> dict[str, int]:
    """By first word, how many words the longest of these keys has."""
    found: dict[str, int] = {}
    for key in forms:
        first, *rest = key.split(" ")
        found[first] = max(found.get(first, 0), 1 + len(rest))
    return found


Span = tuple[int, int, str]


def _find(text: str, forms: Mapping[str, str], longest: Mapping[str, int]) -> list[Span]:
    """Where names of `forms` stand, the longest first at each place, and what they mean."""
    words = [(m.start(), m.end(), _bare(m[0])) for m in _TEXT_WORD.finditer(text)]
    found: list[Span] = []
    index = 0
    while index < len(words):
        most = min(longest.get(words[index][2], 0), len(words) - index)
        for count in range(most, 0, -1):
            part = words[index : index + count]
            name = forms.get(" ".join(word for _, _, word in part))
            if name is not None and _joined(text, part):
                start, end = part[0][0], part[-1][1]
                if text[end : end + 1] == ")" and "(" in text[start:end]:
                    end += 1
                found.append((start, end, name))
                index += count - 1
                break
        index += 1
    return found


def _joined(text: str, words: Sequence[Span]) -> bool:
    """Whether nothing but spaces, hyphens and brackets stands between these words."""
    return all(not text[one[1] : other[0]].strip(" \t-()") for one, other in pairwise(words))


class Reader:
    """Reads the lines of one shop. `among` are names that may go by shorter forms right now (the
    cart, what was just shown), `words` what was asked for that the shop does not list."""

    def __init__(
        self, shop: Shop, names: Names, among: Iterable[str] = (), words: Iterable[str] = ()
    ) -> None:
        near = frozenset(among)
        forms: dict[str, set[str]] = {}
        single: set[str] = set()
        for item in shop.world.items:
            name = item.item_name
            known, several = {name}, {item.plural or plural_name(name)}
            for choice in (None, near) if name in near else (None,):
                known |= {alias for pool in names.aliases(name, choice) for alias in pool}
            several |= {plural_name(alias) for alias in known - {name}}
            single |= {_key(form) for form in known}
            for form in known | several:
                forms.setdefault(_key(form), set()).add(name)
        for item in shop.world.items:  # a full name means that item, whatever else is called so
            forms[_key(item.item_name)] = {item.item_name}
        for word in words:
            for form in (word, plural_name(word)):
                forms.setdefault(_key(form), {f"{UNLISTED}{word.casefold()}"})
        self._forms = {key: min(found) for key, found in forms.items() if len(found) == 1}
        self._plural = self._forms.keys() - single
        self._longest = _longest(self._forms)
        self._heads = _heads(shop)
        self._currency = shop.world.currency.casefold()

    def read(self, text: str) -> Reading:
        """The items and numbers of a line."""
        spans = _find(text, self._forms, self._longest)
        spans += _find(_masked(text, spans), _unsold_forms(), _longest_unsold())
        spans.sort()
        found = numbers(_masked(text, spans))
        mentions, left = _with_quantities(text, spans, found, self._currency)
        told = [replace(m, plural=_key(text[m.start : m.end]) in self._plural) for m in mentions]
        return Reading(tuple(told), tuple(left))

    def stray(self, text: str) -> frozenset[str]:
        """Words of `text` outside its item mentions that items are called by for short."""
        masked = _masked(text, _find(text, self._forms, self._longest))
        variants = (variant for word in name_words(masked) for variant in word)
        return frozenset(self._heads[v] for v in variants if v in self._heads)


def _heads(shop: Shop) -> dict[str, str]:
    """The nouns that this shop's items are called by (last words of names and of short names), in
    the singular, by each form they may take."""
    found: dict[str, str] = {}
    for item in shop.world.items:
        name = item.item_name
        for form in (name, shop.heads.get(name, name), *shop.nicknames.get(name, ())):
            for variants in name_words(form.split(" (")[0])[-1:]:
                noun = min(variants, key=len)
                found.update((variant, found.get(variant, noun)) for variant in sorted(variants))
    return found


def _masked(text: str, spans: Iterable[Span]) -> str:
    """`text` with these spans blanked out by a character that is no word and no space."""
    for start, end, _ in spans:
        text = text[:start] + "\x00" * (end - start) + text[end:]
    return text


def _with_quantities(
    text: str,
    spans: Sequence[Span],
    found: list[Number],
    currency: str,
) -> tuple[list[Mention], list[Number]]:
    """Every item with the number right before it, or behind it as in `rope x3`."""
    left = list(found)
    parting = _PARTING | {currency}
    mentions = []
    for index, (start, end, name) in enumerate(spans):
        after = spans[index - 1][1] if index else 0
        near = [n for n in left if after <= n.start and n.end <= start]
        mention = Mention(name, start, end, start, end)
        before = next((n for n in reversed(near) if not n.soft), near[-1] if near else None)
        if before is not None and _counts(text[before.end : start].casefold(), parting):
            left.remove(before)
            mention = Mention(name, start, end, before.start, end, before.value)
        elif (behind := _BEHIND.match(text, end)) and _next_word(text, behind.end()) != currency:
            digits = next((n for n in left if n.start == behind.start(1)), None)
            if digits is not None:
                left.remove(digits)
                mention = Mention(name, start, end, start, digits.end, digits.value)
        mentions.append(mention)
    return mentions, left


def _counts(between: str, parting: frozenset[str]) -> bool:
    """Whether a number followed by these words counts what comes behind them."""
    return bool(_BETWEEN.fullmatch(between)) and parting.isdisjoint(between.split())


def _next_word(text: str, at: int) -> str:
    found = re.match(r"\W*(\w*)", text[at:])
    return found[1].casefold() if found else ""


def bare_line(text: str, labels: Sequence[str]) -> str:
    """A model's one-line answer without speaker labels and quotation marks around it.

    Raises ValueError when it has more than one line, or another speaker goes on in it.
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) != 1:
        raise ValueError(f"it had {len(lines)} lines instead of one")
    line = lines[0]
    for label in labels:
        line = re.sub(rf"^\**{re.escape(label)}\**\s*:\s*", "", line, flags=re.IGNORECASE)
    quoted = re.fullmatch(r"[\"“”`]+\s*(.*?)\s*[\"“”`]+", line) or re.fullmatch(r"'(.*)'", line)
    return (quoted[1] if quoted else line).strip()
