"""Guard `state`: nothing irreversible without evidence in the player's own words.

A model proposes; the rules below hold its proposal against the line the player typed and the
ledger, one after the other. What closes a sale, ends the talk, calls the order off, replaces it or
puts goods into it needs evidence that code reads (`haggle.language.evidence`). Each rule returns
what may stand, and says why where it is not what was proposed.

Where nobody reads the player's words (`NoLinker`) only the rules of the ledger hold, and a sale
closes by the game's own `Session.confirm` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from haggle.core import domain
from haggle.core.domain import Withheld
from haggle.language.evidence import Consent, Evidence
from haggle.trade.among import asked_about, without_ones
from haggle.trade.bidding import bargained
from haggle.trade.checks import contradicts_terms
from haggle.trade.counted import counted, numbered, passed_over
from haggle.trade.edits import carried_out, held
from haggle.trade.evident import evident_lines, is_swap, item_id, left_out, lost_goods, swapped_out
from haggle.trade.fitting import fits, fitting_needs, put_back, ruled_out, suited
from haggle.trade.knowledge import (
    adds,
    asks_about_goods,
    asks_for_goods,
    asks_what_it_costs,
    haggles,
    orders,
    tells_a_need,
    without_echoes,
)
from haggle.trade.ledger import Cart, resolve_cart, speak_cart
from haggle.trade.lines import lines
from haggle.trade.review import quoted, said, terms_of
from haggle.trade.session import Session
from haggle.trade.wire import UNLISTED, Proposal, Quantity

MOST_ASKED = 3  # goods without evidence that are asked about

Lines = tuple[tuple[str, Quantity], ...]


@dataclass(frozen=True, slots=True)
class Ruling(domain.Ruling[Proposal]):
    """What may stand of a proposal."""

    quoted: str = ""  # the part of that line that says what the player said, or may have meant
    withdraws: bool = False  # the player turned the review down
    pending: Proposal | None = None  # what a yes to the question of this turn carries out
    impossible: tuple[str, ...] = ()  # names of goods in numbers that nobody can buy


@dataclass
class Guard:
    """The rules for one turn. `written`: the proposal is not a guess (an oracle's, a person's)."""

    session: Session
    utterance: str
    written: bool = False
    consent: Consent | None = field(init=False, default=None)
    evidence: Evidence = field(init=False, default=Evidence("open"))

    def __post_init__(self) -> None:
        if self.written:
            return
        self.consent = self.session.read(self.utterance).consent
        session = self.session
        terms = terms_of(session, session.cart, session.sale_price)
        if terms and self.consent:
            self.evidence = self.consent.answer(terms)

    def rule(self, proposal: Proposal) -> Ruling:
        """The proposal as it may stand; its `action` is None where nothing of it can."""
        ruling = Ruling(proposal)
        if proposal.last != self.session.last:
            told = replace(proposal, last=self.session.last)
            ruling = ruling.because("inference", told)
        if not self.written:
            ruling = self._answered(ruling)
        ruling = self._legal(ruling)
        consent = self.consent
        if consent is None or ruling.action is None or ruling.line:
            return ruling
        steps = (self._ending, self._countable, self._goods, self._bid, self._put_back, self._shelf)
        for step in steps:
            ruling = step(ruling, consent)
        return ruling

    @property
    def _states(self) -> set[str]:
        return set(self.session.legal_states())

    def _answered(self, ruling: Ruling) -> Ruling:
        """A line that only answers the review, or only calls the order off, means the same in every
        shop, whatever the model makes of it."""
        session, proposal = self.session, ruling.action
        assert proposal is not None
        procedure = session.procedure
        verdict = self.evidence.verdict
        clears = procedure.state(proposal.state).may_clear and proposal.cart == ()
        if verdict == "cancels" and session.cart and not clears:
            cleared = _casual(proposal, procedure.fallback, cart=())
            return ruling.because("called_off", cleared, said(session, "called_off"))
        if not session.review_is_fresh:
            return ruling
        if verdict == "refuses":
            kept = _casual(proposal, procedure.fallback)
            ruling = ruling.because("refused", kept, said(session, "refused"))
            return replace(ruling, withdraws=True)
        if verdict == "affirms" and not procedure.is_critical(proposal.state):
            committed = _casual(proposal, procedure.after_review(session.last))
            return ruling.because("agreed", committed, lines().safe[committed.state])
        return ruling

    def _legal(self, ruling: Ruling) -> Ruling:
        """Only states that may follow; a critical one only with evidence, else the review again."""
        session, proposal = self.session, ruling.action
        assert proposal is not None
        withheld: Evidence | None = None
        if proposal.state not in self._states:
            withheld = Evidence("open", "transition")
        elif session.procedure.is_critical(proposal.state):
            withheld = self._withheld()
        if withheld is None:
            return ruling
        mandatory = next(
            (s for s in session.procedure.mandatory(proposal.state) if s in self._states), None
        )
        if mandatory is None:
            return ruling.because(withheld.reason, None)
        line = "" if withheld.reason == "transition" else said(session, withheld.reason, withheld)
        again = replace(proposal, state=mandatory)
        ruling = ruling.because(withheld.reason, again, line or lines().safe[mandatory])
        if withheld.reason == "transition":
            return ruling
        told = Withheld(withheld.reason, withheld.words)
        return replace(ruling, withheld=told, quoted=f"'{quoted(withheld.words)}'")

    def _withheld(self) -> Evidence | None:
        """Why the sale may not close now; None when it may."""
        if self.written:
            price = self.session.sale_price or 0.0
            other = contradicts_terms(self.utterance, self.session.cart, price)
            return Evidence("open", "other_terms") if other else None
        if self.session.world.confirmation == "explicit" or self.consent is None:
            return Evidence("open", "confirmation")
        if self.evidence.verdict != "affirms":
            return replace(self.evidence, reason=self.evidence.reason or "unclear")
        return None if self.session.review_is_fresh else Evidence("open", "renewed")

    def _ending(self, ruling: Ruling, consent: Consent) -> Ruling:
        """No end of the talk without a farewell or abuse, unless a sale was just made; no second
        order of what was sold in a farewell."""
        session, proposal = self.session, ruling.action
        assert proposal is not None
        procedure = session.procedure
        ordering = procedure.state(proposal.state).payload == "cart"
        wanted = {item_id(session.world, name) for name, _ in carried_out(session, proposal)}
        same = session.sales and wanted <= session.sales[-1].items.keys()
        sold = same and not session.cart and not orders(self.utterance)
        if ordering and sold and consent.leaves() and "?" not in self.utterance:
            end = next(s for s in procedure.states if procedure.state(s).resets)
            if end in self._states:
                return ruling.because("farewell", _casual(proposal, end), lines().safe[end])
        known = procedure.states.get(session.state)
        parting = known is not None and known.clears and known.needs_cart
        if not procedure.state(proposal.state).resets or parting or consent.leaves():
            return ruling
        safe = lines().safe[procedure.fallback]
        return ruling.because("no_farewell", _casual(proposal, procedure.fallback), safe)

    def _countable(self, ruling: Ruling, _consent: Consent) -> Ruling:
        """New goods that the line wants minus three or half a piece of are left out."""
        session, proposal = self.session, ruling.action
        assert proposal is not None
        refused = session.uncountable(self.utterance)
        if not refused or session.procedure.state(proposal.state).payload != "cart":
            return ruling
        asked = carried_out(session, proposal)
        kept = tuple(line for line in asked if item_id(session.world, line[0]) not in refused)
        if len(kept) == len(asked) and not any(n.startswith(UNLISTED) for n, _ in asked):
            return ruling
        kept = tuple(line for line in kept if not line[0].startswith(UNLISTED))
        names = tuple(session.world.by_id[i].item_name for i in sorted(refused))
        cart = kept or tuple(held(session).items())
        return replace(
            ruling.because("quantity", replace(proposal, cart=cart, change=None)), impossible=names
        )

    def _goods(self, ruling: Ruling, consent: Consent) -> Ruling:
        """No goods that are ruled out, or neither named nor meant of those shown nor in the cart;
        no cart called off or replaced without words for it."""
        session, proposal = self.session, ruling.action
        assert proposal is not None
        state = session.procedure.state(proposal.state)
        if state.may_clear and proposal.cart == () and session.cart:
            return ruling if consent.calls_off() else self._kept(ruling, "not_called_off")
        if state.payload != "cart":
            return ruling
        before = carried_out(session, proposal)
        out = swapped_out(session, self.utterance, before)
        asked = tuple(told for told in before if item_id(session.world, told[0]) not in out)
        asked = counted(session, self.utterance, asked)
        if asked != before:
            proposal = replace(proposal, cart=asked, change=None)
            ruling = replace(ruling, action=proposal)
        if new := self._only_asked_about(asked):
            return self._shown(ruling, "asked_about", new)
        kept = evident_lines(session, self.utterance, asked)
        lost = [i for i in lost_goods(session, self.utterance, kept) if i not in out]
        words = consent.replaces() or consent.calls_off()
        if lost and (words or is_swap(session, self.utterance, lost, kept)):
            lost = []
        over = passed_over(session, self.utterance, asked)
        if over and not kept and (sure := numbered(session, self.utterance, over)):
            kept, over = sure, tuple(told for told in over if told not in sure)
        if kept == asked and not lost and not over:
            return ruling
        names = {session.world.by_id[i].item_name: session.cart[i] for i in lost}
        cart = (*names.items(), *kept) or tuple(held(session).items())
        unsaid = self._unsaid((*asked, *over), kept)
        wanted = kept or session.cart or not fits(session.world, self.utterance)
        if unsaid and wanted and not session.pending:
            reason = "passed_over" if over else "not_named"
            return self._asked_goods(ruling, reason, (*names.items(), *asked, *over), cart, unsaid)
        if kept == asked and not lost:
            return ruling
        if not kept and not session.cart:
            return self._nothing_wanted(ruling)
        if (
            not names
            and not kept
            and session.cart.keys() <= ruled_out(session.world, self.utterance)
        ):
            return self._cleared(ruling)
        reason = "not_named" if kept != asked else "not_called_off"
        line = lines().safe[proposal.state]
        return ruling.because(reason, replace(proposal, cart=cart, change=None), line)

    def _only_asked_about(self, asked: Lines) -> list[str]:
        """Names of goods that are new in an order, where the line asks about them and orders
        nothing."""
        session, line = self.session, self.utterance
        told = session.exchanges[-1].outcome if session.exchanges else ""
        if orders(without_ones(without_echoes(line, told))):
            return []
        ids = asked_about(session, line) - session.cart.keys()
        return [name for name, _ in asked if item_id(session.world, name) in ids]

    def _unsaid(self, whole: Lines, kept: Lines) -> Cart:
        """New goods of an order to ask about: those the line gives no evidence of, and those it
        names that the model left out. None that it rules out, and none of a line that orders
        nothing. None at all where there are more than MOST_ASKED."""
        world, line = self.session.world, self.utterance
        wants = orders(line) or adds(line) or self.session.named(line, sure=False)
        if "?" in line or tells_a_need(line) or not wants:
            return {}
        known = ruled_out(world, line) | self.session.cart.keys()
        new = [told for told in whole if told not in kept and not told[0].startswith(UNLISTED)]
        new = [told for told in new if item_id(world, told[0]) not in known]
        return resolve_cart(world, new)[0] if len(new) <= MOST_ASKED else {}

    def _asked_goods(
        self, ruling: Ruling, reason: str, whole: Lines, cart: Lines, unsaid: Cart
    ) -> Ruling:
        """An order without its unsaid goods, and the question whether these are meant."""
        session, proposal = self.session, ruling.action
        assert proposal is not None
        sold = tuple(told for told in whole if not told[0].startswith(UNLISTED))
        goods = speak_cart(session.world, unsaid).replace("__", " ")
        if dict(cart) == held(session):
            action = _casual(proposal, session.procedure.fallback)
            told = lines().ask["goods"]
        else:
            action = replace(proposal, cart=cart, change=None)
            told = f"{lines().safe[proposal.state]} {lines().ask['also']}"
        ruling = ruling.because(reason, action, told.format(goods=goods))
        pending = replace(proposal, cart=sold, change=None)
        return replace(ruling, withheld=Withheld("asked_goods"), quoted=goods, pending=pending)

    def _nothing_wanted(self, ruling: Ruling) -> Ruling:
        """In place of an order of goods that nobody asked for: goods that fit the line, or a
        question."""
        proposal = ruling.action
        assert proposal is not None
        session, line = self.session, self.utterance
        found = suited(session, line) if tells_a_need(line) else fits(session.world, line)
        if fitting := [item.item_name for item in found]:
            return self._shown(ruling, "not_named", fitting)
        fallback = _casual(proposal, self.session.procedure.fallback)
        if not self.session.pending:
            return ruling.because("not_named", fallback, lines().safe[fallback.state])
        ruling = ruling.because("not_named", fallback, lines().ask["other"])
        return replace(ruling, withheld=Withheld("asked_other"))

    def _shown(self, ruling: Ruling, reason: str, names: Sequence[str]) -> Ruling:
        """The shelf in place of what was proposed, where it may follow."""
        proposal, states = ruling.action, self.session.procedure.states
        assert proposal is not None
        shelf = next((s for s in self._states if states[s].payload == "show"), None)
        if shelf is None or not names:
            return ruling
        shown = replace(_casual(proposal, shelf), show=tuple(names))
        priced = asks_what_it_costs(self.utterance)
        return ruling.because(reason, shown, lines().prices if priced else lines().safe[shelf])

    def _cleared(self, ruling: Ruling) -> Ruling:
        """All goods put back."""
        proposal = ruling.action
        assert proposal is not None
        cleared = _casual(proposal, self.session.procedure.fallback, cart=())
        return ruling.because("called_off", cleared, said(self.session, "called_off"))

    def _put_back(self, ruling: Ruling, _consent: Consent) -> Ruling:
        """Goods that the line takes out of the order go, also where the model talks past it."""
        session, proposal = self.session, ruling.action
        assert proposal is not None
        states, state = session.procedure.states, session.procedure.state(proposal.state)
        back = put_back(session.world, self.utterance) | left_out(session, self.utterance)
        back &= session.cart.keys()
        if not back or state.payload == "cart" or state.resets or state.clears:
            return ruling
        if not session.cart.keys() - back:
            return self._cleared(ruling)
        offer = next((s for s in self._states if states[s].payload == "cart"), None)
        if offer is None:
            return ruling
        left = {
            session.world.by_id[i].item_name: n for i, n in session.cart.items() if i not in back
        }
        changed = replace(_casual(proposal, offer), cart=tuple(left.items()))
        return ruling.because("put_back", changed, lines().safe[offer])

    def _shelf(self, ruling: Ruling, _consent: Consent) -> Ruling:
        """Goods that a line asks for are shown, where the model would talk of other things, or
        review an order to which nothing was agreed."""
        session, proposal = self.session, ruling.action
        assert proposal is not None
        world, line = session.world, self.utterance
        if ruling.reasons or proposal.cart == ():
            return ruling
        if session.procedure.is_review(proposal.state) and self.evidence.verdict != "affirms":
            needed = [item.item_name for item in fitting_needs(session, line)]
            return self._shown(ruling, "asked_for", needed)
        if proposal.state != session.procedure.fallback:
            return ruling
        ids = session.named(line) - ruled_out(world, line) - session.cart.keys()
        named = [world.by_id[i] for i in sorted(ids) if world.by_id[i].for_sale]
        told = asks_about_goods(line, session.read(line))  # is answered as it is
        asks = asks_for_goods(line, named=bool(named)) or (named and asks_what_it_costs(line))
        if told or not asks or (ids and not named):  # known, and not sold
            return ruling
        return self._shown(
            ruling, "asked_for", [i.item_name for i in named or suited(session, line)]
        )

    def _bid(self, ruling: Ruling, consent: Consent) -> Ruling:
        """A bid below nothing is none, nor is a question that speaks of no price. A bid that is
        passed over is answered."""
        session, proposal = self.session, ruling.action
        assert proposal is not None
        if session.procedure.state(proposal.state).payload != "bid":
            open_ = self.evidence.verdict == "open" and not ruling.reasons
            bid = bargained(session, self.utterance, proposal, self._states) if open_ else None
            if bid is None:
                return ruling
            states = session.procedure.states
            bidding = next((s for s in states if states[s].payload == "bid"), bid.state)
            return ruling.because("bid", bid, lines().safe[bidding])
        line, reading = self.utterance, session.read(self.utterance)
        others = asks_for_goods(line, named=bool(session.named(line) - session.cart.keys()))
        asks = asks_about_goods(line, reading) or (others and "?" in line)
        if not haggles(line):
            fitting = [item.item_name for item in fitting_needs(session, line)]
            return self._shown(ruling, "no_bid", session.in_view() if asks else fitting)
        if proposal.bid is None or not consent.bids_below_nothing():
            return ruling
        return ruling.because("below_nothing", replace(proposal, bid=0))

    def _kept(self, ruling: Ruling, reason: str) -> Ruling:
        proposal = ruling.action
        assert proposal is not None
        safe = lines().safe[self.session.procedure.fallback]
        return ruling.because(reason, replace(proposal, cart=None), safe)


def _casual(proposal: Proposal, state: str, cart: Lines | None = None) -> Proposal:
    """The proposal with another state, that carries nothing but perhaps an empty cart."""
    return replace(proposal, state=state, cart=cart, change=None, show=None, bid=None)
