"""Guard `state`: nothing irreversible without evidence in the player's own words.

A model proposes; the rules below hold its proposal against the line the player typed and the
ledger, one after the other. What closes a sale, ends the talk, calls the order off, replaces it or
puts goods into it needs evidence that code reads (`haggle.language.evidence`). Each rule returns
what may stand, and says why where it is not what was proposed.

Where nobody reads the player's words (`NoLinker`) only the rules of the ledger hold, and a sale
closes by the game's own `Session.confirm` alone.
"""

from __future__ import annotations

from dataclasses import replace

from haggle.core.domain import Withheld
from haggle.language.evidence import Evidence
from haggle.trade import again, beside, extremes, ordered
from haggle.trade.bidding import bargained, told_bid
from haggle.trade.checks import contradicts_terms
from haggle.trade.edits import carried_out, held
from haggle.trade.evident import item_id
from haggle.trade.fitting import complained_of, fitting_needs, suited
from haggle.trade.knowledge import (
    SENTENCE_END,
    asks_about_goods,
    asks_for_goods,
    asks_for_less,
    asks_what_it_costs,
    declines,
    haggles,
    orders,
)
from haggle.trade.language import patterns
from haggle.trade.ledger import bid_amount
from haggle.trade.lines import lines
from haggle.trade.review import quoted, said
from haggle.trade.ruling import Heard, Ruling, bare
from haggle.trade.session import Session
from haggle.trade.wanted import ruled_out
from haggle.trade.wire import Proposal


def rule(session: Session, line: str, proposal: Proposal, *, written: bool = False) -> Ruling:
    """The proposal as it may stand; its `action` is None where nothing of it can. `written`: it is
    not a guess (an oracle's, a person's)."""
    heard, ruling = Heard(session, line, written), Ruling(proposal)
    if proposal.last != session.last:
        ruling = ruling.because("inference", replace(proposal, last=session.last))
    if not written:
        ruling = _answered(heard, ruling)
    ruling = _legal(heard, ruling)
    if heard.consent is None or ruling.action is None or ruling.line:
        return ruling
    for step in _STEPS:
        ruling = step(heard, ruling)
    return ruling


def _answered(heard: Heard, ruling: Ruling) -> Ruling:
    """A line that only answers the review, or only calls the order off, means the same in every
    shop, whatever the model makes of it."""
    session, proposal, verdict = heard.session, ruling.proposal, heard.evidence.verdict
    procedure = session.procedure
    clears = procedure.state(proposal.state).may_clear and proposal.cart == ()
    if verdict == "cancels" and session.cart and not clears:
        return heard.cleared(ruling)
    if not session.review_is_fresh:
        return ruling
    if verdict == "refuses":
        kept = bare(proposal, procedure.fallback)
        ruling = ruling.because("refused", kept, said(session, "refused"))
        return replace(ruling, withdraws=True)
    if verdict == "affirms" and not procedure.is_critical(proposal.state):
        committed = bare(proposal, procedure.after_review(session.last))
        return ruling.because("agreed", committed, lines().safe[committed.state])
    return ruling


def _legal(heard: Heard, ruling: Ruling) -> Ruling:
    """Only states that may follow; a critical one only with evidence, else the review again."""
    session, proposal, states = heard.session, ruling.proposal, heard.states
    withheld: Evidence | None = None
    if proposal.state not in states:
        withheld = Evidence("open", "transition")
    elif session.procedure.is_critical(proposal.state):
        withheld = _withheld(heard)
    if withheld is None:
        return ruling
    mandatory = next((s for s in session.procedure.mandatory(proposal.state) if s in states), None)
    if mandatory is None:
        return ruling.because(withheld.reason, None)
    line = "" if withheld.reason == "transition" else said(session, withheld.reason, withheld)
    again = replace(proposal, state=mandatory)
    ruling = ruling.because(withheld.reason, again, line or lines().safe[mandatory])
    if withheld.reason == "transition":
        return ruling
    told = Withheld(withheld.reason, withheld.words)
    return replace(ruling, withheld=told, quoted=f"'{quoted(withheld.words)}'")


def _withheld(heard: Heard) -> Evidence | None:
    """Why the sale may not close now; None when it may."""
    session = heard.session
    if heard.written:
        other = contradicts_terms(heard.line, session.cart, session.sale_price or 0.0)
        return Evidence("open", "other_terms") if other else None
    if session.world.confirmation == "explicit" or heard.consent is None:
        return Evidence("open", "confirmation")
    if heard.evidence.verdict != "affirms":
        return replace(heard.evidence, reason=heard.evidence.reason or "unclear")
    return None if session.review_is_fresh else Evidence("open", "renewed")


def _ending(heard: Heard, ruling: Ruling) -> Ruling:
    """No end of the talk without a farewell or abuse, unless a sale was just made; no second order
    of what was sold in a farewell."""
    session, line, proposal, consent = heard.session, heard.line, ruling.proposal, heard.consent
    assert consent is not None
    procedure = session.procedure
    ordering = procedure.state(proposal.state).payload == "cart"
    wanted = {item_id(session.world, name) for name, _ in carried_out(session, proposal)}
    same = session.sales and wanted <= session.sales[-1].items.keys()
    sold = same and not session.cart and not orders(line)
    if ordering and sold and consent.leaves() and "?" not in line:
        end = next(s for s in procedure.states if procedure.state(s).resets)
        if end in heard.states:
            return ruling.because("farewell", bare(proposal, end), lines().safe[end])
    known = procedure.states.get(session.state)
    parting = known is not None and known.clears and known.needs_cart
    if not procedure.state(proposal.state).resets or parting or consent.leaves():
        return ruling
    last = SENTENCE_END.split(line.strip())[-1]
    if session.exchanges and not session.cart and "?" not in line and patterns.GOOD_DAY.match(last):
        return ruling  # "Good evening.", at the end of a talk
    safe = lines().safe[procedure.fallback]
    return ruling.because("no_farewell", bare(proposal, procedure.fallback), safe)


def _bid(heard: Heard, ruling: Ruling) -> Ruling:
    """A bid below nothing is none, nor is a question that speaks of no price. A bid that is passed
    over is answered; one at the price that is asked is an agreement."""
    session, line, proposal, consent = heard.session, heard.line, ruling.proposal, heard.consent
    assert consent is not None
    if session.procedure.state(proposal.state).payload != "bid":
        open_ = heard.evidence.verdict == "open" and not ruling.reasons
        bid = bargained(session, line, proposal, heard.states) if open_ else None
        if bid is None:
            return ruling
        return ruling.because("bid", bid, lines().safe[heard.next_with("bid") or bid.state])
    if not haggles(line):
        others = asks_for_goods(line, named=bool(session.named(line) - session.cart.keys()))
        asks = asks_about_goods(line, session.read(line)) or (others and "?" in line)
        fitting = [item.item_name for item in fitting_needs(session, line)]
        return heard.shown(ruling, "no_bid", session.in_view() if asks else fitting)
    priced = [session.world.by_id[i] for i in sorted(session.named(line) - session.cart.keys())]
    if proposal.bid is None and priced and asks_what_it_costs(line) and not asks_for_less(line):
        return heard.shown(ruling, "no_bid", [i.item_name for i in priced if i.for_sale])
    wanted = bid_amount(proposal.bid, session.sale_price or 0.0, sum(session.cart.values()))
    review = next((s for s in heard.states if session.procedure.is_review(s)), None)
    if review and wanted == session.sale_price is not None and "?" not in line:  # "eleven, then"
        return ruling.because("agreed_price", bare(proposal, review), lines().safe[review])
    if not heard.written and (told := told_bid(session, line, proposal.bid)) != proposal.bid:
        return replace(ruling, action=replace(proposal, bid=told))
    if proposal.bid is None or not consent.bids_below_nothing():
        return ruling
    return ruling.because("below_nothing", replace(proposal, bid=0))


def _shelf(heard: Heard, ruling: Ruling) -> Ruling:
    """Goods that a line asks for are shown, where the model would talk of other things. An order is
    not reviewed before a line that turns it down, or tells another need."""
    session, line, proposal = heard.session, heard.line, ruling.proposal
    world, procedure = session.world, session.procedure
    if ruling.reasons or proposal.cart == ():
        return ruling
    agreed, offered = heard.evidence.verdict == "affirms", carried_out(session, proposal)
    if agreed and offered and dict(offered) == held(session):  # "yes, two" to the offer
        review = next((s for s in heard.states if procedure.is_review(s)), proposal.state)
        return replace(ruling, action=bare(proposal, review))
    if procedure.is_review(proposal.state) and not agreed:
        if declines(line) and "?" not in line:
            kept = bare(proposal, procedure.fallback)
            return ruling.because("refused", kept, said(session, "refused"))
        asked = patterns.BEFORE_ELSE.sub(" ", line)
        told = "?" in line or patterns.SOMETHING.search(asked) or patterns.NEEDS.search(line)
        needed = [item.item_name for item in fitting_needs(session, line)] if told else []
        return heard.shown(ruling, "asked_for", needed)
    if proposal.state != procedure.fallback:
        return ruling
    ids = session.named(line) - ruled_out(world, line) - session.cart.keys()
    named = [world.by_id[i] for i in sorted(ids) if world.by_id[i].for_sale]
    if not ids and "?" not in line and (helping := complained_of(session, line)):
        return heard.shown(ruling, "asked_for", helping)
    about = asks_about_goods(line, session.read(line))  # is answered as it is
    asks = asks_for_goods(line, named=bool(named)) or (named and asks_what_it_costs(line))
    if about or not asks or (ids and not named):  # known, and not sold
        return ruling
    wanted = named or suited(session, line)
    return heard.shown(ruling, "asked_for", [item.item_name for item in wanted])


_STEPS = (
    _ending,
    again.told_by_another,
    ordered.countable,
    ordered.goods,
    extremes.by_price,
    _bid,
    beside.also_ordered,
    beside.taken_back,
    beside.summed_up,
    _shelf,
)
