"""Carts as changes: what becomes of single lines, in place of the whole cart.

A player says what should change, and a model that has to write the whole cart loses lines that
nobody spoke of. So the compact answer may carry `"change":[["Sharp Axe","+2"],["Local Map",0]]`: a
number is the new number of a line (0 takes it out), "+2" and "-2" go up or down, "x2" is twice as
many, "3*4" three for each of four ("2+3" and "2*5+1" are worked out alike), "half" half of what the
cart holds (of the stock, where it holds none), "all" the stock. What is not named stays. A cart in
an answer is the whole cart, as before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from haggle.trade.formula import Formula
from haggle.trade.language import CUES, UNITS, numbers_in, patterns
from haggle.trade.wire import UNLISTED, CartLines, Proposal, Quantity, Step
from haggle.trade.world import World, normalise

if TYPE_CHECKING:
    from haggle.trade.session import Session

Lines = Sequence[tuple[str, Quantity]]
_WORD = re.compile(r"[a-z]+")
_MARK = re.compile(r"\{[^{}]*\}")
_MARKED = re.compile(r"\{[^{}]*? x(\d+)\}|\{(\d+)\}")
_WORDS = UNITS | dict.fromkeys(patterns.words("single"), 1)


def whole(before: Mapping[str, int], proposal: Proposal) -> CartLines:
    """The whole cart that a proposal asks for, given the names and numbers of the one before."""
    if proposal.change is None:
        return proposal.cart or ()
    cart: dict[str, tuple[str, Quantity]] = {normalise(n): (n, q) for n, q in before.items()}
    others: list[tuple[str, Quantity]] = []
    for name, step in proposal.change:
        key = normalise(name)
        if name.startswith(UNLISTED) and key not in cart:
            others.append((name, step if isinstance(step, int) else 1))
            continue
        own, held = cart.get(key, (name, 0))
        number = _stepped(held if isinstance(held, int) else 0, step)
        if number == 0:
            cart.pop(key, None)
        else:
            cart[key] = (own, number)
    return (*cart.values(), *others)


def _stepped(held: int, step: Step) -> Quantity:
    if isinstance(step, int):
        return max(0, step)
    if step == "all" or (step == "half" and not held):
        return "all" if step == "all" else "half"
    if step == "half":
        return -(-held // 2)
    if step[0] == "x":
        return max(1, held) * int(step[1:])
    by = Formula.read(step[1:]) or int(step[1:])
    return max(0, held + (by if step[0] == "+" else -by))


def carried_out(session: Session, proposal: Proposal) -> CartLines:
    """The whole cart that a proposal asks for, given the session's; names as the shop has them."""
    if proposal.change is None:
        return proposal.cart or ()
    change = tuple((_listed(session.world, name), step) for name, step in proposal.change)
    return whole(held(session), replace(proposal, change=change))


def held(session: Session) -> dict[str, int]:
    """The session's cart by the items' names."""
    return {session.world.by_id[i].item_name: n for i, n in session.cart.items()}


def _listed(world: World, name: str) -> str:
    item = world.recognise(name.removeprefix(UNLISTED))
    return item.item_name if item is not None and item.for_sale else name


def with_whole_cart(session: Session, proposal: Proposal) -> Proposal:
    """The same proposal with its cart whole."""
    if proposal.change is None:
        return proposal
    return replace(proposal, cart=carried_out(session, proposal), change=None)


def shortened(session: Session, utterance: str, proposal: Proposal) -> Proposal:
    """The same proposal told as briefly as the method can: its cart as a change, where one is due,
    and numbers that the player leaves to be worked out as products.

    A cart that keeps nothing of the last one, or keeps only what the player names, stays whole:
    `just the map, then`. Which step a new number is told as goes by the words: `two more` is "+2".
    """
    if (
        not session.method.changes
        or proposal.cart is None
        or session.procedure.state(proposal.state).payload != "cart"
    ):
        return proposal
    by_id = session.world.by_id
    linked = session.linked_line(utterance)
    if session.cart:
        named = {by_id[item_id].item_name for item_id in session.named(utterance, sure=False)}
        change = changed(held(session), proposal.cart, named, linked)
        if change is not None:
            return replace(proposal, cart=None, change=as_formulas(change, linked))
    return replace(proposal, cart=as_formulas(proposal.cart, linked))


def as_formulas(lines: Sequence[tuple[str, Any]], linked: str) -> tuple[tuple[str, Any], ...]:
    """The lines of a cart or a change with the numbers that the player left to be worked out as
    formulas: those that the linked line does not say, but are the product of just two that it
    says, or the sum of just two that it says of nothing else in these lines. Four as a product and
    two as a sum are not worth it: they are mostly chance."""
    said = Counter(numbers_said(linked))
    words = set(_WORD.findall(linked.casefold()))
    said += Counter({2: bool(words & CUES.pairs)})
    taken = {number for _, number in lines}

    def told(number: Any) -> Any:
        if isinstance(number, str) and number[1:].isdecimal():  # "+6", "-6"
            formula = told(int(number[1:]))
            return number[0] + formula.told if isinstance(formula, Formula) else number
        if not isinstance(number, int) or isinstance(number, Formula) or number in said:
            return number
        pairs = [(a, b) for a in said for b in said if 0 < a <= b < 1000 and (a < b or said[a] > 1)]
        factors = [(a, b) for a, b in pairs if a > 1 and 4 != a * b == number]
        if factors or words & CUES.shared:
            return Formula.product(*factors[0]) if len(factors) == 1 else number
        terms = [(a, b) for a, b in pairs if 2 != a + b == number and not taken & {a, b}]
        return Formula(f"{terms[0][0]}+{terms[0][1]}") if len(terms) == 1 else number

    return tuple((name, told(number)) for name, number in lines)


def changed(
    before: Mapping[str, int], lines: Lines, named: Set[str], linked: str
) -> tuple[tuple[str, Step], ...] | None:
    """The change that leads from one cart to another; None where the player puts a cart in the
    place of the last one. `named` are the goods that the line names, `linked` is the linked line,
    whose numbers and words decide how a new number is told."""
    target = dict(lines)
    gone = [name for name in before if name not in target]
    kept = [name for name in before if target.get(name) == before[name]]
    words = set(_WORD.findall(linked.casefold()))
    if not named >= set(gone):
        stays = [name for name in target if not name.startswith(UNLISTED)]
        if len(gone) == len(before) or words & CUES.only or (stays and named >= set(stays)):
            return None
    numbers = numbers_in_line(linked)
    change: list[tuple[str, Step]] = [(name, 0) for name in gone]
    change += [
        (name, _step(before.get(name, 0), number, numbers, words))
        for name, number in target.items()
        if name not in kept
    ]
    return tuple(change)


def numbers_in_line(linked: str) -> set[int]:
    """The numbers of a linked line: its digits, those of marks, and number words."""
    return set(numbers_said(linked))


def numbers_said(linked: str) -> list[int]:
    """The numbers of a linked line, each as often as it is said. Of marks those that say how many:
    a name's own digits count nothing, and neither does a word that a mark tells: `twenty-four
    {24}`, `three {Rope x3}` is one three."""
    marked = [int(a or b) for a, b in _MARKED.findall(linked)]
    bare = patterns.GLUED.sub(" ", _MARK.sub(" ", linked.casefold()))
    said = [int(number) for number in numbers_in(bare) if number.is_integer()]
    said += [_WORDS[word] for word in patterns.UNIT.findall(bare)]
    return said + [number for number in marked if number not in said]


def _step(held: int, number: Quantity, numbers: set[int], words: set[str]) -> Step:
    """How the new number of a line is told."""
    if not held or not isinstance(number, int) or isinstance(number, Formula):
        return number
    if number == 2 * held and words & CUES.twice:
        return "x2"
    if number == -(-held // 2) and words & CUES.half:
        return "half"
    difference = number - held
    by = f"{difference:+d}"
    said = abs(difference) in numbers
    if number in numbers and not (said and words & CUES.by):
        return number
    return by if said or abs(difference) == 1 or words & CUES.by else number
