"""Goals: read from a file, drawn for a shop, and told by code when they are reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.talk.drawing import draw_goals
from eval.talk.goals import HAND_WRITTEN, Goal, load_goals, reached, voices
from haggle.core.errors import HaggleError
from haggle.trade.ledger import floor_price, total
from haggle.trade.world_io import named_world


def goal(**fields: object) -> Goal:
    base = {"id": "g", "shop": "s", "wants": "w", "voice": "plain", "baskets": [{"axe": 2}]}
    return Goal.model_validate(base | {"minimum": 3} | fields)


@pytest.mark.parametrize(
    ("fields", "bought", "paid", "got"),
    [
        ({}, {"axe": 2}, 260, True),
        ({}, {"axe": 3}, 390, False),
        ({}, {"axe": 2, "map": 1}, 320, False),
        ({}, {}, 0, False),
        ({"at_most": 240}, {"axe": 2}, 240, True),
        ({"at_most": 240}, {"axe": 2}, 241, False),
        ({"baskets": [{"axe": "any"}]}, {"axe": 7}, 910, True),
        ({"baskets": [{}, {"map": 1}]}, {}, 0, True),
        ({"baskets": [{}, {"map": 1}]}, {"map": 1}, 60, True),
        ({"baskets": [{}]}, {"map": 1}, 60, False),
    ],
)
def test_a_goal_is_reached_by_the_right_goods_at_the_right_price(fields, bought, paid, got):
    assert reached(goal(**fields), bought, paid, None) is got


def test_a_goal_with_questions_takes_a_judge():
    asks = goal(baskets=[{}], answered=True)
    assert reached(asks, {}, 0, None) is None
    assert reached(asks, {}, 0, ["none", "answered"]) is True
    assert reached(asks, {}, 0, ["answered", "unanswered"]) is False
    assert reached(asks, {}, 0, ["none"]) is False, "nothing was asked"
    assert reached(asks, {"axe": 1}, 130, None) is False, "the goods are wrong, whatever was said"


def test_the_hand_written_goals_can_be_reached_in_shops_of_their_own():
    found = load_goals(HAND_WRITTEN)
    assert len(found.goals) >= 40 and len(found.worlds) >= 4
    assert {goal.voice for goal in found.goals.values()} == set(voices())
    texts = [path.read_text(encoding="utf-8") for path in HAND_WRITTEN.parent.glob("*.yaml")]
    assert all(text.isascii() for text in texts)
    shipped = {"frontier_shop", "trench_outfitter", "caravan_stall"}
    assert not shipped & set(found.worlds)


@pytest.mark.parametrize("path", sorted(HAND_WRITTEN.parents[1].glob("talk*/goals.yaml")), ids=str)
def test_all_goals_of_the_project_load_and_tell_how_the_player_speaks(path):
    for told in load_goals(path).goals.values():
        assert "you" in told.manner.casefold() and told.manner.endswith(".")


def test_a_voice_may_be_told_in_other_words():
    assert goal(voice="drunk and rambling").manner == "Your way of speaking: drunk and rambling."
    assert goal(voice="gruff").manner == voices()["gruff"]


def test_goals_are_drawn_for_any_shop_and_the_seed_fixes_them():
    worlds = [named_world(name) for name in ("frontier_shop", "trench_outfitter")]
    one, again, other = (draw_goals(worlds, 32, seed) for seed in (1, 1, 2))
    assert one == again and one.goals.keys() == other.goals.keys() and one != other
    assert {goal.shop for goal in one.goals.values()} == {world.name for world in worlds}
    kinds = {name.partition("-")[2] for name in one.goals}
    assert kinds == {"buy", "budget", "change", "ask", "decide", "price", "unsold", "cancel"}
    assert not any("{" in goal.wants for goal in one.goals.values())
    for found in one.goals.values():
        if found.at_most is not None:
            world, basket = one.world(found), {k: int(n) for k, n in found.baskets[0].items()}
            assert floor_price(world, basket) <= found.at_most <= total(world, basket)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("id: ask", "id: axe", ["goal 'axe'", "stands twice"]),
        ("voice: plain", "voice: plane", ["goal 'axe'", "'plane'", "did you mean 'plain'"]),
        ("[{axe: 1}]", "[{axes: 1}]", ["goal 'axe'", "'axes' is not for sale", "'axe'"]),
        ("[{axe: 1}]", "[{wand: 1}]", ["goal 'axe'", "'wand' is not for sale"]),
        ("[{axe: 1}]", "[{axe: 9}]", ["goal 'axe'", "only 3 of 'axe'"]),
        ("[{axe: 1}]", "[{axe: 1}], at_most: 80", ["at_most", "never goes below 111"]),
        ("shop: stall", "shop: stal", ["no worlds config is named 'stal'"]),
        ("minimum: 3", "minmum: 3", ["minmum", "did you mean 'minimum'"]),
    ],
)
def test_a_wrong_goal_is_told(goals_file: Path, old: str, new: str, told: list[str]):
    text = goals_file.read_text(encoding="utf-8")
    goals_file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(HaggleError) as error:
        load_goals(goals_file)
    for words in told:
        assert words in str(error.value)
