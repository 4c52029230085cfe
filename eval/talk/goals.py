"""What a player wants of a free conversation, and how code tells whether it was reached.

Goals are data: a YAML file with a list `goals`. `eval/benchmarks/talk/goals.yaml` is one written by
hand; `eval.talk.drawing` draws goals for any shop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from haggle.core.config import ROOT, Record, load_config, parse
from haggle.core.errors import HaggleError, nearest
from haggle.core.storage import read_json, write_json
from haggle.grammar.json_text import to_json
from haggle.trade.ledger import floor_price
from haggle.trade.world import Price, World
from haggle.trade.world_io import load_world, named_world

HAND_WRITTEN = ROOT / "eval" / "benchmarks" / "talk" / "goals.yaml"
VOICES = Path(__file__).with_name("voices.yaml")
KEPT = "goals.json"

Pieces = Annotated[int, Field(ge=1)] | Literal["any"]
Basket = dict[str, Pieces]


class Goal(Record):
    """What a player wants, in which shop, and who the player is.

    `wants` is all that the player is told. The goal is reached when what was bought is one of
    `baskets` (pieces by item id; `any` is one or more; `{}` is nothing) for `at_most` in all. With
    `answered` the player must also have asked about the goods, and no question was left open.
    `minimum` is the fewest turns to the sale, or to the end where nothing is to be bought. `voice`
    is a name of `voices.yaml`, or other words for how the player speaks.
    """

    id: Annotated[str, Field(pattern=r"^\w[\w.-]*$", max_length=80)]
    shop: Annotated[str, Field(min_length=1)]
    wants: Annotated[str, Field(min_length=1, max_length=1000)]
    voice: Annotated[str, Field(min_length=1, max_length=80)]
    baskets: Annotated[list[Basket], Field(min_length=1)]
    at_most: Price | None = None
    answered: bool = False
    minimum: Annotated[int, Field(ge=1, le=100)]

    @property
    def manner(self) -> str:
        """How the player speaks, as it is told to who plays."""
        return voices().get(self.voice, f"Your way of speaking: {self.voice}.")

    @property
    def open_ended(self) -> bool:
        """Whether buying and leaving are both right."""
        return {} in self.baskets and len(self.baskets) > 1


class GoalFile(Record):
    """A file of goals."""

    goals: Annotated[list[Goal], Field(min_length=1)]


class Voices(Record):
    """`voices.yaml`: how a player speaks, by name."""

    voices: Annotated[dict[str, str], Field(min_length=1)]


@dataclass(frozen=True)
class GoalSet:
    """Goals by id, and their shops by name."""

    goals: Mapping[str, Goal]
    worlds: Mapping[str, World]

    def world(self, goal: Goal) -> World:
        """The shop of a goal."""
        return self.worlds[goal.shop]

    def only(self, ids: Sequence[str]) -> GoalSet:
        """These goals, in this order."""
        return GoalSet({name: self.goals[name] for name in ids}, self.worlds)

    def data(self) -> dict[str, Any]:
        """Goals and shops as plain values."""
        return {
            "goals": [goal.model_dump() for goal in self.goals.values()],
            "worlds": {
                name: world.model_dump(exclude_none=True) for name, world in self.worlds.items()
            },
        }

    @property
    def fingerprint(self) -> str:
        """A hash of goals and shops."""
        return sha256(to_json(self.data()).encode()).hexdigest()


@cache
def voices() -> dict[str, str]:
    """How players speak, by the name of the voice."""
    return load_config(VOICES, Voices).voices


def load_goals(path: str | Path) -> GoalSet:
    """The goals of a YAML file. A shop is a file beside it, a shipped shop, or a path.

    Raises HaggleError naming file, goal and field.
    """
    path = Path(path)
    listed = load_config(path, GoalFile).goals
    worlds = {shop: _shop(shop, path) for shop in dict.fromkeys(goal.shop for goal in listed)}
    return goal_set(listed, worlds, str(path))


def goal_set(goals: Sequence[Goal], worlds: Mapping[str, World], where: str) -> GoalSet:
    """Goals with their shops, checked. `where` names their source in errors."""
    found: dict[str, Goal] = {}
    for goal in goals:
        place = f"{where}: goal {goal.id!r}"
        if goal.id in found:
            raise HaggleError("stands twice", where=place, hint="give each goal an id of its own")
        _check(goal, worlds[goal.shop], place)
        found[goal.id] = goal
    return GoalSet(found, {goal.shop: worlds[goal.shop] for goal in found.values()})


def find_goal(goals: GoalSet, name: str, where: str) -> Goal:
    """A goal by its id. Raises HaggleError naming the nearest one."""
    if name not in goals.goals:
        raise HaggleError(f"unknown goal {name!r}", where=where, hint=nearest(name, goals.goals))
    return goals.goals[name]


def keep_goals(out: Path, goals: GoalSet) -> None:
    """Put goals and shops beside the conversations, so that these can be read without the files."""
    write_json(out / KEPT, goals.data())


def kept_goals(out: Path) -> GoalSet:
    """The goals of the conversations in a directory."""
    where = str(out / KEPT)
    data = read_json(out / KEPT)
    listed = [parse(goal, Goal, where) for goal in data["goals"]]
    worlds = {name: parse(world, World, where) for name, world in data["worlds"].items()}
    return GoalSet({goal.id: goal for goal in listed}, worlds)


def goods_right(goal: Goal, bought: Mapping[str, int], paid: float) -> bool:
    """Whether the goods are those wanted, at a price that is low enough."""
    wanted = any(_is_basket(basket, bought) for basket in goal.baskets)
    return wanted and (goal.at_most is None or paid <= goal.at_most)


def reached(
    goal: Goal, bought: Mapping[str, int], paid: float, questions: Sequence[str] | None
) -> bool | None:
    """Whether a goal was reached; None where that takes a judge and nobody has judged.

    `questions` says of each judged turn what became of a question in it (`scale.yaml`).
    """
    if not goods_right(goal, bought, paid):
        return False
    if not goal.answered:
        return True
    if questions is None:
        return None
    return "answered" in questions and "unanswered" not in questions


def _is_basket(basket: Basket, bought: Mapping[str, int]) -> bool:
    return basket.keys() == bought.keys() and all(
        number in ("any", bought[item]) for item, number in basket.items()
    )


def _shop(name: str, path: Path) -> World:
    beside = path.parent / f"{name}.yaml"
    return load_world(beside) if beside.is_file() else named_world(name)


def _check(goal: Goal, world: World, where: str) -> None:
    """Raise HaggleError for a goal that nobody can reach, or a voice that is mistyped."""
    one_word = goal.voice.isalpha() and goal.voice not in voices()
    if one_word and get_close_matches(goal.voice, voices(), cutoff=0.7):
        hint = nearest(goal.voice, voices())
        raise HaggleError(f"unknown voice {goal.voice!r}", where=where, hint=hint)
    for item, number in ((i, n) for basket in goal.baskets for i, n in basket.items()):
        if item not in world.by_id or not world.by_id[item].for_sale:
            known = [sold.item_id for sold in world.inventory]
            hint = nearest(item, known)
            raise HaggleError(f"baskets: {item!r} is not for sale", where=where, hint=hint)
        stock = world.by_id[item].quantity or 0
        if number != "any" and number > stock:
            raise HaggleError(f"baskets: there are only {stock} of {item!r}", where=where)
    if goal.at_most is not None:
        least = min(floor_price(world, _counted(basket)) for basket in goal.baskets)
        if least > goal.at_most:
            raise HaggleError(
                f"at_most: this merchant never goes below {least:g}",
                where=where,
                hint="raise at_most, or lower the prices of the shop",
            )


def _counted(basket: Basket) -> dict[str, int]:
    return {item: 1 if number == "any" else number for item, number in basket.items()}
