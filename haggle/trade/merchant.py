"""One turn, one function: `Merchant.reply` is the only turn there is.

Data generation, evaluation, the terminal chat and every server call it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from haggle.core.engine import Engine, Generation, GenerationRequest
from haggle.core.errors import HaggleError, nearest
from haggle.core.procedure import State
from haggle.core.storage import writable
from haggle.trade import checks, placeholders
from haggle.trade.guard import Guard as StateGuard
from haggle.trade.guard import Ruling
from haggle.trade.lines import lines
from haggle.trade.records import TurnRecord, Usage
from haggle.trade.resolve import Resolved, degraded, resolve, safe_line
from haggle.trade.session import Session, answer_text
from haggle.trade.wire import (
    Proposal,
    StateShape,
    WireConstraint,
    WireError,
    decode,
    is_strict_json,
)

Guard = Literal["off", "schema", "state"]
GUARDS: tuple[Guard, ...] = get_args(Guard)
MAX_TOKENS = 160  # the longest compact answer


def check_guard(name: str) -> Guard:
    """`name` as a guard level. Raises HaggleError naming the nearest known one."""
    for guard in GUARDS:
        if guard == name:
            return guard
    raise HaggleError(f"unknown guard {name!r}", hint=nearest(name, GUARDS))


@dataclass(frozen=True)
class Merchant:
    """A model behind a counter. `guard` says how much is enforced while decoding and after.

    off: the model's text as it comes. schema: well-formed answers about items of this shop only.
    state: only states legal from the true last state and the ledger, and nothing untrue is said.
    `trusted` is for what does not guess, an oracle or a person: words of doubt, or other goods, in
    a line taken for a yes are then no reason to ask again.
    """

    engine: Engine
    guard: Guard = "state"
    max_tokens: int = MAX_TOKENS
    temperature: float = 0.0
    trusted: bool = False

    def reply(self, session: Session, utterance: str, *, seed: int = 0) -> TurnRecord:
        """Answer one utterance and move the session on."""
        return self.reply_batch([(session, utterance)], seed=seed)[0]

    def reply_batch(
        self, pairs: Sequence[tuple[Session, str]], *, seed: int = 0
    ) -> list[TurnRecord]:
        """Answer one utterance in each of several independent sessions with one engine call."""
        requests = [self.request(session, utterance, seed) for session, utterance in pairs]
        answers = self.engine.generate(requests)
        return [
            self.complete(session, utterance, answer)
            for (session, utterance), answer in zip(pairs, answers, strict=True)
        ]

    def stream(
        self, session: Session, utterance: str, *, seed: int = 0
    ) -> Generator[str | TurnRecord]:
        """Answer one utterance: the model's text as it comes, then the finished turn.

        The pieces are unchecked text (a waiting line for people); only the finished turn counts.
        """
        for piece in self.engine.stream(self.request(session, utterance, seed)):
            if isinstance(piece, Generation):
                yield self.complete(session, utterance, piece)
            else:
                yield piece

    def request(self, session: Session, utterance: str, seed: int = 0) -> GenerationRequest:
        """What the engine is asked for this utterance."""
        max_tokens = self.max_tokens * (1 if session.method.wire == "compact" else 4)
        return GenerationRequest(
            messages=session.messages(utterance),
            constraint=constraint_for(session, self.guard),
            max_tokens=max_tokens,
            temperature=self.temperature,
            seed=seed,
        )

    def complete(self, session: Session, utterance: str, answer: Generation) -> TurnRecord:
        """Turn a model's text into a finished answer and move the session on.

        Parse, resolve against the ledger, fill placeholders, check; under guard `state` also
        repair. An answer that cannot be used degrades to a safe one and the trade stays put.
        """
        last = session.last
        proposal: Proposal | None = None
        ruling: Ruling | None = None
        try:
            proposal = decode(session.method.wire, answer.text, session.procedure)
        except WireError:
            resolved, proposed_failed = degraded(session, "unreadable"), ["format"]
        else:
            resolved, proposed_failed, ruling = self._resolve(session, utterance, proposal)
            if answer.finish_reason == "length" and self.guard == "state":
                resolved = safe_line(session, resolved)
        failed = _failures(session, resolved)
        withheld = ruling.withheld if ruling else None
        record = TurnRecord(
            player=writable(utterance),
            raw=writable(answer.text),
            response=resolved.response,
            last=last,
            state=resolved.response.state,
            proposed_state=proposal.state if proposal else "",
            reported_last=proposal.last if proposal else "",
            valid_json=is_strict_json(answer.text) and proposal is not None,
            cart=resolved.cart,
            usage=Usage(
                prompt_tokens=answer.prompt_tokens,
                completion_tokens=answer.completion_tokens,
                thought_tokens=answer.thought_tokens,
            ),
            latency_s=answer.latency_s,
            failed=failed,
            proposed_failed=proposed_failed or failed,
            interventions=list(resolved.interventions),
            withheld=withheld.reason if withheld else "",
            withheld_words=writable(withheld.words) if withheld else "",
        )
        session.record(utterance, answer_text(session, resolved.proposal, resolved.response))
        session.settle(record.state, resolved.cart, resolved.sale_price)
        session.last_line = ruling.line if ruling else ""
        if ruling is not None and ruling.withdraws:
            session.review = None
        if resolved.shown:
            session.shown = resolved.shown
        return record

    def _resolve(
        self, session: Session, utterance: str, proposal: Proposal
    ) -> tuple[Resolved, list[str], Ruling | None]:
        """The resolved turn, the checks that the proposal failed and had to be repaired, and how
        the guard ruled."""
        if self.guard != "state":
            return resolve(session, proposal, guarded=False), [], None
        ruling = StateGuard(session, utterance, self.trusted).rule(proposal)
        repaired = list(ruling.reasons)
        if ruling.proposal is None:
            return degraded(session, ruling.reasons[-1]), repaired, ruling
        resolved = resolve(session, ruling.proposal, guarded=True, impossible=ruling.impossible)
        told = tuple(reason for reason in ruling.reasons if reason != "inference")
        resolved = replace(resolved, interventions=(*resolved.interventions, *told))
        if ruling.line:
            resolved = safe_line(session, resolved, ruling.line)
            return replace(resolved, quoted=ruling.quoted), repaired, ruling
        problem = _problem(session, resolved, proposal, self.trusted)
        if problem:
            repaired.append(problem)
            resolved = safe_line(session, resolved)
        return resolved, repaired, ruling


def _problem(session: Session, resolved: Resolved, proposal: Proposal, trusted: bool) -> str:
    """What is wrong with the line of a turn that may stand otherwise; empty where nothing is."""
    if "numbers" in _failures(session, resolved):
        return "numbers"
    procedure, state = session.procedure, resolved.proposal.state
    said = resolved.response
    if procedure.is_review(state):
        if not checks.review_complete(session.world, said):
            return "review"
    elif (
        resolved.cart
        and not (trusted or procedure.is_critical(state))
        and checks.says_concluded(said.npc_dialogue, lines().concluded)
    ):
        return "concluded"
    return "repetition" if placeholders.repeated(proposal.say) else ""  # "620 gold for 620 gold"


def _failures(session: Session, resolved: Resolved) -> list[str]:
    said = resolved.response
    if resolved.quoted:
        own = said.npc_dialogue.replace(f"'{resolved.quoted}'", "")
        said = said.model_copy(update={"npc_dialogue": own})
    return checks.failures(
        session.world,
        session.procedure,
        session.last,
        said,
        resolved.extra_numbers,
    )


def _shape(name: str, state: State, changes: bool) -> StateShape:
    return StateShape(name, state.payload, state.may_clear, changes and state.payload == "cart")


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
        _shape(name, procedure.states[name], changes)
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
