"""Where dialogues come from: a source makes rows of a data set by number.

Numbers are what makes generation repeatable: whoever makes a number, in whatever order and on
whatever machine, makes the same dialogue.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

from data_gen.config import DataConfig
from data_gen.language.phrasebook import Split
from data_gen.play import Play, play_oracle, start_play
from data_gen.players.scripted import Drill
from data_gen.worlds import sample_shop
from haggle.core.errors import HaggleError
from haggle.grammar.json_text import to_json
from haggle.trade.methods import get_method
from haggle.trade.records import SCENARIOS, SCHEMA_VERSION, Dialogue, PlayedTurn, Truth
from haggle.trade.session import Session

ORACLE = "oracle"
DRAWS = 5  # of one dialogue, before the generator is taken to be broken


class Source(Protocol):
    """Makes dialogues of a data set by number; a number always stands for the same dialogue."""

    def rows(self, split: Split, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
        """The rows of these dialogues, in the order of `indices`.

        The id of dialogue number `k` begins with `<split>-<k>-`. A dialogue given up is left out.
        """
        ...

    def report(self) -> dict[str, Any]:
        """What happened since the source was opened: accepted, rejected by reason, tokens, cost.

        Numbers in it (in nested dicts too) are counts that grow: those of several workers and of
        resumed runs are added. Other values (versions) are collected.
        """
        ...

    def close(self) -> None:
        """Free what the source holds."""
        ...


class ScriptedSource:
    """Scripted players before the oracle merchant."""

    def __init__(self, config: DataConfig) -> None:
        self.config = config
        self.redrawn: Counter[str] = Counter()

    def rows(self, split: Split, indices: Sequence[int]) -> Iterator[dict[str, Any]]:
        """One row a number, made in under five milliseconds."""
        for index in indices:
            yield to_row(*make_dialogue(self.config, split, index, self.redrawn))

    def report(self) -> dict[str, Any]:
        """How many dialogues were drawn anew, by the act that the oracle's answer failed at."""
        return {"redrawn": dict(self.redrawn)} if self.redrawn else {}

    def close(self) -> None:
        """Nothing to free."""


def make_dialogue(
    config: DataConfig, split: Split, index: int, redrawn: Counter[str] | None = None
) -> tuple[Play, Dialogue]:
    """The dialogue number `index` of a split; depends on nothing but the config and the number.

    A dialogue with an answer that the checks object to is drawn anew, which `redrawn` counts by
    the player's act: a phrase that is all right elsewhere may read as new terms at a review.
    """
    for attempt in range(DRAWS):
        play = start_dialogue(config, split, index, attempt)
        dialogue = play_oracle(play)
        wrong = [turn for turn in dialogue.turns if _is_wrong(turn)]
        if not wrong:
            return play, dialogue
        if redrawn is not None:
            redrawn[str(wrong[0].act)] += 1
    turn = wrong[0]
    meant = _meant(turn)
    why = turn.failed or turn.interventions or f"{turn.state} for {meant.state}"
    raise AssertionError(f"{dialogue.id}: oracle fails {why} at {meant.act}: {turn.player!r}")


def _is_wrong(turn: PlayedTurn) -> bool:
    return bool(turn.failed or turn.interventions or turn.state != _meant(turn).state)


def _meant(turn: PlayedTurn) -> Truth:
    assert turn.truth is not None, "a scripted player knows what it means"
    return turn.truth


def start_dialogue(config: DataConfig, split: Split, index: int, attempt: int = 0) -> Play:
    """The dialogue number `index` of a split before its first line: shop, scenario, player."""
    rng = random.Random(f"{config.seed}/{split}/{index}" + (f"/{attempt}" if attempt else ""))
    genres = split if config.genres == "own" else config.genres
    shop = sample_shop(rng, genres, config.items, config.invented)
    scenario = SCENARIOS[1] if rng.random() < config.recommendation else SCENARIOS[0]
    seed = rng.randrange(2**31)
    drill = _drill(config, rng) if config.drills or config.doubts or config.questions else None
    prefix = f"{split}-{index}-"
    return start_play(
        shop, scenario, seed, split, get_method(config.method), prefix, config.noise, drill,
        config.slips,
    )  # fmt: skip


def _drill(config: DataConfig, rng: random.Random) -> Drill | None:
    roll = rng.random()
    if roll < config.drills:
        return "carts"
    if roll < config.drills + config.doubts:
        return "doubts"
    return "questions" if roll < config.drills + config.doubts + config.questions else None


def dialogue_number(identifier: str, split: Split, where: str) -> int:
    """The number of a dialogue, from its id. Raises HaggleError for an id of another kind."""
    head, _, rest = identifier.partition("-")
    number = rest.partition("-")[0]
    if head != split or not number.isdigit():
        raise HaggleError(f"{identifier!r} is no id of a {split} dialogue", where=where)
    return int(number)


def row_messages(session: Session, unlearned: Collection[int] = ()) -> list[dict[str, Any]]:
    """The whole dialogue as a row has it; answers of the exchanges `unlearned` have weight 0."""
    messages = session.messages(limit=None)
    found: list[dict[str, Any]] = [{"role": m.role, "content": m.content} for m in messages]
    at = 1
    for number, exchange in enumerate(session.exchanges if unlearned else ()):
        length = len(exchange.messages())
        for message in found[at : at + length] if number in unlearned else ():
            if message["role"] == "assistant":
                message["weight"] = 0
        at += length
    return found


def to_row(play: Play, dialogue: Dialogue, teacher: str = ORACLE) -> dict[str, Any]:
    """One row of the data set: the chat messages to train on and the labels beside them."""
    return {
        "schema_version": SCHEMA_VERSION,
        "id": dialogue.id,
        "seed": dialogue.seed,
        "scenario": dialogue.scenario,
        "world": dialogue.world,
        "method": dialogue.method,
        "player": dialogue.player,
        "teacher": teacher,
        "messages": row_messages(play.session, play.unlearned),
        "turns": [
            {
                "player": turn.player,
                "act": turn.act,
                "last": turn.last,
                "state": turn.state,
                "cart": to_json(turn.cart),
                "npc_dialogue": turn.response.npc_dialogue,
            }
            for turn in dialogue.turns
        ],
    }
