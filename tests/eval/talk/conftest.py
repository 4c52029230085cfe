"""A stall with three goals, scripted merchants, players and judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from eval.talk.conversation import Table
from eval.talk.goals import GoalSet, load_goals
from eval.talk.players import GoalPlayer
from eval.talk.run import play, setting_of
from haggle.grammar.json_text import to_json
from serving.engines.scripted import ScriptedEngine

STALL = """\
merchant: {name: Ada, persona: A calm trader.}
currency: gold
items:
  - {item_id: axe, item_name: Sharp Axe, price: 130, quantity: 3}
  - {item_id: map, item_name: Local Map, price: 60, quantity: 1}
  - {item_id: wand, item_name: Elemental Wand}
"""
GOALS = """\
goals:
  - {id: axe, shop: stall, wants: Buy one axe., voice: plain, baskets: [{axe: 1}], minimum: 3}
  - {id: ask, shop: stall, wants: Ask what the map costs., voice: chatty, baskets: [{}], answered: true, minimum: 1}
  - {id: none, shop: stall, wants: Buy a wand or leave., voice: gruff, baskets: [{}], minimum: 1}
"""


def compact(state: str, last: str = "", say: str = "Well.", **fields: object) -> str:
    return to_json({"last": last, "state": state, **fields, "say": say})


class Script:
    """What merchants, players and judges say."""

    OFFER = compact("OFFER_SELL", say="__CART__: __PRICE__ gold.", cart=[["Sharp Axe", 1]])
    REVIEW = compact("FINAL_CHECK", "OFFER_SELL", "So __CART__ for __PRICE__ gold, yes?")
    SALE = compact("COMMIT_SALE", "FINAL_CHECK", "Sold.")
    CASUAL = compact("CASUAL", say="Fine day.")
    SHOW = compact("SHOW_ITEMS", say="I have __ITEMS__.", show=["Local Map"])
    BYE = compact("END", say="Farewell.")
    # One after the other: a sale, a question that is answered, a chat that leads nowhere.
    LINES = [
        "an axe please", "that is fine", "yes", "End", "what is the map", "End", "a wand?", "End",
    ]  # fmt: skip
    ANSWERS = [OFFER, REVIEW, SALE, SHOW, CASUAL]

    @staticmethod
    def verdict(
        label: str, question: str = "none", contradicts: str = "no", relevant: str = "yes"
    ) -> str:
        """A judge's answer."""
        said = {"reason": "So it is.", "question": question, "relevant": relevant}
        return to_json(said | {"contradicts": contradicts, "label": label})


@pytest.fixture(scope="session")
def script() -> type[Script]:
    """What merchants, players and judges say."""
    return Script


@pytest.fixture
def goals_file(tmp_path: Path) -> Path:
    (tmp_path / "stall.yaml").write_text(STALL, encoding="utf-8")
    path = tmp_path / "goals.yaml"
    path.write_text(GOALS, encoding="utf-8")
    return path


@pytest.fixture
def goals(goals_file: Path) -> GoalSet:
    return load_goals(goals_file)


Play = Callable[..., tuple[Table, ScriptedEngine, ScriptedEngine]]


@pytest.fixture
def played(goals: GoalSet, tmp_path: Path) -> Play:
    """Plays the goals with scripted engines; gives the table, the merchant's engine, the player's."""

    def run(
        answers: Iterable[str] = Script.ANSWERS, lines: Iterable[str] = Script.LINES, *,
        merchant: ScriptedEngine | None = None, name: str = "out", guard: Any = "state",
        batch: int = 1, limit: int = 12,
    ) -> tuple[Table, ScriptedEngine, ScriptedEngine]:  # fmt: skip
        merchant, model = merchant or ScriptedEngine(answers), ScriptedEngine(lines)
        player = GoalPlayer(model, goals)
        setting = setting_of(goals, merchant, guard, player.name, limit=limit)
        table = play(
            tmp_path / name, setting, goals, merchant, player,
            player_engine=model, batch=batch, progress=False,
        )  # fmt: skip
        return table, merchant, model

    return run
