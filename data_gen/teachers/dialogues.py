"""One dialogue in which models take part, from its first line to its last, as a coroutine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from data_gen.acts import Act
from data_gen.config import DataConfig
from data_gen.language.noise import garble
from data_gen.play import Play
from data_gen.players.llm import GivenUp, LlmPlayer
from data_gen.players.speaker import cart_names, just_shown
from data_gen.teachers.asking import Asking, Rejected, Role
from data_gen.teachers.convert import Truth
from data_gen.teachers.llm import LlmTeacher, objections, write
from data_gen.teachers.reading import Reader
from data_gen.teachers.report import Tally
from data_gen.teachers.rewriter import Job, Rewriter
from haggle.trade.records import PlayedTurn
from haggle.trade.session import Session
from haggle.trade.wire import UNLISTED, Proposal

PRIMES: dict[Role, int] = {"teacher": 7919, "player": 104_729, "rewriter": 15_485_863}
SEEDS = 2**31


class Dropped(Exception):
    """A dialogue that is given up."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One round of a scripted dialogue: before it, what was said and meant, and what followed."""

    number: int
    before: Session
    player: str
    act: Act
    oracle: Proposal
    record: PlayedTurn


@dataclass(frozen=True, slots=True)
class Maker:
    """Who takes part: a model as the merchant, one as the player, one that rephrases.

    Without a teacher the oracle answers and the rewriter rephrases; `teacher` and `rewriter` are
    never both None.
    """

    config: DataConfig
    teacher: LlmTeacher | None
    player: LlmPlayer | None
    rewriter: Rewriter | None

    @property
    def rewrites_player(self) -> bool:
        """Whether the scripted player's lines are rephrased."""
        return self.rewriter is not None and self.rewriter.config.player

    def make(self, play: Play, tally: Tally) -> Asking[None]:
        """Play a dialogue to its end. Raises Dropped when it is given up."""
        if self.teacher is not None:
            yield from self._taught(play, self.teacher, tally)
        else:
            assert self.rewriter is not None
            yield from self._rewritten(play, self.rewriter, tally)

    # A model as the merchant

    def _taught(self, play: Play, teacher: LlmTeacher, tally: Tally) -> Asking[None]:
        session = play.session
        view = teacher.view(session)
        while True:
            line, truth = yield from self._next_line(play, tally)
            if line is None:
                return
            reader = reader_for(play, session, play.act if truth else None)
            proposal = yield from teacher.propose(
                session, view, line, request_seed(play, "teacher", len(play.turns)), reader,
                tally.role("teacher"), None if teacher.config.trust else truth,
            )  # fmt: skip
            if proposal is None:
                given_up = tally.role("teacher").given_up
                if truth is None or teacher.config.on_failure == "drop":
                    given_up["dialogue dropped"] += 1
                    raise Dropped
                given_up["oracle stood in"] += 1
                proposal = truth.oracle
            note = session.note
            record = write(session, line, proposal, play.act if truth else None)
            teacher.follow(view, session, record, note)
            if truth is None:
                play.turns.append(PlayedTurn.of(record, None))
            else:
                play.add(record, truth.goal)

    def _next_line(self, play: Play, tally: Tally) -> Asking[tuple[str | None, Truth | None]]:
        """The player's next line, None when there is none, and what the oracle would answer."""
        if self.player is not None and play.turns:
            return (yield from self._model_line(play, self.player, tally)), None
        line = play.next_line()
        if line is None:
            return None, None
        if self.rewriter is not None and self.rewrites_player:
            number, act = len(play.turns), play.act
            job = self._player_job(
                self.rewriter, play, play.session, line, act, play.oracle, number
            )
            if job is not None:
                new = yield from self.rewriter.rewrite([job], tally.role("rewriter"))
                line = new[0] or line
            line = self._noisy(play, line, act, number)
        return line, Truth(play.oracle, play.goal())

    def _model_line(self, play: Play, player: LlmPlayer, tally: Tally) -> Asking[str | None]:
        """A model's next line; None when it is over. Raises Dropped."""
        config, session = player.config, play.session
        ended = tally.role("player").ended
        if session.procedure.state(session.state).resets:
            ended["by the merchant"] += 1
            return None
        if len(play.turns) >= config.max_rounds:
            ended["at max_rounds"] += 1
            return None
        if session.sales and _rounds_after_sale(play) >= config.after_sale:
            ended["without End"] += 1
            return None
        try:
            line = yield from player.line(
                session.world, play.player.scenario, session.procedure, play.turns,
                request_seed(play, "player", len(play.turns)), tally.role("player"),
            )  # fmt: skip
        except GivenUp:
            if config.on_failure == "drop":
                tally.role("player").given_up["dialogue dropped"] += 1
                raise Dropped from None
            tally.role("player").given_up["dialogue ended"] += 1
            return None
        if line is None:
            ended["with End"] += 1
        return line

    # A model that rephrases

    def _rewritten(self, play: Play, rewriter: Rewriter, tally: Tally) -> Asking[None]:
        """Play against the oracle, then rephrase all lines together and play it once more."""
        steps = list(_played(play))
        jobs: list[tuple[tuple[int, str], Job]] = []
        for step in steps:
            jobs += self._jobs(rewriter, play, step)
        new = yield from rewriter.rewrite([job for _, job in jobs], tally.role("rewriter"))
        lines = {key: line for (key, _), line in zip(jobs, new, strict=True) if line}
        play.session, play.turns = steps[0].before.branch(), []
        for step in steps:
            line = lines.get((step.number, "player"), step.player)
            if self.rewrites_player:
                line = self._noisy(play, line, step.act, step.number)
            say = lines.get((step.number, "merchant"), step.oracle.say)
            record = write(play.session, line, replace(step.oracle, say=say), step.act)
            play.turns.append(PlayedTurn.of(record, step.record.truth))

    def _jobs(
        self, rewriter: Rewriter, play: Play, step: _Step
    ) -> Iterator[tuple[tuple[int, str], Job]]:
        before, number = step.before, step.number
        if self.rewrites_player:
            job = self._player_job(
                rewriter, play, before, step.player, step.act, step.oracle, number
            )
            if job is not None:
                yield (number, "player"), job
        if rewriter.config.merchant and _wanted(rewriter, play, number, "merchant"):
            yield (
                (number, "merchant"),
                rewriter.merchant_job(
                    step.oracle.say,
                    step.record.state,
                    before.procedure,
                    reader_for(play, before, step.act),
                    before.world,
                    request_seed(play, "rewriter", 2 * number + 1),
                    lambda new: _proven(before, step.player, replace(step.oracle, say=new)),
                ),
            )

    def _player_job(
        self,
        rewriter: Rewriter,
        play: Play,
        before: Session,
        line: str,
        act: Act,
        oracle: Proposal,
        number: int,
    ) -> Job | None:
        if not _wanted(rewriter, play, number, "player"):
            return None
        return rewriter.player_job(
            line,
            act,
            reader_for(play, before, act),
            before.world,
            request_seed(play, "rewriter", 2 * number),
            lambda new: _proven(before, new, oracle),
        )

    def _noisy(self, play: Play, line: str, act: Act, number: int) -> str:
        """The line with the typing noise of its player."""
        speaker = play.player.speaker
        unlisted = any(name.startswith(UNLISTED) for name, _ in act.cart)
        strength = 0.0 if unlisted else self.config.noise * speaker.style.noise
        return garble(line, strength, random.Random(f"noise/{play.seed}/{number}"))


def request_seed(play: Play, role: Role, number: int) -> int:
    """The seed of a request: the dialogue's, the role's and the line's own."""
    return (play.seed + PRIMES[role] * (number + 1)) % SEEDS


def reader_for(play: Play, session: Session, act: Act | None) -> Reader:
    """Reads lines as they are meant right now: short names of what is in the cart or on show."""
    words = [n.removeprefix(UNLISTED) for n, _ in act.cart if n.startswith(UNLISTED)] if act else []
    near = (*cart_names(session), *just_shown(session))
    return Reader(play.player.shop, play.player.speaker.names, near, words)


def _played(play: Play) -> Iterator[_Step]:
    """The rounds of a dialogue between its scripted player and the oracle."""
    while (line := play.next_line()) is not None:
        before, act, oracle, goal = play.session.branch(), play.act, play.oracle, play.goal()
        play.add(write(play.session, line, oracle, act), goal)
        yield _Step(len(play.turns) - 1, before, line, act, oracle, play.turns[-1])


def _wanted(rewriter: Rewriter, play: Play, number: int, whose: str) -> bool:
    """Whether this line is among the share that is rewritten."""
    roll = random.Random(f"rewrite/{play.seed}/{number}/{whose}").random()
    return roll < rewriter.config.share


def _proven(before: Session, player: str, proposal: Proposal) -> None:
    """Raise Rejected when the turn with a new line does not pass as it did."""
    wrong = objections(write(before.branch(), player, proposal))
    if wrong:
        raise Rejected(f"check_{wrong[0]}", "it changed what the turn means")


def _rounds_after_sale(play: Play) -> int:
    """Rounds since the last sale."""
    states = play.session.procedure.states
    for back, turn in enumerate(reversed(play.turns)):
        if states[turn.state].clears and states[turn.state].needs_cart:
            return back
    return 0
