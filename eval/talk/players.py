"""Who speaks to the merchant: a model that is told a goal, or lines written before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import Field

from data_gen.players.llm import LlmPlayer
from data_gen.teachers.asking import drive, refuse_echo, until_accepted
from data_gen.teachers.config import PlayerConfig
from data_gen.teachers.report import RoleTally
from eval.talk.conversation import Conversation, Say
from eval.talk.goals import GoalSet, find_goal
from haggle.core.config import Record, parse
from haggle.core.engine import Engine, Generation, GenerationRequest, Message
from haggle.core.errors import HaggleError
from haggle.core.storage import numbered_jsonl
from haggle.core.text import MAX_UTTERANCE, clean_utterance, prompts

PROMPTS = Path(__file__).with_name("prompts")
Words = Annotated[str, Field(min_length=1, max_length=MAX_UTTERANCE)]


class TalkPlayer(Protocol):
    """Says what comes next in each of several conversations."""

    name: str

    def next(self, talks: Sequence[Conversation]) -> list[Say]:
        """A line for each conversation, or its end."""
        ...


class GoalPlayer:
    """A model that is told goal, voice and what was said, and nothing else.

    A line that cannot be used is asked for again, three times in all; then the conversation ends.
    """

    def __init__(self, engine: Engine, goals: GoalSet, seed: int = 0) -> None:
        self.name = f"{engine.name} {engine.model}"
        self._engine, self._goals, self._seed = engine, goals, seed
        self._rules = LlmPlayer(PlayerConfig(engine=engine.name))
        self._tally = RoleTally()

    def next(self, talks: Sequence[Conversation]) -> list[Say]:
        """The next lines, all asked for in one batch."""
        requests = [self._request(talk) for talk in talks]
        accept = partial(self._accept, talks, requests)
        asking = until_accepted(
            "player", requests, accept, self._rules.config.max_attempts, self._tally
        )
        (said,) = drive(
            [asking], lambda asks: self._engine.generate([ask.request for ask in asks]), width=1
        )
        return [said.get(number, Say(ends="stuck")) for number in range(len(talks))]

    def _accept(
        self,
        talks: Sequence[Conversation],
        requests: Sequence[GenerationRequest],
        number: int,
        answer: Generation,
    ) -> Say:
        talk = talks[number]
        line = self._rules.accept(answer, talk.session.world, talk.turns)
        if line is None:
            return Say(ends="player")
        refuse_echo(line, requests[number])
        return Say(line)

    def _request(self, talk: Conversation) -> GenerationRequest:
        goal = self._goals.goals[talk.id]
        world = self._goals.world(goal)
        environment = prompts(PROMPTS)
        told = environment.get_template("player_turn.jinja").render(
            location=world.situation.location,
            merchant=world.merchant.name,
            wants=goal.wants,
            voice=goal.manner,
            turns=[
                {"player": clean_utterance(turn.player), "says": clean_utterance(turn.says)}
                for turn in talk.turns
            ],
        )
        system = environment.get_template("player.jinja").render()
        drawn = sha256(f"{self._seed}/{talk.id}/{len(talk.turns)}".encode()).digest()
        return GenerationRequest(
            (Message("system", system.strip()), Message("user", told.strip())),
            max_tokens=self._rules.config.max_tokens,
            temperature=self._rules.config.temperature,
            seed=int.from_bytes(drawn[:4]) // 2,
        )


class WrittenLines(Record):
    """A line of a file for `--lines`: what a player says for a goal, whatever the answers."""

    goal: str
    lines: Annotated[list[Words], Field(min_length=1)]


class WrittenPlayer:
    """Says lines that were written before."""

    def __init__(self, lines: Mapping[str, Sequence[str]]) -> None:
        self.lines = lines
        text = "\n".join(f"{name}\t{line}" for name in lines for line in lines[name])
        self.name = f"lines {sha256(text.encode()).hexdigest()[:12]}"

    def next(self, talks: Sequence[Conversation]) -> list[Say]:
        """The lines in their order; the last one ends the conversation."""
        said = []
        for talk in talks:
            lines, at = self.lines[talk.id], len(talk.turns)
            said.append(Say(lines[at], "player" if at + 1 == len(lines) else ""))
        return said


def read_written(path: Path, goals: GoalSet) -> dict[str, list[str]]:
    """The lines of a JSON Lines file by goal. Raises HaggleError naming file and line."""
    found: dict[str, list[str]] = {}
    for number, data in numbered_jsonl(path):
        where = f"{path}:{number}"
        written = parse(data, WrittenLines, where)
        find_goal(goals, written.goal, where)
        if written.goal in found:
            raise HaggleError(f"goal {written.goal!r} stands twice", where=where)
        found[written.goal] = written.lines
    if not found:
        raise HaggleError("holds no lines", where=str(path))
    return found
