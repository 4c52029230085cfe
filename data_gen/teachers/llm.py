"""A model as the merchant, by any method on any engine; every answer is checked before it counts.

The dialogue itself is kept in the data set's compact session. The teacher sees it through a session
of its own method (the view), whose ledger follows the kept one after every turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from data_gen.acts import Act
from data_gen.play import as_meant
from data_gen.teachers.asking import Asking, Rejected, checked_ending, until_accepted
from data_gen.teachers.config import TeacherConfig
from data_gen.teachers.convert import CENT, Truth, cart_text, keep_ledger, to_compact
from data_gen.teachers.reading import Reader
from data_gen.teachers.report import RoleTally
from haggle.core.agent import complete
from haggle.core.domain import Level
from haggle.core.engine import Engine, Generation
from haggle.grammar.json_text import DecodeError
from haggle.trade import placeholders
from haggle.trade.merchant import TRADE, Merchant, written
from haggle.trade.methods import get_method
from haggle.trade.papers import full_json
from haggle.trade.records import TurnRecord
from haggle.trade.resolve import resolve
from haggle.trade.session import Session
from haggle.trade.wire import Proposal, encode_compact
from haggle.trade.world import money

_SAID = {
    "transition": "that state may not follow here",
    "critical": "that state may not follow here",
    "inference": "the last trade context is {last!r}",
    "sellable": "it named an item that is not in the inventory, or a wrong price per piece",
    "stock": "it sold more pieces than are in stock",
    "price": "original_price is not the sum of the items",
    "floor": "it sold below the least this merchant takes",
    "numbers": "it spoke a number that is not true",
    "format": "it was not of the form asked for",
    "other_terms": "the player agreed to other terms than those reviewed: review them first",
    "empty_cart": "nothing of that is sold here, so there is no cart to offer",
    "quantity": "nobody can buy so many pieces of it: leave it out",
    "nothing_shown": "none of the items shown is sold here",
}
_NO_YES = "the player's words are no plain yes to the review: review it again"


def write(session: Session, player: str, proposal: Proposal, act: Act | None = None) -> TurnRecord:
    """Move a compact session on by a proposal, through the one turn there is. `act` is what the
    player meant, where that is known."""
    text = encode_compact(as_meant(session, player, proposal, act), session.procedure)
    return written(session, player, text)


def objections(record: TurnRecord) -> list[str]:
    """What was wrong with a turn; nothing when it passed every check untouched."""
    return [*record.proposed_failed, *record.failed, *record.interventions]


class LlmTeacher:
    """A model behind the counter."""

    def __init__(self, config: TeacherConfig, engine: Engine) -> None:
        self.config = config
        self.method = get_method(config.method)
        self.merchant = Merchant(engine, config.guard, config.max_tokens, config.temperature)

    def view(self, session: Session) -> Session:
        """The session as this teacher's method shows it, at its opening."""
        return Session(session.world, procedure=session.procedure, method=self.method)

    def follow(self, view: Session, session: Session, record: TurnRecord, note: str) -> None:
        """Show the teacher the turn that was kept; `note` is the ledger before it."""
        line = view.linked_line(record.player)
        if view.codec.states_totals:
            view.record(note, line, full_json(record.response, 4 in self.method.elements))
        else:
            kept = replace(session.exchanges[-1], note=note, player=line)
            view.exchanges = (*view.exchanges, kept)
        for name in ("world", "last", "state", "cart", "sale_price", "deal", "shown", "sales",
                     "review"):  # fmt: skip
            setattr(view, name, getattr(session, name))

    def propose(
        self,
        session: Session,
        view: Session,
        player: str,
        seed: int,
        reader: Reader,
        tally: RoleTally,
        truth: Truth | None = None,
    ) -> Asking[Proposal | None]:
        """An accepted answer to a player's line as a compact proposal; None when there is none.

        `truth` is what the oracle would do; without it the answer is held to the checks only.
        """
        proposals = yield from until_accepted(
            "teacher",
            [self.merchant.request(view, player, seed)],
            lambda _, answer: self.accept(session, view, player, answer, reader, truth),
            self.config.max_attempts,
            tally,
        )
        return proposals.get(0)

    def accept(
        self,
        session: Session,
        view: Session,
        player: str,
        answer: Generation,
        reader: Reader,
        truth: Truth | None = None,
    ) -> Proposal:
        """The answer as a compact proposal for `session`. Raises Rejected with the reason."""
        text = checked_ending(answer)
        try:
            proposal = self.method.codec.decode(text, session.procedure)
        except DecodeError as error:
            raise Rejected("format", f"it was not the JSON object asked for ({error})") from None
        if truth is not None and proposal.state != truth.oracle.state:
            meant = session.procedure.state(truth.oracle.state).brief
            raise Rejected(
                "label_state",
                f"the state should be {truth.oracle.state} here ({meant}), not {proposal.state}",
            )
        at_its_word = self._checked(view, player, answer, truth is not None)
        compact = to_compact(
            session, self.method, proposal, at_its_word.response, player, reader, truth
        )
        record = write(twin := session.branch(), player, compact)
        self._refuse(objections(record), session)  # none of them, or the conversion is to blame
        if truth is not None:
            _labelled(session, twin, compact, record, truth)
        return compact

    def _checked(self, view: Session, player: str, answer: Generation, known: bool) -> TurnRecord:
        """The answer taken at its word, once it passed every check, and the guard untouched.

        Where it is `known` what the player means, and for all but a sale, the guard asks for no
        evidence in the player's words: a teacher understands more of them than code reads.
        """
        held: Level = "written" if known or not self._sells(view, answer) else "state"
        levels: tuple[Level, ...] = ("off", held)
        at_its_word, guarded = (
            complete(TRADE, view.branch(), player, answer, level) for level in levels
        )
        self._refuse(at_its_word.failed, view)
        if view.codec.states_totals:
            keep_ledger(view, at_its_word.response)
        self._refuse(objections(guarded), view)
        return at_its_word

    def _sells(self, view: Session, answer: Generation) -> bool:
        proposal = self.method.codec.decode(answer.text, view.procedure)
        return view.procedure.is_critical(proposal.state)

    def _refuse(self, wrong: Sequence[str], session: Session) -> None:
        """Raise Rejected for the gravest of these failures."""
        if 4 not in self.method.elements:  # what a method does not ask for cannot be wrong
            wrong = [name for name in wrong if name != "inference"]
        for name in sorted(wrong, key=lambda name: name != "critical"):
            message = _SAID.get(name, _NO_YES).format(last=session.last)
            raise Rejected(name, message)


def _labelled(
    session: Session, after: Session, proposal: Proposal, record: TurnRecord, truth: Truth
) -> None:
    """Raise Rejected unless the turn is what the oracle makes of the line.

    State, cart and price are the label; the payload that leads to them (bid, what is asked for but
    not sold, the items asked about) goes into the data as well, and has to agree too.
    """
    goal, oracle = truth.goal, truth.oracle
    if record.state != goal.response.state:
        raise Rejected("label_state", f"the state should be {goal.response.state}")
    if record.cart != goal.cart:
        expected = cart_text(session, goal.cart)
        raise Rejected("label_cart", f"the cart after this line should be {expected}")
    prices = [r.context_details.sale_price if r.context_details else None
              for r in (record.response, goal.response)]  # fmt: skip
    if None not in prices and abs(prices[0] - prices[1]) > CENT:  # type: ignore[operator]
        raise Rejected("label_price", f"the price should be {money(prices[1] or 0)}")
    if proposal.bid != oracle.bid:
        raise Rejected("label_bid", f"the player's bid is {oracle.bid!r}")
    if _notes(session, proposal) != Counter(note.kind for note in goal.notes):
        raise Rejected("label_notes", "list what is asked for as asked: `?` marks what is not sold")
    if oracle.show and len(oracle.show) <= 2 and not set(oracle.show) <= set(proposal.show or ()):
        asked = " and ".join(oracle.show)
        raise Rejected("label_show", f"the player asks about {asked}: show that")
    if placeholders.PRICES in oracle.say and placeholders.PRICES not in proposal.say:
        raise Rejected("no_price", f"the price is asked for: name it, as {placeholders.PRICES}")


def _notes(session: Session, proposal: Proposal) -> Counter[str]:
    """What code changes in the cart asked for, by kind."""
    if proposal.cart is None:
        return Counter()
    return Counter(note.kind for note in resolve(session, proposal, guarded=True).notes)
