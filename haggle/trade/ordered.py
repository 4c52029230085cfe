"""Rules of guard `state` about orders: what a line gives no evidence of does not come into the
cart, and does not leave it."""

from __future__ import annotations

from dataclasses import replace

from rapidfuzz import fuzz

from haggle.core.domain import Withheld
from haggle.core.text import clean_utterance
from haggle.language.evidence import Consent
from haggle.trade.again import AGAIN
from haggle.trade.among import (
    asked_about,
    kept_by_a_question,
    only_asked,
    only_asks,
    remembered,
    told_parts,
    turned_down,
    without_ones,
)
from haggle.trade.beside import is_a_list, ordered_by_name, ordering_clauses, pointed_at
from haggle.trade.counted import counted, passed_over
from haggle.trade.edits import carried_out, held, numbers_in_line
from haggle.trade.evident import (
    evident_goods,
    evident_lines,
    held_before,
    is_swap,
    item_id,
    kept_by,
    lost_goods,
    misheard,
    missing,
    only_these,
    sent_back,
    swapped_out,
)
from haggle.trade.fitting import fits, suited
from haggle.trade.knowledge import (
    adds,
    asks_what_it_costs,
    declines,
    does_not_want,
    goes_back,
    knowledge,
    orders,
    puts_back,
    refers,
    takes_all,
    tells_a_need,
    wants,
    without_echoes,
)
from haggle.trade.language import patterns
from haggle.trade.ledger import Cart, resolve_cart, speak_cart
from haggle.trade.lines import lines
from haggle.trade.numbers_told import numbers_heard
from haggle.trade.ruling import Heard, Ruling, bare
from haggle.trade.session import Session
from haggle.trade.swaps import swapped
from haggle.trade.telling import in_short
from haggle.trade.wanted import name_stems, put_back, ruled_out, telling, unwanted
from haggle.trade.wire import UNLISTED, CartLines

DESCRIBED = 0.35  # nearness from which a line may mean goods that it does not name
LIKE = 60  # of 100: a word that is mistyped or in the plural is still the same
MOST_ASKED = 3  # goods without evidence that are asked about


def countable(heard: Heard, ruling: Ruling) -> Ruling:
    """New goods that the line wants minus three or half a piece of are left out."""
    session, proposal = heard.session, ruling.proposal
    refused = session.uncountable(heard.line)
    if not refused or session.procedure.state(proposal.state).payload != "cart":
        return ruling
    asked = carried_out(session, proposal)
    kept = tuple(line for line in asked if item_id(session.world, line[0]) not in refused)
    if len(kept) == len(asked) and not any(n.startswith(UNLISTED) for n, _ in asked):
        return ruling
    kept = tuple(line for line in kept if not line[0].startswith(UNLISTED))
    names = tuple(session.world.by_id[i].item_name for i in sorted(refused))
    cart = kept or tuple(held(session).items())
    told = ruling.because("quantity", replace(proposal, cart=cart, change=None))
    return replace(told, impossible=names)


def goods(heard: Heard, ruling: Ruling) -> Ruling:
    """No goods that are ruled out, or neither named nor meant of those shown nor in the cart; no
    cart called off or replaced without words for it."""
    session, proposal, consent = heard.session, ruling.proposal, heard.consent
    assert consent is not None
    state = session.procedure.state(proposal.state)
    if state.may_clear and proposal.cart == () and session.cart:
        safe = lines().safe[session.procedure.fallback]
        kept = ruling.because("not_called_off", replace(proposal, cart=None), safe)
        return _called_off_by_name(heard, ruling) if consent.calls_off() else kept
    if state.payload != "cart" or AGAIN in ruling.reasons:
        return ruling
    whole, line = carried_out(session, proposal), heard.line
    before = _spoken_of(whole, line)
    out = _going(session, line, before)
    asked = tuple(told for told in before if item_id(session.world, told[0]) not in out)
    asked = _meant(heard, counted(session, line, asked))
    if other := swapped(session, line, asked):
        return replace(ruling, action=replace(proposal, cart=other, change=None))
    asked, questioned = _without_asked(session, line, asked, out)
    if questioned and dict(asked) == held(session):
        needing = tells_a_need(line) and not asks_what_it_costs(line)
        needed = suited(session, line) if needing else []
        names = [item.item_name for item in needed] or questioned
        return heard.shown(ruling, "asked_about", names)
    if asked != whole:
        ruling = replace(ruling, action=replace(proposal, cart=asked, change=None))
    return _evident(heard, ruling, asked, _lost(heard, consent, asked, out))


def _going(session: Session, line: str, asked: CartLines) -> frozenset[str]:
    """Ids of the goods that a line takes out of the order, whatever the model makes of it."""
    own, out = held(session), swapped_out(session, line, asked) | sent_back(session, line)
    if takes_all(line):  # "double it, only not the rockets"
        return out
    same = {item_id(session.world, name) for name, n in asked if own.get(name) == n}
    told = ruled_out(session.world, " ".join(told_parts(line)))
    return out | (told & session.cart.keys() & same) | misheard(session, line)


def _without_asked(
    session: Session, line: str, asked: CartLines, out: frozenset[str]
) -> tuple[CartLines, list[str]]:
    """An order without the new goods that a line only asks about, and with those of the cart as
    they were; and the names of such goods."""
    goods, own = session.world.by_id, held(session)
    kept = [goods[i].item_name for i in kept_by_a_question(session, line)]
    whole = dict(asked) | {name: own[name] for name in kept}
    touched = [name for name in kept if dict(asked).get(name) != own[name]]
    questioned = only_asked_about(session, line, tuple(whole.items()))
    if not questioned:
        return tuple(whole.items()), touched
    whole = {n: own.get(n, 0) if n in questioned else q for n, q in whole.items()}
    whole = {n: q for n, q in whole.items() if q}
    if not whole.keys() - own.keys():  # what is only asked about replaces nothing
        gone = out | unwanted(session.world, line)
        whole = {n: q for n, q in own.items() if item_id(session.world, n) not in gone} | whole
    if not whole and session.cart:
        named = session.named(line, sure=False)
        return tuple(own.items()), [n for n in questioned if item_id(session.world, n) in named]
    return tuple(whole.items()), questioned


def _called_off_by_name(heard: Heard, ruling: Ruling) -> Ruling:
    """An order that is emptied; where the line names some of its goods and has no word for all,
    only these leave it, or only these stay: "the oil I'd rather not. Take it off"."""
    session, line, offer = heard.session, heard.line, heard.next_with("cart")
    named, staying = session.named(line) & session.cart.keys(), kept_by(session, line)
    every = (
        takes_all(line)
        or patterns.EVERY.search(line)
        or session.named(line, sure=False) >= session.cart.keys()
    )
    if not named or every or offer is None:
        return ruling
    stays = staying & session.cart.keys() or session.cart.keys() - named
    names = session.world.by_id
    left = tuple((names[i].item_name, n) for i, n in session.cart.items() if i in stays)
    changed = replace(bare(ruling.proposal, offer), cart=left)
    return ruling.because("put_back", changed, lines().safe[offer])


def _spoken_of(whole: CartLines, line: str) -> CartLines:
    """An order without goods that a model made up beside others: words that are not listed and
    stand for none ("something"), or that no word of the line is like."""
    dull = knowledge().no_goods | knowledge().dull
    kept = tuple(told for told in whole if not (words := _words(told[0])) or not words <= dull)
    typed = line.casefold().split()
    said = tuple(
        told
        for told in kept
        if not (words := _words(told[0]))
        or any(fuzz.ratio(word, other) >= LIKE for word in words for other in typed)
    )
    return said if any(not _words(name) for name, _ in said) else kept


def _words(name: str) -> set[str]:
    """The words for goods that are not listed; none of a good that is."""
    return set(name[len(UNLISTED) :].casefold().split()) if name.startswith(UNLISTED) else set()


def _meant(heard: Heard, asked: CartLines) -> CartLines:
    """An order in which the one new good that the line gives no evidence of is the one that it
    describes, where the linker can tell: "two of those little bags for her pillow"."""
    session, line = heard.session, heard.line
    known = evident_goods(session, line) | ruled_out(session.world, line)
    ids = [item_id(session.world, name) for name, _ in asked]
    guessed = [i for i in ids if i is not None and i not in known]
    named = session.named(line, sure=False) | session.cart.keys()
    unnamed = [i for i in ids if i is not None and i not in named]
    pointed = pointed_at(heard, line) if len(unnamed) == 1 else ()
    if pointed and pointed[0][0] not in dict(asked):
        meant = {session.world.by_id[unnamed[0]].item_name: pointed[0][0]}
        return tuple((meant.get(name, name), number) for name, number in asked)
    by_name = ordered_by_name(session, line)
    if len(unnamed) == len(by_name) == 1 and not by_name.keys() & {*ids}:  # not the one in view
        (other,), goods = by_name, session.world.by_id
        meant = {goods[unnamed[0]].item_name: goods[other].item_name}
        return tuple((meant.get(name, name), number) for name, number in asked)
    if len(guessed) != 1 or (tells_a_need(line) and turned_down(session, line)):
        return asked
    items = session.world.inventory
    near = session.linker.nearness(line, [in_short(item) for item in items])
    others = [(n, i) for n, i in enumerate(items[: len(near)]) if i.item_id not in session.cart]
    nearest, best = max(others, key=lambda told: near[told[0]], default=(-1, None))
    if best is None or near[nearest] < DESCRIBED or best.item_id in ids:
        return asked
    return tuple(
        (best.item_name if i == guessed[0] else name, number)
        for i, (name, number) in zip(ids, asked, strict=True)
    )


def _lost(heard: Heard, consent: Consent, asked: CartLines, out: frozenset[str]) -> list[str]:
    """Ids of goods that leave the cart though the line has no words for that; `out` may leave."""
    session, line = heard.session, heard.line
    kept = evident_lines(session, line, asked)
    lost = [i for i in lost_goods(session, line, kept) if i not in out]
    told = session.named(line, sure=False) & session.cart.keys()
    rest = line
    if turned_down(session, line):  # it is not in the order, and takes nothing out
        rest = patterns.NOT_THAT.sub(" ", line)
        consent = session.read(rest).consent or consent
    words = consent.calls_off() or (not told and (puts_back(rest) or declines(rest)))
    staying = kept_by(session, line)
    replaces = consent.replaces() and bool(kept)  # "read it back" puts nothing back
    replaces = replaces and not (patterns.JUST_ONE.search(line) and not session.named(line))
    if replaces and not words and told and not only_these(session, line):
        return [i for i in lost if i not in told or i in staying]  # the rest stays
    words = words or replaces
    single = put_back(session.world, line) & session.cart.keys()
    if single and not takes_all(line):
        return [i for i in lost if i not in single]
    if not lost or not (words or is_swap(session, line, lost, kept)):
        return lost
    return [i for i in lost if i in staying]


def _evident(heard: Heard, ruling: Ruling, asked: CartLines, lost: list[str]) -> Ruling:
    """An order with what it loses put back, and without goods that the line gives no evidence of,
    which are asked about; with goods that the line orders by name and the model leaves out."""
    session, line, proposal = heard.session, heard.line, ruling.proposal
    kept = evident_lines(session, line, asked)
    beside, alike = _ordered_beside(session, line, asked)
    kept += beside
    if kept == asked and not (lost or alike):
        return ruling
    back = tuple((session.world.by_id[i].item_name, session.cart[i]) for i in lost)
    cart = (*back, *kept) or tuple(held(session).items())
    unsaid = _unsaid(heard, (*asked, *alike), kept)
    wanted = kept or session.cart or not fits(session.world, line)
    if unsaid and wanted and not session.pending:
        return _asked_goods(heard, ruling, (*back, *asked, *alike), cart, unsaid)
    if kept == asked and not lost:
        return ruling
    if not kept and not session.cart:
        return _nothing_wanted(heard, ruling)
    if not back and not kept and session.cart.keys() <= ruled_out(session.world, line):
        return heard.cleared(ruling)
    reason = "not_named" if kept != asked else "not_called_off"
    changed = replace(proposal, cart=cart, change=None)
    return ruling.because(reason, changed, lines().safe[proposal.state])


def _ordered_beside(session: Session, line: str, asked: CartLines) -> tuple[CartLines, CartLines]:
    """Goods that a line orders by name and an order leaves out; those that are like some in it,
    which may be meant by the same words, apart."""
    if session.named(line) <= {item_id(session.world, name) for name, _ in asked}:
        return (), ()
    clauses = ordering_clauses(session, line, joins=True)
    clauses = [clause for clause in clauses if not patterns.IN_THE_PLACE.search(clause)]
    clauses += [line] if is_a_list(session, line) else []
    clauses = [patterns.WHAT_FOR.sub(" ", clause) for clause in clauses]
    known = frozenset().union(*(name_stems(name) for name, _ in asked))
    over = dict(told for clause in clauses for told in passed_over(session, clause, asked))
    alike = tuple((name, n) for name, n in over.items() if name_stems(name) & known)
    return tuple(told for told in over.items() if told not in alike), alike


def only_asked_about(session: Session, line: str, asked: CartLines) -> list[str]:
    """Names of goods that are new in an order, where the line only asks about them."""
    told = session.exchanges[-1].outcome if session.exchanges else ""
    parts = patterns.ASKING_PART.split(without_ones(without_echoes(line, told)))
    asking = [part for part in parts if only_asks(session, part)]
    others = [part for part in parts if part not in asking]
    ordering = any((orders(part) or adds(part)) and not _echoes(session, part) for part in others)
    new = {i for name, _ in asked if (i := item_id(session.world, name))} - session.cart.keys()
    adding = len(new) == 1 and any(_adds_unnamed(session, part) for part in others)
    only = frozenset() if adding else only_asked(session, line)
    priced = bool(asking or "?" in line) and asks_what_it_costs(line)
    ids = only | (frozenset() if ordering else asked_about(session, line))
    if orders_nothing(session, line) or (not ordering and (priced or any(map(_other, asking)))):
        ids |= new  # "how much is that, then?", "and the other one?"
    ids |= remembered(session, line)
    ids -= session.cart.keys() | (held_before(session) if goes_back(line) else frozenset())
    ids -= missing(session, line).keys()
    if priced:  # "what is one of the ropes?" beside an order of ten
        ids |= only & session.cart.keys()
    return [name for name, _ in asked if item_id(session.world, name) in ids]


def _adds_unnamed(session: Session, part: str) -> bool:
    """Whether a part of a line adds goods under a name that nothing has: "and the little book"."""
    strange = telling(clean_utterance(part).casefold()) and not refers(part)
    return bool(orders(part) and adds(part) and strange and not session.named(part, sure=False))


def _echoes(session: Session, part: str) -> bool:
    """Whether all numbers of a part of a line are such as the merchant just told: "twelve days,
    good"."""
    return not (wants(part) or session.named(part, sure=False)) and (
        numbers_in_line(part) <= numbers_heard(session)
    )


def _other(part: str) -> bool:
    """Whether a part of a line asks in brief for the other of some goods."""
    return bool(patterns.BRIEFLY.search(part) and patterns.OTHER.search(part.casefold()))


def orders_nothing(session: Session, line: str) -> bool:
    """Whether a line denies an order, and the parts that ask nothing make none: "I am not ordering
    any", "nobody said buy anything yet"."""
    if not patterns.NOT_ORDERING.search(line):
        return False
    parts = [p for p in patterns.ASKING_PART.split(line) if not patterns.NOT_ORDERING.search(p)]
    parts = [p for p in parts if not (does_not_want(p) or asks_what_it_costs(p))]
    return not any(orders(p) and not only_asks(session, p) for p in parts)


def _unsaid(heard: Heard, whole: CartLines, kept: CartLines) -> Cart:
    """New goods of an order to ask about: those the line gives no evidence of, and those that are
    like some in it. None that it rules out, and none of a line that orders nothing. None at
    all where there are more than MOST_ASKED."""
    session, line = heard.session, heard.line
    wants = orders(line) or adds(line) or session.named(line, sure=False)
    if "?" in line or tells_a_need(line) or not wants:
        return {}
    known = ruled_out(session.world, line) | session.cart.keys() | turned_down(session, line)
    new = [told for told in whole if told not in kept and not told[0].startswith(UNLISTED)]
    new = [told for told in new if item_id(session.world, told[0]) not in known]
    return resolve_cart(session.world, new)[0] if len(new) <= MOST_ASKED else {}


def _asked_goods(
    heard: Heard, ruling: Ruling, whole: CartLines, cart: CartLines, unsaid: Cart
) -> Ruling:
    """An order without its unsaid goods, and the question whether these are meant."""
    session, proposal = heard.session, ruling.proposal
    sold = tuple(told for told in whole if not told[0].startswith(UNLISTED))
    names = speak_cart(session.world, unsaid).replace("__", " ")
    if dict(cart) == held(session):
        action = bare(proposal, session.procedure.fallback)
        told = lines().ask["goods"]
    else:
        action = replace(proposal, cart=cart, change=None)
        told = f"{lines().safe[proposal.state]} {lines().ask['also']}"
    ruling = ruling.because("not_named", action, told.format(goods=names))
    pending = replace(proposal, cart=sold, change=None)
    return replace(ruling, withheld=Withheld("asked_goods"), quoted=names, pending=pending)


def _nothing_wanted(heard: Heard, ruling: Ruling) -> Ruling:
    """In place of an order of goods that nobody asked for: goods that fit the line, or a
    question."""
    session, line = heard.session, heard.line
    found = suited(session, line) if tells_a_need(line) else fits(session.world, line)
    found = [item for item in found if item.item_id not in turned_down(session, line)]
    if found:
        return heard.shown(ruling, "not_named", [item.item_name for item in found])
    fallback = bare(ruling.proposal, session.procedure.fallback)
    if not session.pending:
        return ruling.because("not_named", fallback, lines().safe[fallback.state])
    ruling = ruling.because("not_named", fallback, lines().ask["other"])
    return replace(ruling, withheld=Withheld("asked_other"))
