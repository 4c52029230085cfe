"""A source of dialogues in which models take part: as merchant, as player, as rewriter of lines.

    haggle generate --config configs/data/llm_teacher.yaml --out runs/data/llm_teacher

What a dialogue becomes depends on its number and on the engines' answers, on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from data_gen.config import DataConfig, engine_configs, engine_names
from data_gen.language.phrasebook import Split
from data_gen.play import Play
from data_gen.players.llm import LlmPlayer
from data_gen.sources import ORACLE, start_dialogue, to_row
from data_gen.teachers.asking import Ask, Asking, Role, drive
from data_gen.teachers.dialogues import Dropped, Maker
from data_gen.teachers.llm import LlmTeacher
from data_gen.teachers.report import Report, Tally, engine_report, public_model
from data_gen.teachers.rewriter import Rewriter
from haggle.core.engine import Engine, Generation
from haggle.core.errors import HaggleError
from serving.engines import load_engine, read_engine_config

ONE_AFTER_THE_OTHER = 1
Starter = Callable[[str], Engine]


def start_engine(name: str) -> Engine:
    """Start the engine of a serve config, by name or file."""
    return load_engine(read_engine_config(name))


@dataclass(frozen=True, slots=True)
class Outcome:
    """A dialogue that ended: its row, None when it was given up, and what was counted."""

    row: dict[str, Any] | None
    tally: Tally


class LlmSource:
    """A source whose config names a `teacher` or a `player` (see `data_gen.sources`).

    Engines start when the first dialogue is asked for. What an engine raises ends the run; rows
    that were yielded before are whole. Raises HaggleError for a config that cannot work.
    """

    def __init__(self, config: DataConfig, start: Starter = start_engine) -> None:
        self.config = config
        self._names = engine_names(config)
        if start is start_engine:
            engine_configs(config)  # a misspelt one is told before anything is generated
        self._start = start
        self._engines: dict[str, Engine] = {}
        self._tally = Tally()

    def rows(self, split: Split, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Rows in the order of `indices`, `teacher.concurrency` dialogues under way at once.

        A dialogue given up is left out. Raises HaggleError when an engine does; the dialogues under
        way are lost then, but a request cache keeps their answers.
        """
        maker = self._maker()
        talks = (self._dialogue(maker, split, index) for index in indices)
        width = self.config.teacher.concurrency if self.config.teacher else ONE_AFTER_THE_OTHER
        for outcome in drive(talks, self._answer, width):
            self._tally.add(outcome.tally)
            if outcome.row is not None:
                yield outcome.row

    def report(self) -> Report:
        """Counts of the dialogues that came out so far, and what the engines say of themselves."""
        engines = {PurePath(name).stem: engine_report(e) for name, e in self._engines.items()}
        return self._tally.as_dict() | {"engines": engines}

    def close(self) -> None:
        """Stop the engines."""
        for engine in self._engines.values():
            engine.close()
        self._engines.clear()

    def _maker(self) -> Maker:
        """The parts of the config come to life; each engine is started once for all its roles."""
        for name in self._names.values():
            if name not in self._engines:
                self._engines[name] = self._start(name)
        config, teaching = self.config, self.config.teacher
        rewriting = teaching.rewriter if teaching else None
        return Maker(
            config,
            LlmTeacher(teaching, self._engine("teacher")) if teaching and teaching.engine else None,
            LlmPlayer(config.player) if config.player else None,
            Rewriter(rewriting) if rewriting else None,
        )

    def _engine(self, role: Role) -> Engine:
        return self._engines[self._names[role]]

    def _answer(self, asks: Sequence[Ask]) -> list[Generation]:
        """The answers to a batch of questions, each from the engine of its role."""
        answers: dict[int, Generation] = {}
        for name, engine in self._engines.items():
            mine = [i for i, ask in enumerate(asks) if self._names[ask.role] == name]
            if mine:
                given = engine.generate([asks[i].request for i in mine])
                if len(given) != len(mine):
                    raise HaggleError(
                        f"{len(given)} answers came to {len(mine)} requests", where=engine.name
                    )
                answers.update(zip(mine, given, strict=True))
        return [answers[i] for i in range(len(asks))]

    def _dialogue(self, maker: Maker, split: Split, index: int) -> Asking[Outcome]:
        """One dialogue from its first line to its row."""
        config = self.config
        if maker.rewrites_player:  # noise comes after the rewriting, which would iron it out
            config = config.model_copy(update={"noise": 0.0})
        play = start_dialogue(config, split, index)
        tally = Tally()
        try:
            yield from maker.make(play, tally)
        except Dropped:
            tally.dialogues["dropped"] += 1
            return Outcome(None, tally)
        tally.dialogues["finished"] += 1
        return Outcome(self._row(play, tally), tally)

    def _row(self, play: Play, tally: Tally) -> dict[str, Any]:
        """The row of a finished dialogue, with who wrote any of it."""
        dialogue = play.dialogue("oracle", "state")
        if "player" in self._names:
            player = f"llm-{public_model(self._engine('player'))}"
            dialogue = dialogue.model_copy(update={"player": player})
        marks: dict[Role, str] = {"teacher": "", "rewriter": "rewriter:"}
        writers = [
            mark + self._engine(role).name
            for role, mark in marks.items()
            if role in self._names and tally.role(role).accepted
        ]
        return to_row(play, dialogue, "+".join(writers) or ORACLE)
