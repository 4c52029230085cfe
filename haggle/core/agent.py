"""One turn, one function: what a model proposes, what code makes of it, what is said about it.

    prompt -> engine, in the grammar of what is legal -> decode -> rule -> apply
           -> outcome -> engine: the spoken line -> check -> settle

A model that writes its line together with its decision leaves the second engine call out. Data
generation, evaluation, the terminal chat and every server call this, for every character.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal

from haggle.core.codec import ActionSpec
from haggle.core.domain import A, Domain, E, Guard, Level, O, Ruling, T
from haggle.core.engine import Engine, Generation, GenerationRequest
from haggle.core.storage import writable
from haggle.core.turn import Turn, Usage
from haggle.grammar.json_text import DecodeError, is_strict_json, read_object, text_of, to_json
from haggle.grammar.values import Field, Fields, Spoken, Value

Speech = Literal["free", "lines"]
MAX_TOKENS = 160  # a compact answer: an order of twelve goods fits, unless of thousands of each
TRIES = 2  # at a spoken line, before code says one of its own
SPEECH_TEMPERATURE = 0.6  # many lines are right, and the likeliest words of all make none of them
SAY = '"say":"'  # where the spoken line of an answer begins


@dataclass(frozen=True, slots=True)
class Say:
    """A spoken line alone, as the object that holds it: a `haggle.core.codec.ActionSpec`."""

    def tree(self) -> Value:
        """All lines that may be said."""
        return Fields((Field("say", Spoken()),))


@dataclass(frozen=True, slots=True)
class Decided(Generic[O]):
    """What comes of the decision of a turn whose line is still to be said."""

    outcome: O


@dataclass(frozen=True)
class Agent(Generic[E, A, O, T]):
    """A model that acts in a domain. `guard` says how much is enforced while decoding and after.

    off: the model's text as it comes. schema: well-formed answers about what is there only.
    state: only actions that are legal now, nothing irreversible without evidence in the player's
    words, and nothing untrue is said. With `ask_below` the character asks what was meant where the
    model gives its own decision a lower probability than that (guard `state`, formats whose line
    comes after the outcome). Such a line is one of the domain's (`speech` "lines"), or "free".
    """

    domain: Domain[E, A, O, T]
    engine: Engine
    guard: Guard = "state"
    max_tokens: int = MAX_TOKENS
    temperature: float = 0.0
    ask_below: float = 0.0
    speech: Speech = "lines"

    def warm(self, episode: Any) -> None:
        """Have the engine read what stands before an episode's first line, where it can."""
        warm = getattr(self.engine, "warm", None)
        if warm is not None:
            warm(episode.messages())

    def reply(self, episode: E, line: str, *, seed: int = 0) -> T:
        """Answer one line and move the episode on."""
        return self.reply_batch([(episode, line)], seed=seed)[0]

    def reply_batch(self, pairs: Sequence[tuple[E, str]], *, seed: int = 0) -> list[T]:
        """Answer one line in each of several independent episodes, all of them in one engine call
        for the decisions and one for the lines still to be said."""
        answers = self.decide(pairs, seed)
        moves = [
            self.act(episode, line, answer)
            for (episode, line), answer in zip(pairs, answers, strict=True)
        ]
        while silent := [move for move in moves if move.is_silent]:
            asking = []
            for move in silent:
                if drawn := self._drawn(move, seed):
                    move.say(drawn)
                else:
                    asking.append(move)
            requests = [self.speech_request(move, seed) for move in asking]
            spoken = self.engine.generate(requests) if requests else []
            for move, said in zip(asking, spoken, strict=True):
                move.say(said)
        return [move.settle() for move in moves]

    def decide(self, pairs: Sequence[tuple[E, str]], seed: int = 0) -> list[Generation]:
        """The model's decisions, one for each line."""
        return self.engine.generate([self.request(e, line, seed) for e, line in pairs])

    def stream(self, episode: E, line: str, *, seed: int = 0) -> Generator[str | Decided[O] | T]:
        """Answer one line: the model's text as it comes, then the finished turn.

        The pieces are unchecked text (a waiting line for people); only the finished turn counts.
        A Decided comes before the spoken line, as soon as its decision can be applied.
        """
        asked = self.engine.stream(self.request(episode, line, seed))
        answer = yield from _pieces(asked, lambda decision: self._foreseen(episode, line, decision))
        move = self.act(episode, line, answer)
        if move.is_silent:
            yield Decided(move.outcome)
        while move.is_silent:
            if drawn := self._drawn(move, seed):
                move.say(drawn)
            elif move.tries:  # a second line is not streamed behind the first
                move.say(self.engine.generate([self.speech_request(move, seed)])[0])
            else:
                move.say((yield from _pieces(self.engine.stream(self.speech_request(move, seed)))))
        yield move.settle()

    def _foreseen(self, episode: E, line: str, decision: str) -> Iterator[Decided[O]]:
        """What will come of a decision whose line is still being written."""
        move = Move(self.domain, episode, line, self.guard, Generation(decision))
        move.decide()
        if move.action is not None:
            yield Decided(move.outcome)

    def request(self, episode: E, line: str, seed: int = 0) -> GenerationRequest:
        """What the engine is asked for this line."""
        return GenerationRequest(
            messages=self.domain.messages(episode, line),
            constraint=self.domain.legal(episode, self.guard),
            max_tokens=self.domain.max_tokens(episode, self.max_tokens),
            temperature=self.temperature,
            seed=seed,
            scored=self._may_ask(episode),
        )

    def _may_ask(self, episode: E) -> bool:
        return self.ask_below > 0 and self.guard == "state" and self.domain.speaks_after(episode)

    def _drawn(self, move: Move[E, A, O, T], seed: int) -> Generation | None:
        """The line of a decided turn where several fit equally; None where the model speaks."""
        fitting = self._sayable(move)
        if not isinstance(fitting, tuple):
            return None
        draw = random.Random(f"{seed} {len(move.episode.exchanges)} {move.tries} {move.line}")
        return Generation(to_json({"say": draw.choice(fitting)}))

    def speech_request(self, move: Move[E, A, O, T], seed: int = 0) -> GenerationRequest:
        """What the engine is asked for the line of a decided turn, which is always sampled."""
        fitting = self._sayable(move)
        assert not isinstance(fitting, tuple), "such a line is drawn"
        return GenerationRequest(
            messages=self.domain.observed(move.episode, move.line, move.outcome),
            constraint=fitting,
            max_tokens=self.max_tokens,
            temperature=self.temperature or SPEECH_TEMPERATURE,
            seed=seed + len(move.episode.exchanges) + 1000 * move.tries,
        )

    def _sayable(self, move: Move[E, A, O, T]) -> ActionSpec | tuple[str, ...] | None:
        if self.guard == "off":
            return None
        if self.speech == "free":
            return Say()
        return self.domain.sayable(move.episode, move.line, move.outcome)

    def act(self, episode: E, line: str, answer: Generation) -> Move[E, A, O, T]:
        """Apply a model's decision. The turn lacks its line where that comes after the outcome."""
        move = Move(self.domain, episode, line, self.guard, answer)
        move.act(self._is_unsure(answer))
        return move

    def _is_unsure(self, answer: Generation) -> bool:
        return answer.probability is not None and answer.probability < self.ask_below

    def complete(self, episode: E, line: str, answer: Generation) -> T:
        """Turn a model's text into a finished turn and move the episode on; a line that the text
        does not have is said by code."""
        unsure = self._is_unsure(answer)
        return complete(self.domain, episode, line, answer, self.guard, unsure=unsure)


def _pieces(
    answer: Iterator[str | Generation],
    foresee: Callable[[str], Iterator[Decided[O]]] = lambda decision: iter(()),
) -> Generator[str | Decided[O], None, Generation]:
    """The pieces of an answer as they come, and before those of its line what `foresee` makes of
    the decision; returns the whole of it."""
    seen, decided = "", False
    for piece in answer:
        if isinstance(piece, Generation):
            return piece
        seen += piece
        if not decided and SAY in seen:
            decided = True
            yield from foresee(seen[: seen.index(SAY) + len(SAY)] + '"}')
        yield piece
    raise RuntimeError("an engine's stream ended without its Generation")


def complete(
    domain: Domain[E, A, O, T], episode: E, line: str, answer: Generation, level: Level,
    *, unsure: bool = False,
) -> T:  # fmt: skip
    """Turn a text, a model's or one that was written, into a finished turn; the episode moves on.

    An answer that cannot be used degrades to a safe one, and the world stays put. A text may be the
    `raw` of an earlier turn: its spoken lines, where they came after the outcome, are taken again.
    """
    said: list[str] = []
    if level != "written" and domain.speaks_after(episode):
        decision, *said = answer.text.split("\n")
        answer = replace(answer, text=decision)
    move = Move(domain, episode, line, level, answer)
    move.act(unsure)
    for text in said:
        if move.is_silent:
            move.say(Generation(text, finish_reason=answer.finish_reason))
    return move.settle()


@dataclass
class Move(Generic[E, A, O, T]):
    """A turn under way: what was decided and what came of it; its line may still be to come.

    `failed` are the checks that the outcome fails, `repaired` those for which the proposal was
    changed. `tries` counts the lines that were asked for.
    """

    domain: Domain[E, A, O, T]
    episode: E
    line: str
    level: Level
    answer: Generation
    action: A | None = None
    ruling: Ruling[A] = field(default_factory=lambda: Ruling(None))
    repaired: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    is_silent: bool = False
    tries: int = 0
    lines: list[Generation] = field(default_factory=list)
    outcome: O = field(init=False)

    @property
    def _guarded(self) -> bool:
        return self.level in {"state", "written"}

    def act(self, unsure: bool = False) -> None:
        """Carry the decision out, and check its line where it has one."""
        if not self.decide(unsure):
            return
        domain, episode = self.domain, self.episode
        if self.ruling.line:
            self.outcome = domain.said_safely(episode, self.outcome, self.ruling.line)
        elif self.level != "written" and domain.speaks_after(episode):
            self.is_silent = True
            return
        self._check(self.answer.finish_reason == "length")

    def decide(self, unsure: bool = False) -> bool:
        """Decode the decision, hold it against the rules, apply it; or ask where it is `unsure`.
        Returns whether it can be used; a safe one is in its place otherwise."""
        domain, episode = self.domain, self.episode
        try:
            self.action = action = domain.decode(episode, self.answer.text)
        except DecodeError:
            self._degrade("unreadable", "format")
            return False
        if self._guarded:
            self.ruling = domain.rule(episode, self.line, action, self.level)
            asked = domain.unsure(episode, self.line, action) if unsure else None
            self.ruling = asked if asked and not self.ruling.reasons else self.ruling
        else:
            self.ruling = Ruling(action)
        self.repaired = list(self.ruling.reasons)
        if self.ruling.action is None:
            self._degrade(self.ruling.reasons[-1])
            return False
        self.outcome = domain.apply(episode, self.line, self.ruling, self.level)
        return True

    def _degrade(self, reason: str, check: str = "") -> None:
        self.outcome = self.domain.degraded(self.episode, reason)
        self.repaired += [check] if check else []
        self.failed = self.domain.failures(self.episode, self.outcome)

    def say(self, spoken: Generation) -> None:
        """Take the model's line about the outcome. One that cannot stand is asked for once more,
        then replaced; with the guard off every line stands."""
        self.tries += 1
        self.lines.append(spoken)
        silent = self.outcome
        try:
            said = text_of(read_object(spoken.text), "say")
        except DecodeError:
            said = ""
        self.outcome = self.domain.worded(self.episode, silent, said)
        faults = len(self.repaired)
        self._check(spoken.finish_reason == "length", unreadable=not said.strip())
        self.is_silent = self._guarded and len(self.repaired) > faults and self.tries < TRIES
        if self.is_silent:
            self.outcome = silent

    def _check(self, cut: bool, unreadable: bool = False) -> None:
        """Hold the line against what is so; one that was `cut` off or is untrue is replaced."""
        domain, episode, action = self.domain, self.episode, self.action
        assert action is not None
        self.failed = domain.failures(episode, self.outcome)
        problem = "format" if unreadable else ""
        if self._guarded and not self.ruling.line and not problem:
            problem = domain.problem(episode, self.outcome, action, self.level, self.failed)
        self.repaired += [problem] if problem else []
        if problem or (cut and self.level == "state"):
            self.outcome = domain.said_safely(episode, self.outcome)
            self.failed = domain.failures(episode, self.outcome)

    def settle(self) -> T:
        """Carry the outcome over into the episode; returns the record of the turn."""
        answers = [self.answer, *self.lines]
        withheld = self.ruling.withheld
        turn = Turn(
            player=writable(self.line),
            raw=writable("\n".join(answer.text for answer in answers)),
            last=self.episode.last,
            state="",
            valid_json=self.action is not None and all(is_strict_json(a.text) for a in answers),
            usage=Usage(
                prompt_tokens=sum(answer.prompt_tokens for answer in answers),
                completion_tokens=sum(answer.completion_tokens for answer in answers),
                thought_tokens=sum(answer.thought_tokens for answer in answers),
            ),
            latency_s=sum(answer.latency_s for answer in answers),
            failed=self.failed,
            proposed_failed=self.repaired or self.failed,
            interventions=list(self.outcome.interventions),
            withheld=withheld.reason if withheld else "",
            withheld_words=writable(withheld.words) if withheld else "",
            probability=self.answer.probability,
            cut=answers[-1].finish_reason == "length",
        )
        settled = self.domain.settle(
            self.episode, self.line, self.action, self.ruling, self.outcome, turn
        )
        self.episode.last_line = self.ruling.line
        return settled
