"""What a kind of character is made of: the one interface between the turn and its subject.

A domain owns the state of its world, the actions that may change it and the truth about them. It
has no model in it. `haggle.core.agent` runs a turn through it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, Protocol, Self, TypeVar, get_args

from haggle.core.codec import ActionSpec
from haggle.core.engine import Message
from haggle.core.episode import Episode
from haggle.core.errors import HaggleError, nearest
from haggle.core.turn import Turn

Guard = Literal["off", "schema", "state"]
GUARDS: tuple[Guard, ...] = get_args(Guard)
# How far an answer is trusted: as a guard says, or `written` by what does not guess (an oracle, a
# corpus, a person). A written answer is held to the procedure, but needs no evidence for it.
Level = Literal["off", "schema", "state", "written"]

A = TypeVar("A")
E = TypeVar("E", bound=Episode, contravariant=True)


def check_guard(name: str) -> Guard:
    """`name` as a guard level. Raises HaggleError naming the nearest known one."""
    for guard in GUARDS:
        if guard == name:
            return guard
    raise HaggleError(f"unknown guard {name!r}", hint=nearest(name, GUARDS))


@dataclass(frozen=True, slots=True)
class Withheld:
    """Why something irreversible did not happen, and the player's words that say so."""

    reason: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Ruling(Generic[A]):
    """What may stand of a proposed action; `action` is None where nothing of it can.

    `reasons` name what was changed, `line` is said in place of the model's.
    """

    action: A | None
    reasons: tuple[str, ...] = ()
    line: str = ""
    withheld: Withheld | None = None

    def because(self, reason: str, action: A | None, line: str = "") -> Self:
        """The ruling with one more reason, and what stands then."""
        return replace(self, action=action, reasons=(*self.reasons, reason), line=line or self.line)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What of an answer is right: whether it can be read, and the last and the new state."""

    valid: bool
    last: bool
    state: bool

    @property
    def joint(self) -> bool:
        """All that a decision carries is right; here that is the state alone."""
        return self.state


class Outcome(Protocol):
    """What became of an action: told to the player, and not yet carried over into the episode."""

    @property
    def interventions(self) -> tuple[str, ...]: ...


O = TypeVar("O", bound=Outcome)  # noqa: E741 - the letter of its word
T = TypeVar("T", bound=Turn, covariant=True)


class Domain(Protocol[E, A, O, T]):
    """A kind of character. Only `settle` changes an episode.

    `methods` are the prompting methods it has, `options` what else may be chosen for a character.
    """

    @property
    def methods(self) -> Collection[str]: ...

    @property
    def options(self) -> Collection[str]: ...

    def agreement(self, right: str, answer: str, line: str) -> Verdict:
        """Compare an answer with the right one; both are texts as a model writes them, and `line`
        is the user message that was answered. Raises DecodeError when the right one is
        unreadable."""
        ...

    def read_ahead(self, episode: E) -> None:
        """Do what a first line would have to wait for."""
        ...

    def messages(self, episode: E, line: str) -> tuple[Message, ...]:
        """What the model is asked."""
        ...

    def legal(self, episode: E, guard: Guard) -> ActionSpec | None:
        """The answers that may be decoded now; None leaves the model free."""
        ...

    def max_tokens(self, episode: E, compact: int) -> int:
        """How long an answer may be, where a compact one may have `compact` tokens."""
        ...

    def decode(self, episode: E, text: str) -> A:
        """The action that a text is. Raises DecodeError."""
        ...

    def rule(self, episode: E, line: str, action: A, level: Level) -> Ruling[A]:
        """Hold a proposed action against the player's line and the state of the world."""
        ...

    def unsure(self, episode: E, line: str, action: A) -> Ruling[A] | None:
        """What is asked in place of an unlikely action; None where it is carried out as it is."""
        ...

    def apply(self, episode: E, line: str, ruling: Ruling[A], level: Level) -> O:
        """What comes of an action that may stand."""
        ...

    def speaks_after(self, episode: E) -> bool:
        """Whether the model says its line in a second answer, with the outcome in view."""
        ...

    def observed(self, episode: E, line: str, outcome: O) -> tuple[Message, ...]:
        """What the model is asked for that line: all of before, its decision, the outcome."""
        ...

    def sayable(self, episode: E, line: str, outcome: O) -> ActionSpec | tuple[str, ...]:
        """The lines that fit an outcome, for the model to choose from; or those that fit equally
        well, of which code draws one."""
        ...

    def worded(self, episode: E, outcome: O, say: str) -> O:
        """The same outcome, told in the model's line."""
        ...

    def degraded(self, episode: E, reason: str) -> O:
        """A safe outcome in place of an answer that cannot be used."""
        ...

    def said_safely(self, episode: E, outcome: O, line: str = "") -> O:
        """The same outcome, told in a line of code's own: `line`, or one that is always true."""
        ...

    def problem(
        self, episode: E, outcome: O, proposed: A, level: Level, failed: Sequence[str]
    ) -> str:
        """What is wrong with the line of an outcome that may stand otherwise; "" for nothing.

        `failed` are the checks that the outcome fails.
        """
        ...

    def failures(self, episode: E, outcome: O) -> list[str]:
        """The names of the checks that an outcome fails."""
        ...

    def settle(self, episode: E, line: str, action: A | None, ruling: Ruling[A], outcome: O,
               turn: Turn) -> T:  # fmt: skip
        """Carry the outcome over into the episode, and complete the record of the turn."""
        ...
