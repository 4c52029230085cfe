"""A model rephrases lines of the scripted player and of the oracle; what they mean has to survive.

A rejected phrasing is asked for again with the reason; after the last attempt the original stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from data_gen.acts import Act
from data_gen.teachers.asking import (
    Asking,
    Rejected,
    checked_ending,
    prompt,
    refuse_echo,
    until_accepted,
)
from data_gen.teachers.config import RewriterConfig
from data_gen.teachers.marks import reviews
from data_gen.teachers.reading import Reader, bare_line
from data_gen.teachers.report import RoleTally
from data_gen.teachers.survival import SKIPPED, check_merchant, check_player
from haggle.core.engine import Generation, GenerationRequest, Message
from haggle.trade import placeholders
from haggle.trade.procedure import Procedure
from haggle.trade.wire import UNLISTED
from haggle.trade.world import World

SPEAKERS = ("Player", "Customer", "Merchant", "NPC", "Line", "Rephrased", "Rewritten", "Answer")
MEANINGS = {
    "greet": "a greeting",
    "browse": "asking what is for sale",
    "ask_item": "asking about an item",
    "ask_price": "asking for a price",
    "ask_stock": "asking whether there is enough of an item",
    "compare": "asking which of two items is better",
    "recommend": "asking for advice",
    "unclear": "an order by a name that more than one item goes by",
    "ask_unsold": "asking for something that may not be sold here",
    "order": "an order, or a change of one",
    "restate": "asking what it all comes to",
    "clear": "calling the whole order off",
    "haggle": "haggling about the price",
    "agree": "agreeing to what the merchant said last",
    "hesitate": "hesitating, agreeing to nothing",
    "smalltalk": "small talk",
    "offtopic": "something that has nothing to do with the shop",
    "thanks": "thanks",
    "leave": "a farewell",
    "insult": "an insult",
}


@dataclass(frozen=True, slots=True)
class Job:
    """One line to rephrase: what the model is asked, and what raises Rejected for a bad answer."""

    original: str
    request: GenerationRequest
    check: Callable[[str], None]


class Rewriter:
    """A model that says the same in other words."""

    def __init__(self, config: RewriterConfig) -> None:
        self.config = config

    def player_job(
        self,
        line: str,
        act: Act,
        reader: Reader,
        world: World,
        seed: int,
        proven: Callable[[str], None],
    ) -> Job | None:
        """A player's line to rephrase; None for lines that are what they are by their wording.

        `proven` raises Rejected when the turn with the new line is not what it was.
        """
        if act.kind in SKIPPED or not any(c.isalpha() for c in line):
            return None
        named = [name.removeprefix(UNLISTED) for name in reader.read(line).lines]

        def check(new: str) -> None:
            check_player(line, new, act, reader, world.currency)
            proven(new)

        meaning = MEANINGS.get(act.kind, act.kind)
        system = prompt("rewrite_player", meaning=meaning, items=named)
        return Job(line, self._request(system, line, seed), check)

    def merchant_job(
        self,
        line: str,
        state: str,
        procedure: Procedure,
        reader: Reader,
        world: World,
        seed: int,
        proven: Callable[[str], None],
    ) -> Job:
        """A merchant's line with its placeholders to rephrase."""

        def check(new: str) -> None:
            check_merchant(line, new, state, procedure, reader, world.currency)
            proven(new)

        system = prompt(
            "rewrite_merchant",
            merchant=world.merchant,
            placeholders=sorted(placeholders.used(line)),
            question=state in reviews(procedure),
        )
        return Job(line, self._request(system, line, seed), check)

    def _request(self, system: str, line: str, seed: int) -> GenerationRequest:
        return GenerationRequest(
            (Message("system", system), Message("user", line)),
            max_tokens=self.config.max_tokens,
            temperature=self.config.temperature,
            seed=seed,
        )

    def rewrite(self, jobs: Sequence[Job], tally: RoleTally) -> Asking[list[str | None]]:
        """The accepted phrasing of each job, None where the original stands.

        All lines that are still open are asked for together.
        """
        lines = yield from until_accepted(
            "rewriter",
            [job.request for job in jobs],
            lambda index, answer: _phrasing(jobs[index], answer),
            self.config.max_attempts,
            tally,
        )
        if len(lines) < len(jobs):
            tally.given_up["original"] += len(jobs) - len(lines)
        return [lines.get(index) for index in range(len(jobs))]


def _phrasing(job: Job, answer: Generation) -> str:
    """The line in an answer, when it says what the original does. Raises Rejected."""
    text = checked_ending(answer)
    try:
        line = bare_line(text, SPEAKERS)
    except ValueError as error:
        raise Rejected("lines", f"{error}; write one line only") from None
    if not line:
        raise Rejected("empty", "it was empty")
    refuse_echo(line, job.request, job.original)
    job.check(line)
    return line
