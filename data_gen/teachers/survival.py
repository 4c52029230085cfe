"""Whether a rephrased line still means what it did: numbers, items, placeholders, marks of its act.

The checks are cheap and err on the side of refusing: a line refused in vain costs one phrasing, one
let through with another meaning makes a wrong label.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from data_gen.acts import Act
from data_gen.bank import load_bank
from data_gen.teachers.asking import Rejected
from data_gen.teachers.marks import IDIOMS, NOT, check_marks, found, reviews, sales
from data_gen.teachers.reading import Reader, Reading
from haggle.core.text import neutralise_markup
from haggle.trade import placeholders
from haggle.trade.procedure import Procedure
from haggle.trade.wire import UNLISTED

SHORTEST, LONGEST, SLACK = 0.35, 2.2, 24  # length against the original's; characters more


# Lines that are what they are by their wording: forged texts, and what makes a merchant angry.
SKIPPED = frozenset(("attack", "silence", "insult"))
_OUTCOME = re.compile(
    r"(?<!\w)(?:agree\w*|accept\w*|refuse\w*|deal|discount\w*|lower\w*|reduc\w*|cheaper|no|never|"
    r"cannot|can[’']?t|won[’']?t|yes|fine|alright|all right|drop\w*|less|off)(?!\w)",
    re.IGNORECASE,
)


@cache
def _currencies() -> frozenset[str]:
    """Every currency of the bank's genres, in one word."""
    names = (c for genre in load_bank().genres.values() for c in genre.currency)
    return frozenset(name.casefold() for name in names) | {"gold", "coins"}


def check_player(old: str, new: str, act: Act, reader: Reader, currency: str) -> None:
    """Raise Rejected when a player's line no longer says what it did. `reader` is its shop's."""
    _check_form(old, new)
    was, now = reader.read(old), reader.read(new)
    _check_items(was, now, reader.stray(old), reader.stray(new), act, new)
    if was.values != now.values:
        raise Rejected("number", "every number has to stay, and none may be added")
    _check_currency(old, new, currency)
    check_marks(old, new, act, named=bool(was.mentions))
    if act.kind == "recommend" and _purpose(old) and not _purpose(old) & _purpose(new):
        raise Rejected("act", "it has to name the same purpose")


def check_merchant(
    old: str, new: str, state: str, procedure: Procedure, reader: Reader, currency: str
) -> None:
    """Raise Rejected when a merchant's line with placeholders no longer says what it did."""
    _check_form(old, new)
    if _placeholders(old) != _placeholders(new) or "__" in placeholders.fill(new, {}):
        kept = " and ".join(sorted(_placeholders(old))) or "no placeholder"
        raise Rejected("placeholder", f"it has to hold {kept}, each once, and no other")
    was, now = reader.read(placeholders.fill(old, {})), reader.read(placeholders.fill(new, {}))
    if now.values != was.values:
        raise Rejected("number", "a merchant's line names no number or amount")
    if set(now.lines) - set(was.lines):
        raise Rejected("item", "a merchant's line names no item")
    _check_currency(old, new, currency)
    plain_old, plain_new = IDIOMS.sub(" ", old), IDIOMS.sub(" ", new)
    if bool(NOT.search(plain_old)) != bool(NOT.search(plain_new)):
        raise Rejected("negation", "it turned a yes into a no, or a no into a yes")
    if procedure.state(state).payload == "bid":
        added = found(_OUTCOME, new) - found(_OUTCOME, old)
        if added:
            raise Rejected("outcome", "it must not tell whether the price has moved")
    lost = state in reviews(procedure) and "?" not in new
    if lost or (state in sales(procedure) and "?" in new and "?" not in old):
        raise Rejected("question", "a question was lost or added")


def _check_form(old: str, new: str) -> None:
    if not any(c.isalnum() for c in new):
        raise Rejected("empty", "it said nothing")
    if _letters(old) == _letters(new):
        raise Rejected("unchanged", "it was the same line; use other words")
    if not SHORTEST * len(old) <= len(new) + SLACK / 4 or len(new) > LONGEST * len(old) + SLACK:
        raise Rejected("length", "it was much shorter or longer than the line")
    if neutralise_markup(new) != new or any(c in new for c in "{}<>\\"):
        raise Rejected("markup", "it held markup; write plain words")


def _check_items(
    was: Reading,
    now: Reading,
    stray_before: frozenset[str],
    stray_now: frozenset[str],
    act: Act,
    new: str,
) -> None:
    """Items named, how many of each, and what was asked for that is not listed."""
    for name, _ in act.cart:
        if name.startswith(UNLISTED) and name not in was.lines:
            words = name.removeprefix(UNLISTED)
            if words.casefold() not in new.casefold():
                raise Rejected("item", f"it has to name {words!r} in these words")
    lost, added = set(was.lines) - set(now.lines), set(now.lines) - set(was.lines)
    if lost:
        names = ", ".join(sorted(name.removeprefix(UNLISTED) for name in lost))
        raise Rejected("item", f"these items have to be named: {names}")
    if added or stray_now - stray_before:
        raise Rejected("new_item", "it named an item that the line does not name")
    if stray_before - stray_now:
        raise Rejected("item", f"these words have to stay: {', '.join(sorted(stray_before))}")
    several = {m.name for m in now.mentions if m.plural and m.quantity is None}
    single = {m.name for m in was.mentions if not m.plural and (m.quantity or 1) == 1}
    if was.lines != now.lines or (act.kind == "order" and several & single):
        raise Rejected("quantity", "the quantities have to stay with the same items")


def _check_currency(old: str, new: str, currency: str) -> None:
    before, after = old.casefold(), new.casefold()
    if currency.casefold() in before and currency.casefold() not in after:
        raise Rejected("currency", f"it has to name the {currency}")
    words = Counter(re.findall(r"\w+", after)) - Counter(re.findall(r"\w+", before))
    if any(word in words for word in _currencies() - {currency.casefold()}):
        raise Rejected("currency", "it named another currency")


_COMMON = frozenset(
    "could would should please something anything recommend suggest advise looking needed going "
    "things stuff helps helpful helping useful advice works which where there their these those "
    "about might merchant trader".split()
)


def _purpose(text: str) -> set[str]:
    """The longer words of a line, cut to their stems' length."""
    words = re.findall(r"[a-z]{5,}", text.casefold())
    return {word[:5] for word in words if word not in _COMMON}


def _placeholders(text: str) -> Counter[str]:
    return Counter(re.findall(r"__[A-Z]+__", text))


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text.casefold())
