"""The trade as a domain, and the merchant: a model that acts in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from haggle.core import domain
from haggle.core.agent import MAX_TOKENS, Agent, Speech, complete
from haggle.core.domain import GUARDS, Guard, Level, Verdict, check_guard
from haggle.core.engine import Engine, Generation, Message
from haggle.core.turn import Turn
from haggle.trade import asking, checks, placeholders
from haggle.trade.about import introduced
from haggle.trade.agreement import agreement
from haggle.trade.bidding import answered
from haggle.trade.counted import taken_out
from haggle.trade.extremes import BY_PRICE
from haggle.trade.fitting import fitting, further
from haggle.trade.guard import rule
from haggle.trade.informed import informed
from haggle.trade.lines import lines
from haggle.trade.methods import METHODS
from haggle.trade.missing import missed
from haggle.trade.outcome import remember, told_as
from haggle.trade.records import TurnRecord
from haggle.trade.resolve import Resolved, degraded, resolve, safe_line, worded
from haggle.trade.ruling import Ruling
from haggle.trade.said import OneOfLines, lines_for
from haggle.trade.session import Session
from haggle.trade.speech import untrue_claims
from haggle.trade.telling import known_of
from haggle.trade.wanted import put_back
from haggle.trade.wire import Proposal, StateShape, WireConstraint

__all__ = [
    "GUARDS",
    "MAX_TOKENS",
    "Guard",
    "Merchant",
    "Trade",
    "check_guard",
    "constraint_for",
    "written",
]


class Trade:
    """Selling over a counter (ASTP, SIBP): a `haggle.core.domain.Domain` of sessions."""

    methods = tuple(METHODS)
    options = ("world", "confirmation", "embeddings")

    def agreement(self, right: str, answer: str, line: str) -> Verdict:
        """Compare state, cart and bid with those of the right answer."""
        return agreement(right, answer, line)

    def read_ahead(self, session: Session) -> None:
        """Embed what is known of the goods, where the linker embeds: once a shop."""
        world = session.world
        known = (told for item in world.inventory for told in known_of(item, world.currency))
        session.linker.nearness("", [*known])

    def messages(self, session: Session, line: str) -> tuple[Message, ...]:
        """What the model is asked."""
        return session.messages(line)

    def legal(self, session: Session, guard: Guard) -> WireConstraint | None:
        """The answers that may be decoded now."""
        return constraint_for(session, guard)

    def max_tokens(self, session: Session, compact: int) -> int:
        """The papers' answers are longer than compact ones."""
        return compact * session.codec.length

    def decode(self, session: Session, text: str) -> Proposal:
        """The proposal that a text is."""
        return session.codec.decode(text, session.procedure)

    def rule(self, session: Session, line: str, proposal: Proposal, level: Level) -> Ruling:
        """Hold a proposal against the player's line and the ledger; who says yes to the
        merchant's own question, or the same again, answers that."""
        if level != "written" and (meant := self._settled(session, line, proposal)):
            proposal = replace(meant, last=session.last, say=proposal.say)
            level = "written"  # the player's own word, no guess
        ruling = rule(session, line, proposal, written=level == "written")
        drawn = session.codec.speaks_after and ruling.line in lines().safe.values()
        return replace(ruling, line="") if drawn else ruling  # of the lines that fit the outcome

    def _settled(self, session: Session, line: str, proposal: Proposal) -> Proposal | None:
        """What the merchant's own question comes to by a line: the order as it is put right, or as
        it was asked about."""
        if session.pending and (cart := asking.corrected(session, line)):
            return replace(session.pending, cart=cart, change=None)
        agreed = asking.agrees(session, line) or asking.insists(session, line, proposal)
        return session.pending if agreed else None

    def unsure(self, session: Session, line: str, proposal: Proposal) -> Ruling | None:
        """A question about an order that the model does not believe in itself; none where the line
        takes something back, which is done first."""
        back = (
            put_back(session.world, line) | taken_out(session, line).keys()
        ) & session.cart.keys()
        settled = back or asking.corrected(session, line)
        if settled:
            return None
        return asking.question(session, line, proposal)

    def apply(
        self, session: Session, line: str, ruling: domain.Ruling[Proposal], level: Level
    ) -> Resolved:
        """Resolve what may stand against the ledger: stock, totals, counter-offers."""
        assert ruling.action is not None
        if not isinstance(ruling, Ruling):
            return informed(
                session, line, resolve(session, ruling.action, guarded=False), admit=True
            )
        resolved = resolve(session, ruling.action, guarded=True, impossible=ruling.impossible)
        if level != "written" or session.codec.speaks_after:
            guessed, priced = level != "written", BY_PRICE in ruling.reasons
            if guessed and session.codec.speaks_after:
                if not priced:
                    resolved = fitting(session, line, resolved)
                resolved = answered(session, line, resolved)
                resolved = missed(session, line, resolved)
            resolved = informed(session, line, resolved, admit=guessed, show=guessed and not priced)
            if guessed:
                resolved = introduced(session, line, further(session, line, resolved))
        told = tuple(reason for reason in ruling.reasons if reason != "inference")
        quoted = ruling.quoted if ruling.line else ""
        return replace(resolved, interventions=(*resolved.interventions, *told), quoted=quoted)

    def speaks_after(self, session: Session) -> bool:
        """As the session's format has it."""
        return session.codec.speaks_after

    def observed(self, session: Session, line: str, resolved: Resolved) -> tuple[Message, ...]:
        """What the model is asked for its line: the decision as it stands, and its outcome."""
        decided = told_as(session, line, resolved).messages()[1:-1]
        return (*session.messages(line), *decided)

    def sayable(
        self, session: Session, line: str, resolved: Resolved
    ) -> OneOfLines | tuple[str, ...]:
        """The merchant's lines that fit what happened."""
        return lines_for(session, line, resolved)

    def worded(self, session: Session, resolved: Resolved, say: str) -> Resolved:
        """The same turn in the model's line."""
        return worded(session, resolved, say)

    def degraded(self, session: Session, reason: str) -> Resolved:
        """The last state again, in a safe line; the ledger does not move."""
        return degraded(session, reason)

    def said_safely(self, session: Session, resolved: Resolved, line: str = "") -> Resolved:
        """The same turn in a line of code's own."""
        return safe_line(session, resolved, line)

    def problem(
        self,
        session: Session,
        resolved: Resolved,
        proposed: Proposal,
        level: Level,
        failed: Sequence[str],
    ) -> str:
        """What is wrong with a line: untrue numbers, a review of nothing, a sale told too soon."""
        if "numbers" in failed:
            return "numbers"
        procedure, state = session.procedure, resolved.proposal.state
        said = resolved.response
        if procedure.is_review(state):
            if not checks.review_complete(session.world, said):
                return "review"
        elif level != "written" and (untrue := untrue_claims(session, resolved)):
            return untrue[0]
        repeated = placeholders.repeated(resolved.proposal.say)  # "620 for 620 gold"
        return "repetition" if repeated else ""

    def failures(self, session: Session, resolved: Resolved) -> list[str]:
        """The checks that a turn fails; words that are the player's own are not checked."""
        said = resolved.response
        if resolved.quoted:
            own = said.npc_dialogue.replace(resolved.quoted, "")
            said = said.model_copy(update={"npc_dialogue": own})
        return checks.failures(
            session.world, session.procedure, session.last, said, resolved.extra_numbers
        )

    def settle(
        self,
        session: Session,
        line: str,
        proposal: Proposal | None,
        ruling: domain.Ruling[Proposal],
        resolved: Resolved,
        turn: Turn,
    ) -> TurnRecord:
        """Move ledger, review and history on, and complete the record."""
        told = vars(turn) | {
            "state": resolved.response.state,
            "proposed_state": proposal.state if proposal else "",
            "reported_last": proposal.last if proposal else "",
        }
        record = TurnRecord(**told, response=resolved.response, cart=resolved.cart)
        state = session.procedure.state(record.state)
        talks = state.payload == "show" or state.transparent
        waits = talks and "?" in line and record.cart == session.cart  # a question in between
        remember(session, line, resolved)
        session.settle(record.state, resolved.cart, resolved.sale_price)
        if isinstance(ruling, Ruling):
            session.pending = ruling.pending or (session.pending if waits else None)
            session.review = None if ruling.withdraws else session.review
            session.withheld = ruling.withheld is not None
        if resolved.shown:
            session.shown = resolved.shown
        return record


TRADE = Trade()


class Merchant(Agent[Session, Proposal, Resolved, TurnRecord]):
    """A model behind a counter."""

    def __init__(
        self,
        engine: Engine,
        guard: Guard = "state",
        max_tokens: int = MAX_TOKENS,
        temperature: float = 0.0,
        ask_below: float = 0.0,
        speech: Speech = "lines",
    ) -> None:
        super().__init__(TRADE, engine, guard, max_tokens, temperature, ask_below, speech)


def written(session: Session, line: str, text: str) -> TurnRecord:
    """A turn whose answer somebody wrote who does not guess: an oracle, a corpus, a person."""
    return complete(TRADE, session, line, Generation(text), "written")


def constraint_for(session: Session, guard: Guard) -> WireConstraint | None:
    """What the engine may produce in this turn under a guard level; None with the guard off."""
    if guard == "off":
        return None
    procedure, method = session.procedure, session.method
    names = session.world.sellable_names
    if guard == "state":
        states: Sequence[str] = session.legal_states()
        last: tuple[str, ...] = (session.last,)
    else:
        states = list(procedure.states)
        last = (procedure.start, *procedure.tracked)
    changes = method.changes and (guard == "schema" or bool(session.cart))
    shapes = tuple(
        StateShape.of(name, procedure.states[name], changes)
        for name in states
        if names or procedure.states[name].payload != "show"
    )
    return WireConstraint(
        wire=method.wire,
        last=last,
        states=shapes,
        item_names=names,
        contexts=tuple((name, procedure.states[name].context) for name in states),
        element4=4 in method.elements,
    )
