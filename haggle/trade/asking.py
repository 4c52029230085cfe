"""The one question that settles what a player meant, in place of a guess.

A decision that the model itself finds unlikely is not carried out: the merchant asks, the cart
stays. A plain yes to its question carries the decision out after all; any other line is answered
as always. Nothing is asked twice: who says the same again in other words is believed, and who
refused it is asked for the name of the goods.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from haggle.core.domain import Withheld
from haggle.core.text import clean_utterance
from haggle.language.evidence import Consent, Evidence
from haggle.language.reading import Mention
from haggle.trade.among import choices, only_asked
from haggle.trade.beside import ordered_by_name
from haggle.trade.bidding import offered, only_good
from haggle.trade.counted import counted
from haggle.trade.edits import carried_out, held, numbers_in_line
from haggle.trade.evident import evident_goods, item_id, lost_goods, only_these
from haggle.trade.knowledge import asks_about_goods, asks_what_it_costs, puts_back
from haggle.trade.language import CUES, patterns
from haggle.trade.ledger import Cart, speak_cart
from haggle.trade.lines import lines, listed
from haggle.trade.numbers_told import clause_of, is_denied, sentence_of
from haggle.trade.ordered import only_asked_about, orders_nothing
from haggle.trade.resolve import Resolved, resolve
from haggle.trade.review import terms_of
from haggle.trade.ruling import Ruling
from haggle.trade.session import Session
from haggle.trade.swaps import swapped
from haggle.trade.wanted import ruled_out, said_stems, unwanted
from haggle.trade.wire import CartLines, Proposal

MOST_CHOICES = 3
_PAUSE = re.compile(r"(?=[.,;!])")


def question(session: Session, line: str, proposal: Proposal) -> Ruling | None:
    """The question to ask in place of an unlikely decision; None where there is nothing to ask."""
    if not session.procedure.is_valid(session.last, proposal.state):
        return None
    if session.procedure.state(proposal.state).payload != "cart":
        return None
    whole = counted(session, line, carried_out(session, proposal))
    if only_asked_about(session, line, whole):
        return None  # it is answered
    if swapped(session, line, whole) or _only_drops(session, line, whole):
        return None  # it is told in full
    goods, lost = session.world.by_id, lost_goods(session, line, whole)
    whole = (*((goods[i].item_name, session.cart[i]) for i in lost), *whole)
    proposal = replace(proposal, cart=whole, change=None)
    meant = resolve(session, proposal, guarded=True)
    if not meant.cart or meant.cart == session.cart or meant.notes:
        return None
    if offered(session, line) and meant.cart.keys() <= (
        session.named(line) | only_good(session, line).keys()
    ):
        return None
    asked = settled(session)
    if asked is not None and asked.cart == meant.cart:
        if not _refuses(session, line, asked):
            return None
        return _asked("other", proposal, session, lines().ask["other"])
    if not meant.cart.keys() <= evident_goods(session, line):
        return None
    if instead := _ordered_instead(session, line, whole):
        order = replace(proposal, cart=(*held(session).items(), *instead))
        return Ruling(order).because("ordered", order, lines().safe[proposal.state])
    names = _candidates(session, line, meant.cart)
    if names:
        return _asked("which", proposal, session, lines().ask["which"].format(names=names))
    told = speak_cart(session.world, meant.cart).replace("__", " ")
    ruling = _asked("order", proposal, session, lines().ask["order"].format(cart=told))
    return replace(ruling, pending=proposal, quoted=told)


def _ordered_instead(session: Session, line: str, whole: CartLines) -> CartLines:
    """New goods that a line orders by name, none of which an unlikely order has."""
    goods = session.world.by_id
    told = {goods[i].item_name: n for i, n in ordered_by_name(session, line).items()}
    return () if told.keys() & dict(whole).keys() else tuple(told.items())


def _only_drops(session: Session, line: str, whole: CartLines) -> bool:
    """Whether an order is what is in the cart but for goods that the line rules out."""
    out = unwanted(session.world, line) & session.cart.keys()
    left = {session.world.by_id[i].item_name: n for i, n in session.cart.items() if i not in out}
    return bool(out and left) and dict(whole) == left


def settled(session: Session) -> Resolved | None:
    """What a yes to the last question would do; None where nothing was asked."""
    pending = session.pending
    return resolve(session, pending, guarded=True) if pending else None


def agrees(session: Session, line: str) -> bool:
    """Whether a line says yes to the last question. Unlike a sale, an order can be changed again:
    first words are enough, where nothing else in the line speaks of other goods or numbers."""
    meant = settled(session)
    if meant is None:
        return False
    reading = session.read(line)
    before = numbers_in_line(session.exchanges[-1].player) if session.exchanges else set()
    own = {*meant.cart.values(), *session.cart.values(), *before, None}
    numbers = {m.quantity for m in reading.mentions} | {n.value for n in reading.numbers}
    offer = offered(session, line)
    others = numbers - own - {offer.number if offer else None}
    if _says_again(reading.mentions, meant.cart):
        others -= {1}  # "one for each"
    if others or not session.named(line) <= meant.cart.keys() or _takes_back(session, line, meant):
        return False
    starts = (line[: match.end()] for match in _PAUSE.finditer(line))
    return any(_affirms(session, start, meant) for start in (line, *starts))


def _says_again(mentions: Sequence[Mention], cart: Cart) -> bool:
    """Whether goods are named in the numbers of an order, and none in another."""
    counted = [m for m in mentions if m.quantity is not None]
    return bool(counted) and all(
        any(cart.get(thing.id) == m.quantity for thing in m.candidates) for m in counted
    )


def corrected(session: Session, line: str) -> tuple[tuple[str, int], ...]:
    """The order of the last question as a line puts it right: "yes, but three ropes", "no, just the
    lantern". Empty where it is not that order which the line speaks of."""
    meant = settled(session)
    if meant is None or _asks_or_denies(session, line):
        return ()
    reading, cart = session.read(line), dict(meant.cart)
    out = unwanted(session.world, line) | only_asked(session, line) | _denied(session, line)
    sure = [m for m in reading.mentions if len(m.candidates) == 1 and not m.guessed]
    told = {m.candidates[0].id: m for m in sure if m.candidates[0].id not in out}
    same = told.keys() & cart.keys() or (told and patterns.YES.match(line.casefold()))
    if not same or len(sure) < len(reading.mentions):
        return ()
    if only_these(session, line):  # "the fern lives with me. Only the brush"
        only = {
            m.candidates[0].id
            for m in sure
            if only_these(session, sentence_of(reading.line, m.start))
        }
        told = {i: m for i, m in told.items() if not only or i in only}
        cart = {i: number for i, number in cart.items() if i in told}
    elif patterns.NO.match(line.casefold()):  # what nobody had asked for goes
        meant_before = session.named(session.exchanges[-1].player, sure=False) | told.keys()
        cart = {i: n for i, n in cart.items() if i in session.cart or i in meant_before}
    whole = {i for i, m in told.items() if _is_whole(clause_of(reading.line, m.start))}
    numbers = {i: (i in whole and m.quantity) or cart.get(i, 1) for i, m in told.items()}
    cart = {i: number for i, number in (cart | numbers).items() if i not in out}
    return tuple((session.world.by_id[i].item_name, number) for i, number in cart.items())


def _is_whole(clause: str) -> bool:
    """Whether the numbers of a clause are no steps: "three", not "three more"."""
    return not set(clean_utterance(clause).casefold().split()) & CUES.by


def insists(session: Session, line: str, proposal: Proposal) -> bool:
    """Whether a line says again what the last question was about, and means it: it shares a word
    with the line before, names those goods or the model makes the same order of it, and it neither
    asks nor refuses."""
    meant = settled(session)
    if meant is None or _asks_or_denies(session, line) or not session.exchanges:
        return False
    if _takes_back(session, line, meant) or _refuses(session, line, meant):
        return False
    wanted = meant.cart.keys() - session.cart.keys()
    asked = {item_id(session.world, name) for name, _ in carried_out(session, proposal)}
    words = said_stems(clean_utterance(line)) & said_stems(session.exchanges[-1].player)
    return bool(wanted and words) and wanted <= asked | session.named(line)


def _asks_or_denies(session: Session, line: str) -> bool:
    """Whether a line asks, with or without a question mark, or says that it orders nothing."""
    asked = "?" in line or asks_what_it_costs(line) or asks_about_goods(line, session.read(line))
    return asked or orders_nothing(session, line)


def _affirms(session: Session, words: str, meant: Resolved) -> bool:
    found = _answer(session, words, meant)
    return found is not None and found.verdict == "affirms"


def _takes_back(session: Session, line: str, meant: Resolved) -> bool:
    """Whether a line rules out goods of the order, takes some out, or begins with a no."""
    out = ruled_out(session.world, line) & meant.cart.keys()
    out |= _denied(session, line) & meant.cart.keys() - session.cart.keys()
    return bool(out or puts_back(line) or patterns.NO.match(line.casefold()))


def _denied(session: Session, line: str) -> frozenset[str]:
    """Ids of the goods before whose names a line somewhere has a no: "no rope, mine is new"."""
    reading = session.read(line)
    denied = (m for m in reading.mentions if is_denied(reading.line[: m.start]))
    return frozenset(thing.id for mention in denied for thing in mention.candidates)


def _refuses(session: Session, line: str, meant: Resolved) -> bool:
    """Whether a line has a no to the last question in it."""
    found = _answer(session, line, meant)
    refuses = found is not None and found.verdict in ("refuses", "cancels")
    return refuses or (found is not None and found.reason == "refusal")


def _answer(session: Session, line: str, meant: Resolved) -> Evidence | None:
    """What a line is evidence of, said to the question whether this order is meant."""
    consent = Consent(line) if session.read(line).consent else None
    price = session.sale_price if meant.sale_price is None else meant.sale_price
    terms = terms_of(session.world, meant.cart, price)
    return consent.answer(terms) if consent is not None and terms is not None else None


def _candidates(session: Session, line: str, wanted: Cart) -> str:
    """The names that one word of the line may mean, of which the decision took one."""
    for mention in session.read(line).mentions:
        if _one_meant(session, line, mention):
            continue
        things = [thing for thing in mention.candidates if thing.for_sale]
        if 1 < len(things) <= MOST_CHOICES and any(thing.id in wanted for thing in things):
            return listed([thing.name for thing in things], "or")
    return ""


def _one_meant(session: Session, line: str, mention: Mention) -> str | None:
    """Id of the good that words mean: the only one that they fit; or of those which they fit the
    only one that is in the order, in view, or was talked about."""
    ids = {thing.id for thing in mention.candidates if thing.for_sale}
    view = {item.item_id for item in session.world.known(session.in_view())}
    near = session.cart.keys() | view
    if len(ids) > 1:
        ids = ids & near or ids & {item.item_id for item in choices(session)}
    elif mention.guessed:
        ids &= near | session.named(line)
    return next(iter(ids)) if len(ids) == 1 else None


def _asked(what: str, proposal: Proposal, session: Session, said: str) -> Ruling:
    fallback = session.procedure.fallback
    waiting = replace(proposal, state=fallback, cart=None, change=None, show=None, bid=None)
    ruling = Ruling(waiting).because("asked", waiting, said)
    return replace(ruling, withheld=Withheld(f"asked_{what}"))
