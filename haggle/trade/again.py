"""Rules of guard `state` about orders that a line tells by another order: the last sale "again",
the order doubled, "two of everything"; goods that are missed in the order, or wanted back."""

from __future__ import annotations

from dataclasses import replace

from haggle.core.text import clean_utterance
from haggle.trade.edits import carried_out
from haggle.trade.evident import item_id, missing, sent_back
from haggle.trade.knowledge import whole_number
from haggle.trade.language import patterns
from haggle.trade.ledger import Cart
from haggle.trade.ruling import Heard, Ruling, bare
from haggle.trade.session import Session
from haggle.trade.wanted import put_back
from haggle.trade.wire import Proposal

AGAIN = "again"  # why such an order stands
_REMARKS = (patterns.OTHERWISE, patterns.OTHERS_BOUGHT, patterns.SAYS_SO)


def told_by_another(heard: Heard, ruling: Ruling) -> Ruling:
    """The order that a line tells by another one, in place of what a model makes of it."""
    session, proposal, line = heard.session, ruling.proposal, clean_utterance(heard.line)
    state, offer = session.procedure.state(proposal.state), heard.next_with("cart")
    talks = state.payload in ("cart", "show") or state.transparent
    if not talks or offer is None or ruling.reasons or session.pending:
        return ruling
    cart = _meant(session, line.casefold()) or _with_missing(session, line, proposal)
    if not cart and state.payload == "cart":
        cart = _each_of_a_kind(session, line)
    if not cart or (state.payload != "cart" and cart == session.cart):
        return ruling
    goods = session.world.by_id
    told = tuple((goods[i].item_name, n) for i, n in cart.items() if i in goods)
    return ruling.because(AGAIN, replace(bare(proposal, offer), cart=told))


def _with_missing(session: Session, line: str, proposal: Proposal) -> Cart:
    """The order with the goods that a line misses in it; empty where it misses none. Nothing leaves
    it, and the model changes only what the line names."""
    asked = {item_id(session.world, n): q for n, q in carried_out(session, proposal)}
    back = {
        i: n for i, n in missing(session, line).items() if i not in session.cart or i not in asked
    }
    if not back:
        return {}
    named = session.named(line, sure=False) - back.keys()
    told = {i: q for i in named if isinstance(q := asked.get(i), int)}
    out = put_back(session.world, line) | sent_back(session, line)
    return {i: n for i, n in (session.cart | told).items() if i not in out} | back


def _each_of_a_kind(session: Session, line: str) -> Cart:
    """The order with so many of all goods of a kind that a line names: "some jam, one from each";
    empty where it asks for none."""
    reading = session.read(line)
    match, mentions = patterns.EACH_OF_KIND.search(reading.line), reading.mentions
    if match is None or len(mentions) != 1 or not _orders(line):
        return {}
    kind, between = mentions[0].candidates, reading.line[match.end() : mentions[0].start]
    if len(kind) < 2 or between.strip():  # "one of each, and a planter" are no planters
        return {}
    number = whole_number(match[1].casefold()) or 1
    return session.cart | {thing.id: number for thing in kind if thing.for_sale}


def _meant(session: Session, line: str) -> Cart:
    """The order that a sentence of a line tells by another; empty where none does, or where a line
    names goods."""
    other = session.cart or (session.sales[-1].items if session.sales else {})
    named = session.named(line, sure=False)
    if len(named) == 1 and named <= session.cart.keys() and patterns.SAME_ON.search(line):
        return session.cart | {item: 2 * session.cart[item] for item in named}
    if not other or named:
        return {}
    sentences = (part for text in patterns.SENTENCE_END.split(line) for part in text.split(";"))
    found = (_told(session, sentence, other) for sentence in sentences)
    return next(filter(None, found), {})


def _told(session: Session, sentence: str, other: Cart) -> Cart:
    if any(words.search(sentence) for words in _REMARKS) or not _orders(sentence):
        return {}
    if len(other) > 1 and (each := patterns.OF_EVERYTHING.search(sentence)):
        number, held = whole_number(each["number"]), session.cart if each["more"] else {}
        fresh = {i.item_id for i in session.world.known(session.in_view())} - other.keys()
        meant = {} if len(fresh) > 1 and not each["more"] else other  # "one of each" of those shown
        return {item: held.get(item, 0) + number for item in meant} if number else {}
    once, whole = 1 + bool(session.cart), patterns.WHOLE_ORDER.search(sentence)
    one = len(other) == 1 and patterns.POINTS.search(sentence)
    if patterns.ONCE_AGAIN.search(sentence):
        return _times(other, _factor(sentence) or once)
    if (whole or one) and (lots := patterns.LOTS.search(sentence)):
        number = whole_number(lots[1])
        return _times(other, number + bool(session.cart)) if number else {}
    if patterns.MULTIPLIES.search(sentence) or (one and patterns.MULTIPLIES_ONE.search(sentence)):
        return _times(other, _factor(sentence) or 1)
    return _times(other, once) if whole and patterns.AGAIN_SO.search(sentence) else {}


def _orders(sentence: str) -> bool:
    """Whether a sentence is no question, or one that begs: "could you double it all?" """
    return "?" not in sentence or patterns.BEGS.search(sentence) is not None


def _factor(sentence: str) -> int:
    """By how much a sentence multiplies: "double", "x4", "five times"; 0 for not at all."""
    for number, words in ((2, patterns.TWOFOLD), (3, patterns.THREEFOLD)):
        if words.search(sentence):
            return number
    match = patterns.TIMES.search(sentence)
    return whole_number(next(filter(None, match.groups()))) if match else 0


def _times(cart: Cart, factor: int) -> Cart:
    return {item: factor * number for item, number in cart.items()}
