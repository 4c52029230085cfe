"""One turn, one function: what a model proposes, what code makes of it.

    prompt -> engine, in the grammar of what is legal -> decode -> rule -> apply -> check -> settle

Data generation, evaluation, the terminal chat and every server call it, for every character.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Generic

from haggle.core.domain import A, Domain, E, Guard, Level, O, Ruling, T
from haggle.core.engine import Engine, Generation, GenerationRequest
from haggle.core.json_text import DecodeError, is_strict_json
from haggle.core.storage import writable
from haggle.core.turn import Turn, Usage

MAX_TOKENS = 160  # the longest compact answer


@dataclass(frozen=True)
class Agent(Generic[E, A, O, T]):
    """A model that acts in a domain. `guard` says how much is enforced while decoding and after.

    off: the model's text as it comes. schema: well-formed answers about what is there only.
    state: only actions that are legal now, nothing irreversible without evidence in the player's
    words, and nothing untrue is said.
    """

    domain: Domain[E, A, O, T]
    engine: Engine
    guard: Guard = "state"
    max_tokens: int = MAX_TOKENS
    temperature: float = 0.0

    def reply(self, episode: E, line: str, *, seed: int = 0) -> T:
        """Answer one line and move the episode on."""
        return self.reply_batch([(episode, line)], seed=seed)[0]

    def reply_batch(self, pairs: Sequence[tuple[E, str]], *, seed: int = 0) -> list[T]:
        """Answer one line in each of several independent episodes with one engine call."""
        answers = self.engine.generate([self.request(e, line, seed) for e, line in pairs])
        return [
            self.complete(episode, line, answer)
            for (episode, line), answer in zip(pairs, answers, strict=True)
        ]

    def stream(self, episode: E, line: str, *, seed: int = 0) -> Generator[str | T]:
        """Answer one line: the model's text as it comes, then the finished turn.

        The pieces are unchecked text (a waiting line for people); only the finished turn counts.
        """
        for piece in self.engine.stream(self.request(episode, line, seed)):
            if isinstance(piece, Generation):
                yield self.complete(episode, line, piece)
            else:
                yield piece

    def request(self, episode: E, line: str, seed: int = 0) -> GenerationRequest:
        """What the engine is asked for this line."""
        return GenerationRequest(
            messages=self.domain.messages(episode, line),
            constraint=self.domain.legal(episode, self.guard),
            max_tokens=self.domain.max_tokens(episode, self.max_tokens),
            temperature=self.temperature,
            seed=seed,
        )

    def complete(self, episode: E, line: str, answer: Generation) -> T:
        """Turn a model's text into a finished turn and move the episode on."""
        return complete(self.domain, episode, line, answer, self.guard)


def complete(
    domain: Domain[E, A, O, T], episode: E, line: str, answer: Generation, level: Level
) -> T:
    """Turn a text, a model's or one that was written, into a finished turn; the episode moves on.

    An answer that cannot be used degrades to a safe one, and the world stays put.
    """
    last = episode.last
    action: A | None = None
    ruling: Ruling[A] = Ruling(None)
    try:
        action = domain.decode(episode, answer.text)
    except DecodeError:
        outcome, repaired = domain.degraded(episode, "unreadable"), ["format"]
        failed = domain.failures(episode, outcome)
    else:
        cut = answer.finish_reason == "length" and level == "state"
        ruling, outcome, repaired, failed = _acted(domain, episode, line, action, level, cut)
    withheld = ruling.withheld
    turn = Turn(
        player=writable(line),
        raw=writable(answer.text),
        last=last,
        state="",
        valid_json=is_strict_json(answer.text) and action is not None,
        usage=Usage(
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            thought_tokens=answer.thought_tokens,
        ),
        latency_s=answer.latency_s,
        failed=failed,
        proposed_failed=repaired or failed,
        interventions=list(outcome.interventions),
        withheld=withheld.reason if withheld else "",
        withheld_words=writable(withheld.words) if withheld else "",
    )
    turn = domain.settle(episode, line, action, ruling, outcome, turn)
    episode.last_line = ruling.line
    return turn


def _acted(
    domain: Domain[E, A, O, T], episode: E, line: str, action: A, level: Level, cut: bool
) -> tuple[Ruling[A], O, list[str], list[str]]:
    """How the guard ruled, the outcome, the checks for which the proposal was repaired, and those
    that the outcome fails. A line that was `cut` off is replaced."""
    guarded = level in {"state", "written"}
    ruling = domain.rule(episode, line, action, level) if guarded else Ruling(action)
    repaired = list(ruling.reasons)
    if ruling.action is None:
        outcome = domain.degraded(episode, ruling.reasons[-1])
        return ruling, outcome, repaired, domain.failures(episode, outcome)
    outcome = domain.apply(episode, ruling, level)
    if ruling.line:
        outcome = domain.said_safely(episode, outcome, ruling.line)
    failed = domain.failures(episode, outcome)
    problem = ""
    if guarded and not ruling.line:
        problem = domain.problem(episode, outcome, action, level, failed)
        repaired += [problem] if problem else []
    if problem or cut:
        outcome = domain.said_safely(episode, outcome)
        failed = domain.failures(episode, outcome)
    return ruling, outcome, repaired, failed
