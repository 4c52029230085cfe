"""How an act's cart is told: one act in one way, whatever words it took."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from data_gen.config import DataConfig, check
from data_gen.players.speaker import reordered
from data_gen.sources import make_dialogue
from data_gen.teachers.llm import write
from haggle.core.errors import HaggleError
from haggle.trade.session import Session
from haggle.trade.wire import UNLISTED, Proposal
from haggle.trade.world_io import named_world

# What stands in the answer behind each act: steps that match, or None for a whole cart.
TOLD = {
    "double": {"x2"},
    "double_item": {"x2"},
    "halve": {"half"},
    "halve_item": {"half"},
    "one_more": {"+1"},
    "remove": {0},
    "remove_ordinal": {0},
    "keep_only": None,
}


@pytest.fixture(scope="module")
def answers():
    """Answers of scripted dialogues by act, as JSON objects."""
    config = DataConfig(drills=0.7, doubts=0.1, seed=3, items=(4, 8))
    found = defaultdict(list)
    for index in range(120):
        play, dialogue = make_dialogue(config, "train", index)
        said = [m.content for m in play.session.messages(limit=None) if m.role == "assistant"]
        for turn, answer in zip(dialogue.turns, said, strict=True):
            found[turn.act].append(json.loads(answer))
    return found


@pytest.mark.parametrize("act", TOLD)
def test_an_act_is_told_in_one_way(answers, act):
    offers = [a for a in answers[act] if a["state"] == "OFFER_SELL"]
    assert len(offers) > 2
    for answer in offers:
        if TOLD[act] is None:
            assert "cart" in answer and "change" not in answer
        else:
            assert {step for _, step in answer["change"]} == TOLD[act]


def test_more_and_fewer_are_told_as_more_and_fewer(answers):
    for act, sign in (("add_more", "+"), ("put_back_some", "-")):
        assert answers[act]
        for answer in answers[act]:
            ((_, step),) = answer["change"]
            assert step.startswith(sign)


def test_a_swap_takes_the_old_line_out(answers):
    changed = [a["change"] for a in answers["swap"] if "change" in a]
    sold = [c for c in changed if not all(name.startswith(UNLISTED) for name, _ in c)]
    assert len(sold) > 20
    assert all(change[0][1] == 0 and len(change) > 1 for change in sold)


def test_a_new_cart_in_place_of_the_last_is_told_whole(answers):
    sold = [a for a in answers["replace_all"] if "cart" in a]
    assert len(sold) > 0.8 * len(answers["replace_all"])  # the rest orders nothing that is sold


def test_doubts_are_hesitation_questions_and_tricks_before_a_sale():
    def acts(**shares: float) -> list[str]:
        config = DataConfig(seed=5, **shares)
        dialogues = (make_dialogue(config, "train", index)[1] for index in range(40))
        return [str(turn.act) for dialogue in dialogues for turn in dialogue.turns]

    def share(found: list[str]) -> float:
        wanted = ("hesitate", "refuse", "ask_", "attack_", "compare", "smalltalk")
        return sum(act.startswith(wanted) for act in found) / len(found)

    assert share(acts(doubts=1.0)) > 1.8 * share(acts())


def test_dialogues_that_are_no_drill_are_not_touched():
    plain = [make_dialogue(DataConfig(seed=5), "train", index)[1] for index in range(20)]
    mixed = [
        make_dialogue(DataConfig(seed=5, doubts=0.3), "train", index)[1] for index in range(20)
    ]
    same = sum(a == b for a, b in zip(plain, mixed, strict=True))
    assert 8 <= same < 20


def test_shares_of_drills_and_doubts_beyond_every_dialogue_are_told():
    with pytest.raises(HaggleError, match="more than every dialogue"):
        check(DataConfig(drills=0.7, doubts=0.5))


def test_a_rephrased_line_is_answered_as_its_act_is():
    """Whatever words a model finds for "twice as many": the act is known, so it decides."""
    world = named_world("frontier_shop")
    session = Session(world)
    axe = world.find("Sharp Axe")
    assert axe is not None
    session.cart = {axe.item_id: 4}
    act = reordered("double_item", (axe.item_name, 8), change=((axe.item_name, "x2"),))
    proposal = Proposal("", "OFFER_SELL", "__CART__, __PRICE__.", cart=act.cart)
    line = "let the number of axes become what it is, and that again"
    steps = {}
    for known in (act, None):
        twin = session.branch()
        write(twin, line, proposal, known)
        steps[known] = json.loads(twin.exchanges[-1].answer)["change"]
        assert twin.cart == {axe.item_id: 8}
    assert steps == {act: [["Sharp Axe", "x2"]], None: [["Sharp Axe", 8]]}
