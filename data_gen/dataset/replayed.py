"""Dialogues played again in their shops, so that each turn can be looked at before its answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from data_gen.config import DataConfig, needs_compact
from data_gen.corpus_io import corpus_worlds
from data_gen.dataset.corruptions import Moment, faults
from data_gen.language.phrasebook import PLAIN, Split
from data_gen.sources import DRAWS, dialogue_number, make_dialogue, start_dialogue, to_row
from haggle.core.config import load_config
from haggle.core.errors import HaggleError
from haggle.dataset import located_rows, whole_answers
from haggle.grammar.json_text import DecodeError
from haggle.trade.edits import with_whole_cart
from haggle.trade.merchant import written
from haggle.trade.methods import get_method
from haggle.trade.resolve import resolve
from haggle.trade.session import Session
from haggle.trade.world import World

MADE_BY = "config.resolved.yaml"
CORPUS = "corpus-"  # players of the hand-written corpus begin so


@dataclass(frozen=True, slots=True)
class Told:
    """A dialogue as a row of a data set, the shop it was held in, the merchant's manner."""

    row: dict[str, Any]
    world: World
    manner: str
    where: str

    @property
    def id(self) -> str:
        """The dialogue's id."""
        return str(self.row["id"])


def generated(config: DataConfig, split: Split) -> Iterator[Told]:
    """Scripted dialogues, without end."""
    for index in count():
        play, dialogue = make_dialogue(config, split, index)
        shop = play.player.shop
        row = to_row(play, dialogue)
        yield Told(row, shop.world, shop.manner, row["id"])


def stored(dataset: Path, split: Split) -> Iterator[Told]:
    """The dialogues of a data set.

    Shops are made again from the config that lies in the data set's directory, or taken from the
    corpus. Raises HaggleError when that gives another shop, or the method is not a compact one.
    """
    made_by: DataConfig | None = None
    for where, row in located_rows(dataset, split):
        needs_compact(row.get("method"), where)
        world: World | None
        if str(row.get("player", "")).startswith(CORPUS):
            world, manner = corpus_worlds().get(row["world"]), PLAIN
        else:
            folder = dataset if dataset.is_dir() else dataset.parent
            made_by = made_by or load_config(folder / MADE_BY, DataConfig)
            number = dialogue_number(row["id"], split, where)
            world, manner = _shop(made_by, split, number, row["world"])
        if world is None:
            raise HaggleError(
                f"its shop {row['world']!r} cannot be made again",
                where=where,
                hint="generate the data set again with this version of haggle",
            )
        yield Told(row, world, manner, where)


def _shop(config: DataConfig, split: Split, number: int, name: str) -> tuple[World | None, str]:
    """The shop of a dialogue, if it is called so, and the merchant's manner."""
    for attempt in range(DRAWS):
        shop = start_dialogue(config, split, number, attempt).player.shop
        if shop.world.name == name:
            return shop.world, shop.manner
    return None, PLAIN


def moments(told: Told) -> Iterator[Moment | None]:
    """The turns of a dialogue, each as it was before its answer.

    None stands for a turn whose own answer is not free of faults. The session of a moment moves on
    when the next one is asked for. Raises HaggleError when the row does not belong to the shop.
    """
    row = told.row
    if any(message.get("weight") == 0 for message in row["messages"]):
        return  # goes on from wrong answers, which no label says
    session = Session(told.world, method=get_method(row["method"]))
    answers = whole_answers(row["messages"])
    for index, (turn, answer) in enumerate(zip(row["turns"], answers, strict=True), start=1):
        if turn["last"] != session.last:
            raise _strange(told, f"turn {index} has another last state")
        try:
            stood = session.codec.decode(answer, session.procedure)
        except DecodeError as error:
            raise _strange(told, f"turn {index}: {error}") from None
        right = with_whole_cart(session, stood)
        goal = resolve(session, right, guarded=True)
        act = turn["act"] or ""
        moment = Moment(session, turn["player"], act, right, goal, told.manner, stood)
        as_labelled = goal.response.state == turn["state"] and not goal.interventions
        yield moment if as_labelled and not faults(session, right, goal) else None
        written(session, turn["player"], answer)
    if [asdict(message) for message in session.messages(limit=None)] != row["messages"]:
        raise _strange(told, "its messages come out otherwise")


def _strange(told: Told, what: str) -> HaggleError:
    return HaggleError(
        f"played again in shop {told.world.name!r}, {what}",
        where=told.where,
        hint="generate the data set again with this version of haggle",
    )
