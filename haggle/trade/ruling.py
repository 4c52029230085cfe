"""What may stand of a proposal, and one turn as the guard's rules see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from haggle.core import domain
from haggle.language.evidence import Consent, Evidence
from haggle.trade.knowledge import asks_what_it_costs
from haggle.trade.lines import lines
from haggle.trade.procedure import Payload
from haggle.trade.review import said, terms_of
from haggle.trade.session import Session
from haggle.trade.wire import CartLines, Proposal


@dataclass(frozen=True, slots=True)
class Ruling(domain.Ruling[Proposal]):
    """What may stand of a proposal."""

    quoted: str = ""  # the part of that line that says what the player said, or may have meant
    withdraws: bool = False  # the player turned the review down
    pending: Proposal | None = None  # what a yes to the question of this turn carries out
    impossible: tuple[str, ...] = ()  # names of goods in numbers that nobody can buy

    @property
    def proposal(self) -> Proposal:
        """What stands so far, where something does."""
        assert self.action is not None
        return self.action


@dataclass
class Heard:
    """One turn: the session and a player's line, and what that line consents to. `written`: the
    proposal is not a guess (an oracle's, a person's), so the words are not read."""

    session: Session
    line: str
    written: bool = False
    consent: Consent | None = field(init=False, default=None)
    evidence: Evidence = field(init=False, default=Evidence("open"))

    def __post_init__(self) -> None:
        if self.written:
            return
        session = self.session
        self.consent = session.read(self.line).consent
        terms = terms_of(session.world, session.cart, session.sale_price)
        if terms and self.consent:
            self.evidence = self.consent.answer(terms, again=session.asked_again)

    @property
    def states(self) -> set[str]:
        """The states that may follow."""
        return set(self.session.legal_states())

    def next_with(self, payload: Payload) -> str | None:
        """A state with such a payload that may follow."""
        known = self.session.procedure.states
        return next((state for state in self.states if known[state].payload == payload), None)

    def shown(self, ruling: Ruling, reason: str, names: Sequence[str]) -> Ruling:
        """The shelf in place of what was proposed, where it may follow."""
        shelf = self.next_with("show")
        if shelf is None or not names:
            return ruling
        shown = replace(bare(ruling.proposal, shelf), show=tuple(names))
        priced = asks_what_it_costs(self.line)
        return ruling.because(reason, shown, lines().prices if priced else lines().safe[shelf])

    def cleared(self, ruling: Ruling) -> Ruling:
        """All goods put back."""
        cleared = bare(ruling.proposal, self.session.procedure.fallback, cart=())
        return ruling.because("called_off", cleared, said(self.session, "called_off"))


def bare(proposal: Proposal, state: str, cart: CartLines | None = None) -> Proposal:
    """The proposal with another state, that carries nothing but perhaps an empty cart."""
    return replace(proposal, state=state, cart=cart, change=None, show=None, bid=None)
