"""What customers ask in free talk, and which goods and sentences answer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from haggle.grammar.json_text import to_json
from haggle.language.embeddings import load_embedder
from haggle.language.english.linker import English
from haggle.trade.knowledge import asks_for_a_deal, asks_the_difference, asks_what_it_costs
from haggle.trade.merchant import Merchant
from haggle.trade.methods import get_method
from haggle.trade.records import TurnRecord
from haggle.trade.session import Session
from haggle.trade.telling import nearest
from haggle.trade.world import MerchantInfo, World
from serving.engines.scripted import ScriptedEngine

from .conftest import good, order, show


@pytest.fixture(scope="module")
def bazaar() -> World:
    return World(
        name="bazaar",
        merchant=MerchantInfo(name="Pia Lund", persona="A quiet woman."),
        currency="kroner",
        items=[
            good("Finger Rings", 12, 5, "Three thin copper rings.", "They turn the skin green."),
            good("Hand Bell", 25, 2, "A brass bell with an oak handle.",
                 "It is heard through two walls.", "It was cast in Uppsala."),
            good("Tin of Nails", 4, 40, "Forty iron nails in a tin.",
                 "Each nail is two inches long."),
            good("Short Ladder", 30, 3, "A ladder of six rungs for a pantry.",
                 "It weighs nine pounds."),
            good("Long Ladder", 55, 2, "A ladder of eighteen rungs for a roof.",
                 "It takes two men to carry."),
            good("Rat Trap", 9, 6, "A wooden trap with a steel spring.", "Bait it with cheese."),
            good("Ear Plugs", 2, 50, "A pair of soft wax plugs that keep out noise at night."),
            good("Mulled Cordial", 7, 9, "A spiced cordial to drink hot.",
                 "It is made with almonds."),
        ],
    )  # fmt: skip


def said(world: World, *turns: tuple[str, dict[str, Any]]) -> TurnRecord:
    """The last turn of a talk with a merchant who reads by meaning."""
    embedder = load_embedder("auto")
    if embedder is None:
        pytest.skip("the extra `embeddings` is not installed")
    session = Session(world, method=get_method("astp-stepwise"), linker=English(embedder))
    for line, decision in turns:
        engine = ScriptedEngine(
            [to_json({"last": session.last} | decision), *['{"say":"Hm."}'] * 3]
        )
        turn = Merchant(engine).reply(session, line)
    return turn


def test_a_question_and_its_line_both_count(bazaar: World) -> None:
    question, line = (
        "Will my neighbours hear it?",
        "My aunt came from Uppsala. Will my neighbours hear it?",
    )
    scores = {line: {"oak": 0.1, "walls": 0.3, "cast": 0.55}, question: {"walls": 0.5, "cast": 0.1}}

    def near(asked: str, texts: Sequence[str]) -> list[float]:
        words = scores[asked].items()
        return [max((score for word, score in words if word in text), default=0) for text in texts]

    _, text = nearest(bazaar.by_id["hand_bell"], line, near)
    assert text.startswith("It is heard")


@pytest.mark.parametrize(
    ("line", "shown", "answer"),
    [
        ("Rings? You misheard me. The bell, the one with a handle. How far does it ring?",
         "Finger Rings", "two walls"),
        ("That short ladder there. Could I put a tin of nails on it, or is it heavy?",
         "Tin of Nails", "nine pounds"),
        ("I never asked for a price. I only wish to learn whether the long ladder can be carried alone",
         "Long Ladder", "two men"),
        ("My nephew swells up from them. Has the cordial got any almonds in it?",
         "Mulled Cordial", "almonds"),
    ],
)  # fmt: skip
def test_the_good_that_is_meant_is_told_of(bazaar: World, line, shown, answer) -> None:
    turn = said(bazaar, (line, show(shown)))
    assert answer in turn.says


def test_the_difference_is_what_each_is(bazaar: World) -> None:
    seen = ("is that a ladder?", show("Short Ladder"))
    turn = said(bazaar, seen, ("And the other kind, what is the difference?", show("Rat Trap")))
    assert "for a pantry" in turn.says and "for a roof" in turn.says


def test_who_wants_something_else_does_not_get_what_the_line_speaks_of(bazaar: World) -> None:
    line = "A bell, aye, my mother had a bell. I need my sleep. Something against the noise?"
    assert "Ear Plugs" in said(bazaar, (line, show("Hand Bell"))).says


def test_what_can_help_asks_for_no_can(bazaar: World) -> None:
    can = good("Milk Can", 8, 4, "A tin can with a lid.")
    world = bazaar.model_copy(update={"items": [*bazaar.items, can]})
    line = "There is gnawing in my pantry, crumbs in every corner. What can help?"
    assert "Rat Trap" in said(world, (line, show("Milk Can"))).says


def test_what_is_turned_down_is_not_shown_again(bazaar: World) -> None:
    seen = ("what is the long ladder like?", show("Long Ladder"))
    line = "Too heavy for me. Have you some other thing, so that I reach my shelf?"
    turn = said(bazaar, seen, (line, show("Long Ladder")))
    details = turn.response.context_details
    names = [item.item_name for item in details.items] if details else []
    assert "Short Ladder" in names and "Long Ladder" not in names


def test_how_many_is_told_beside_an_order(bazaar: World) -> None:
    line = "Two tins of nails, then. How many are in a tin?"
    turn = said(bazaar, (line, order(Tin_of_Nails=2)))
    assert turn.cart == {"tin_of_nails": 2} and "Forty iron nails" in turn.says


def test_of_two_in_view_both_are_told_of_where_either_may_be_meant(bazaar: World) -> None:
    seen = ("what ladders have you?", show("Short Ladder", "Long Ladder"))
    turn = said(bazaar, seen, ("Which of those has more rungs?", show("Short Ladder")))
    assert "six rungs" in turn.says and "eighteen rungs" in turn.says


@pytest.mark.parametrize(
    ("line", "deal"),
    [
        ("I did not speak of the price", False),
        ("has the cordial got any sugar in it?", False),
        ("how many are in a tin?", False),
        ("how many have you got?", True),
        ("what is the price of the cordial?", True),
    ],
)
def test_what_is_no_question_of_price_or_stock(line: str, deal: bool) -> None:
    assert asks_for_a_deal(line) == deal
    assert not asks_what_it_costs(line) or deal


def test_a_difference_in_something_is_asked_of_that() -> None:
    assert asks_the_difference("what is the difference?")
    assert not asks_the_difference("what is the difference in weight?")
