"""What to generate: the record read from `configs/data/*.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from data_gen.teachers.config import PlayerConfig, TeacherConfig
from haggle.characters import MERCHANT
from haggle.core.config import Record, load_config, parse
from haggle.core.errors import HaggleError, nearest
from haggle.sop.domain import SOP
from haggle.sop.task import load_task
from haggle.trade.methods import DEFAULT_METHOD, get_method
from serving.engines import EngineConfig, read_engine_config

if TYPE_CHECKING:
    from data_gen.teachers.asking import Role

EVERY = "all"  # the character that stands for all tasks that Haggle brings
LEAST_TO_RECOMMEND = 2  # items a shop needs for one of them to be advised


class PlansConfig(Record):
    """Rows for SOP prediction: a folder of task definitions, of which one fold is held out for
    test; without a `fold` the split of the PCA paper (31 to train, 5 aside, 17 to test, of 53)."""

    tasks: str
    fold: Annotated[int, Field(ge=0)] | None = 0
    folds: Annotated[int, Field(ge=2)] = 5
    seed: int = 0


class LabelledConfig(Record):
    """Dialogues of people with their labels: a folder of PCA-D's dialogue files, split by task as
    the PCA paper has it (31 to train, 5 aside, 17 to test)."""

    dialogues: str
    seed: int = 0


class SopConfig(Record):
    """Dialogues made in the steps of the PCA paper (4.1), by code or by the model of `engine`.

    `plan` lets the engine plan the procedures as well. An answer that the checks refuse is asked
    for again, `max_attempts` times in all; then code stands in.
    """

    engine: str = ""
    plan: bool = False
    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3


class DataConfig(Record):
    """What to generate.

    `train` and `test` are numbers of dialogues, `shard` how many go into one file. `items` bounds
    how many items a shop sells, `invented` is the share of names with a made-up word,
    `recommendation` the share of scenario 2, `corpus` how many times the hand-written dialogues of
    a split go in (of the writers' `voices` named, or of all), `righted` whether each turn that the
    merchant of these dialogues gets wrong goes in once more, with the right answer,
    `noise` the strength of the typing noise (0 none, 1 a slip in ten words), `genres` the split
    whose genres the shops are of: the dialogue's own, or one for both splits, which tells new
    phrases from new goods, `drills` the share of dialogues whose player cannot stop changing the
    cart: exercises in what is hardest,
    many orders to a price list; `doubts` the share whose player hesitates, asks, digresses and
    tries tricks before it buys; `questions` the share whose player asks what goods are like;
    `slips` the share of turns that the merchant gets wrong on purpose, for the player to put right
    (not learned from). `character` is the merchant, or another one by name or task file: it has
    simulated users and a corpus of its own, and takes no other setting but numbers, seed,
    `corpus` and `variety`, the share of its training dialogues whose task is told in another shape
    (`data_gen/sop/variety.py`). `all` are all tasks that Haggle brings: in `train` those of the
    split train, in `test` the held-out ones. With `sop` its dialogues are written scene by scene,
    with `plans` rows are procedures to predict, with `labelled` dialogues of people. With a
    `teacher` a model answers, or rephrases, in place of the oracle; with a `player` a model shops.
    """

    train: Annotated[int, Field(ge=0, le=10_000_000)] = 1000
    test: Annotated[int, Field(ge=0, le=1_000_000)] = 100
    seed: Annotated[int, Field(ge=0)] = 0
    shard: Annotated[int, Field(ge=1, le=100_000)] = 2500
    items: tuple[int, int] = (4, 14)
    invented: Annotated[float, Field(ge=0, le=1)] = 0.35
    recommendation: Annotated[float, Field(ge=0, le=1)] = 0.4
    corpus: Annotated[int, Field(ge=0, le=100)] = 0
    voices: tuple[str, ...] = ()
    righted: bool = True
    genres: Literal["own", "train", "test"] = "own"
    method: str = DEFAULT_METHOD
    noise: Annotated[float, Field(ge=0, le=3)] = 0.4
    drills: Annotated[float, Field(ge=0, le=1)] = 0.0
    doubts: Annotated[float, Field(ge=0, le=1)] = 0.0
    questions: Annotated[float, Field(ge=0, le=1)] = 0.0
    slips: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    character: str = MERCHANT
    variety: Annotated[float, Field(ge=0, le=1)] = 0.0
    sop: SopConfig | None = None
    plans: PlansConfig | None = None
    labelled: LabelledConfig | None = None
    teacher: TeacherConfig | None = None
    player: PlayerConfig | None = None

    @property
    def scripted(self) -> bool:
        """Whether no model takes part, so that dialogues are made by the hundred a second."""
        written = self.sop is not None and bool(self.sop.engine)
        return self.teacher is None and self.player is None and not written

    @property
    def procedural(self) -> bool:
        """Whether its rows are about procedures, and not a merchant's dialogues."""
        return bool(self.plans or self.labelled) or self.character != MERCHANT


def load_data_config(path: str | Path) -> DataConfig:
    """A data config. Raises HaggleError naming file and field."""
    return load_config(path, DataConfig)


def override(config: DataConfig, **changes: Any) -> DataConfig:
    """A data config with the values given (those not None) in place of its own."""
    data = config.model_dump(exclude_unset=True)
    data |= {key: value for key, value in changes.items() if value is not None}
    return parse(data, DataConfig, "options")


def check(config: DataConfig) -> None:
    """Raise HaggleError for a config that no dialogue can be made from, before anything is."""
    if config.character not in {MERCHANT, EVERY}:
        load_task(config.character)
    if not config.procedural:
        get_method(config.method)
    elif "method" in config.model_fields_set and config.method not in SOP.methods:
        hint = f"leave method out; {nearest(config.method, SOP.methods)}"
        told = f"a character with a procedure has no method {config.method!r}"
        raise HaggleError(told, where="method", hint=hint)
    if config.sop is not None and config.character == MERCHANT:
        hint = "set character: all, or the name of a task"
        raise HaggleError("is for characters with a procedure", where="sop", hint=hint)
    kinds = [name for name in ("plans", "labelled", "sop") if getattr(config, name) is not None]
    if len(kinds) > 1:
        hint = "leave one of them: each makes rows of its own kind"
        raise HaggleError(f"{' and '.join(kinds)} do not go together", where=kinds[1], hint=hint)
    if config.train + config.test + config.corpus == 0:
        raise HaggleError("nothing to generate", hint="set train or test above 0 (or --n)")
    if config.voices and not config.corpus:
        raise HaggleError(
            "are writers of the corpus, of which nothing goes in",
            where="voices",
            hint="set corpus: 1, or leave voices out",
        )
    if config.drills + config.doubts + config.questions > 1:
        raise HaggleError(
            f"drills {config.drills:g}, doubts {config.doubts:g} and questions "
            f"{config.questions:g} are more than every dialogue",
            hint="they are shares: together at most 1",
        )
    least, most = config.items
    if least > most or least < 1:
        raise HaggleError(f"items {[least, most]} is no range", hint="e.g. items: [4, 14]")
    if config.recommendation > 0 and least < LEAST_TO_RECOMMEND:
        raise HaggleError(
            f"items {[least, most]}: a shop of {least} item is too small for a recommendation",
            hint=f"set items: [{LEAST_TO_RECOMMEND}, {max(most, LEAST_TO_RECOMMEND)}], "
            "or recommendation: 0",
        )
    engine_configs(config)


def needs_compact(method: str | None, where: str) -> None:
    """Raise HaggleError unless `method` speaks the compact format."""
    if method is None or get_method(method).codec.states_totals:
        raise HaggleError(
            f"this takes the compact format, not that of {method!r}",
            where=where,
            hint="set method: astp-compact; a teacher may still speak any method",
        )


def engine_names(config: DataConfig) -> dict[Role, str]:
    """The serve config of each role that a model plays. Raises HaggleError where none can be."""
    if config.teacher is None and config.player is None:
        return {}
    needs_compact(config.method, "method")  # the teacher may still speak any method
    teaching = config.teacher
    names: dict[Role, str] = {}
    if teaching and teaching.engine:
        names["teacher"] = teaching.engine
    if teaching and teaching.rewriter:
        names["rewriter"] = teaching.rewriter.engine
    if config.player:
        names["player"] = config.player.engine
        if "teacher" not in names:
            raise HaggleError(
                "a model as player needs a model as merchant: the oracle understands scripted "
                "players only",
                where="player",
                hint="name an engine under `teacher`",
            )
    return names


def engine_configs(config: DataConfig) -> dict[Role, EngineConfig]:
    """The serve configs themselves. Raises HaggleError for one that is missing or wrong as well."""
    keys = {"teacher": "teacher.engine", "rewriter": "teacher.rewriter.engine"}
    found: dict[Role, EngineConfig] = {}
    for role, name in engine_names(config).items():
        try:
            found[role] = read_engine_config(name)
        except HaggleError as error:
            if error.where:  # a file, which says more than the key that names it
                raise
            where = keys.get(role, f"{role}.engine")
            raise HaggleError(error.message, where=where, hint=error.hint) from None
    return found
