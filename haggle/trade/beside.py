"""Rules of guard `state` about what a line does to the order beside what the model answers: goods
that it orders, numbers that it changes, goods that it takes out, and the sum that it asks for."""

from __future__ import annotations

from dataclasses import replace

from haggle.trade.among import told_parts
from haggle.trade.counted import passed_over
from haggle.trade.edits import held
from haggle.trade.evident import left_out, sent_back
from haggle.trade.knowledge import (
    adds,
    asks_for_the_sum,
    asks_what_it_costs,
    declines,
    has_number,
    removes,
    tells_a_need,
    whole_number,
)
from haggle.trade.language import patterns
from haggle.trade.ledger import total
from haggle.trade.lines import lines
from haggle.trade.numbers_told import numbers_told
from haggle.trade.ruling import Heard, Ruling, bare
from haggle.trade.session import Session
from haggle.trade.telling import questions, questions_in
from haggle.trade.wanted import put_back, ruled_out, telling
from haggle.trade.wire import CartLines

LONG = 2  # words beside goods from which a clause tells of them: "my dog ate the boots"


def also_ordered(heard: Heard, ruling: Ruling) -> Ruling:
    """New goods that a line orders by name come into the cart, and goods in it change their number,
    also where the model only answers the question, the bid or the agreement beside: "the rope as
    well. What is it made of?", "make it six axes. And a little off, please?" """
    session, line, proposal = heard.session, heard.line, ruling.proposal
    procedure, offer = session.procedure, heard.next_with("cart")
    state = procedure.state(proposal.state)
    talks = (state.payload == "show" or state.transparent) and bool(questions_in(line))
    deals = state.payload == "bid" or procedure.is_review(proposal.state)
    if not (talks or deals) or offer is None or ruling.reasons or session.pending:
        return ruling
    cart: CartLines = tuple(held(session).items())
    ordering = ordering_clauses(session, line, joins=deals)
    new = tuple(told for clause in ordering for told in passed_over(session, clause, cart))
    pointing = [clause for clause in ordering if talks or has_number(clause)]
    new = new or tuple(told for clause in pointing for told in pointed_at(heard, clause))
    goods = session.world.by_id
    told = numbers_told(session, line, strictly=True)
    changed = {
        goods[i].item_name: n
        for i, n in told.items()
        if i in session.cart and n not in {session.cart[i], proposal.bid}
    }
    new = tuple(told for told in new if told[0] not in dict(cart))
    if not new and not changed:
        return ruling
    order = replace(bare(proposal, offer), cart=tuple((dict(cart) | changed | dict(new)).items()))
    return ruling.because("ordered", order, lines().safe[offer])


def ordering_clauses(session: Session, line: str, *, joins: bool) -> list[str]:
    """The clauses of a line that order."""
    ordering = [part for part in told_parts(line) if not (removes(part) or declines(part))]
    if any(map(tells_a_need, questions(line))):  # "I need light. What have you?"
        ordering = [p for p in ordering if has_number(p) or not patterns.I_NEED.search(p)]
    return [c for part in ordering for c in _ordering(session, part, joins=joins)]


def _ordering(session: Session, part: str, *, joins: bool) -> list[str]:
    """The clauses of a part of a line that order, and those behind them that name goods and say
    nothing else; `joins`: also such as only put goods beside what was said."""
    found: list[str] = []
    going = told = False
    yes_and = patterns.YES_AND.match(part.casefold()) is not None
    for clause in patterns.CLAUSE_OF_NUMBERS.split(part):
        beside = _besides(session, clause)
        takes = patterns.TAKING.search(clause) and not patterns.TAKES_IT.search(clause)
        adding = yes_and or adds(clause) or patterns.JOINS_ON.search(clause)
        told = told or patterns.TELLS.search(clause) is not None
        added = joins and adding and len(beside) < LONG and not patterns.IS_SO.search(clause)
        going = not told and bool(takes or added or (going and not beside))
        found += [clause] if going else []
    return found


def ordered_by_name(session: Session, line: str) -> dict[str, int]:
    """Goods, not in the order, that stand right behind words of ordering, by id, in the number told
    or one: "I'll have one of the lemon ices"."""
    world, reading = session.world, session.read(line)
    sure = (m for m in reading.mentions if len(m.candidates) == 1 and not m.guessed)
    told = {
        m.candidates[0].id: m.quantity or 1
        for m in sure
        if patterns.ORDERS_IT.search(reading.line[: m.start]) and m.candidates[0].for_sale
    }
    out = session.cart.keys() | ruled_out(world, line)
    return {} if "?" in line else {i: n for i, n in told.items() if i not in out}


def is_a_list(session: Session, line: str) -> bool:
    """Whether a line names goods and says nothing else: "two axes, a map"."""
    return not ("?" in line or removes(line) or declines(line) or _besides(session, line))


def _besides(session: Session, clause: str) -> frozenset[str]:
    """The stems of what a clause says beside the goods that it names."""
    reading = session.read(clause)
    names = [thing.name for mention in reading.mentions for thing in mention.candidates]
    typed = [reading.line[mention.start : mention.end] for mention in reading.mentions]
    return telling(reading.line.casefold()) - telling(" ".join((*names, *typed)).casefold())


def pointed_at(heard: Heard, part: str) -> CartLines:
    """The only good just shown, in the number that is said: "I'll have one too"."""
    session = heard.session
    shown = session.world.known(session.shown)
    pointed = patterns.POINTED.search(part.casefold())
    if pointed is None or len(shown) != 1 or session.named(part, sure=False):
        return ()
    return ((shown[0].item_name, whole_number(pointed[1] or pointed[2] or "") or 1),)


def taken_back(heard: Heard, ruling: Ruling) -> Ruling:
    """Goods that the line takes out of the order go, also where the model talks past it."""
    session, line, proposal = heard.session, heard.line, ruling.proposal
    state = session.procedure.state(proposal.state)
    back = put_back(session.world, line) | left_out(session, line) | sent_back(session, line)
    if state.payload == "bid" and "?" not in line:  # "no axe, I said. Nine for the rope"
        back |= ruled_out(session.world, line)
    back &= session.cart.keys()
    if not back or state.payload == "cart" or state.resets or state.clears:
        return ruling
    if not session.cart.keys() - back:
        return heard.cleared(ruling)
    offer = heard.next_with("cart")
    if offer is None:
        return ruling
    names = session.world.by_id
    left = tuple((names[i].item_name, n) for i, n in session.cart.items() if i not in back)
    changed = replace(bare(proposal, offer), cart=left)
    return ruling.because("put_back", changed, lines().safe[offer])


def summed_up(heard: Heard, ruling: Ruling) -> Ruling:
    """What the order comes to is said where a line asks for it and the model shows goods; also
    where it asks the price of goods that was bargained down, and is the list's no more."""
    session, line, proposal = heard.session, heard.line, ruling.proposal
    state, offer = session.procedure.state(proposal.state), heard.next_with("cart")
    talks = state.payload == "show" or state.transparent
    if not (talks and offer and session.cart) or ruling.reasons:
        return ruling
    named = session.named(line, sure=False)
    view = {item.item_id for item in session.world.known(session.in_view())}
    bargained = session.sale_price != total(session.world, session.cart)
    own = bargained and asks_what_it_costs(line) and (named or view) <= session.cart.keys()
    if named - session.cart.keys() or not (own or asks_for_the_sum(line)):
        return ruling
    again = replace(bare(proposal, offer), cart=tuple(held(session).items()))
    return ruling.because("asked_sum", again, lines().safe[offer])
