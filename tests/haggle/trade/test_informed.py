"""Questions about goods are answered with what the shop's file says, whatever the model says."""

from __future__ import annotations

import pytest

from haggle.core.engine import Generation
from haggle.grammar.json_text import to_json
from haggle.trade.merchant import Merchant
from haggle.trade.methods import get_method
from haggle.trade.outcome import outcome
from haggle.trade.session import Session
from serving.engines.scripted import ScriptedEngine


@pytest.fixture
def told(stall):
    """The stall, where something is known of the axe and the rope."""
    items = [
        item.model_copy(
            update={
                "axe": {
                    "description": "A felling axe.",
                    "facts": ["Forged in Norwall of blue steel."],
                },
                "rope": {"description": "Hemp, laid by hand."},
            }.get(item.item_id, {})
        )
        for item in stall.items
    ]
    return stall.model_copy(update={"items": items})


@pytest.mark.parametrize("guard", ["off", "state"])
def test_the_asked_goods_are_told_of(visit, told, guard):
    customer = visit(guard, world=told)
    turn = customer.turn("SHOW_ITEMS", "Look.", "where is the sharp axe from?", show=["Sharp Axe"])
    assert turn.says == "Look. Forged in Norwall of blue steel."


def test_a_question_taken_for_talk_is_answered_all_the_same(visit, told):
    turn = visit(world=told).turn("CASUAL", "Hm.", "what is the sharp axe made of?")
    assert turn.says == "Hm. Forged in Norwall of blue steel."


def test_what_nothing_is_known_of_is_not_made_up(visit, told):
    turn = visit(world=told).turn(
        "SHOW_ITEMS", "Look.", "what is the mana potion made of?", show=["Mana Potion"]
    )
    assert "Mana Potion I do not know" in turn.says


def test_two_goods_are_told_of_by_name(visit, told):
    line = "which lasts longer, the sharp axe or the sturdy rope?"
    names = ["Sharp Axe", "Sturdy Rope (20m)"]
    says = visit(world=told).turn("SHOW_ITEMS", "Well.", line, show=names).says
    assert "Sharp Axe: " in says and "Sturdy Rope (20m): Hemp" in says


def test_who_asks_for_the_price_alone_hears_the_price_alone(visit, told):
    line = "how much is the sharp axe?"
    assert visit(world=told).turn("SHOW_ITEMS", "Look.", line, show=["Sharp Axe"]).says == "Look."


@pytest.mark.parametrize("line", ["show me the sharp axe", "the axe what does it do"])
def test_goods_on_show_are_said_to_be_what_they_are(visit, told, line):
    turn = visit(world=told).turn("SHOW_ITEMS", "Look.", line, show=["Sharp Axe"])
    assert turn.says.startswith("Look.") and "A felling axe." in turn.says


def test_three_goods_on_show_are_only_named(visit, told):
    names = [item.item_name for item in told.inventory[:3]]
    turn = visit(world=told).turn("SHOW_ITEMS", "Look.", "what have you?", show=names)
    assert turn.says == "Look."


def test_an_order_that_asks_is_answered_as_well(visit, told):
    customer = visit(world=told)
    line = "is the sharp axe any good? I take one anyway"
    turn = customer.turn("OFFER_SELL", "__CART__.", line, cart=[["Sharp Axe", 1]])
    assert turn.says == "1 Sharp Axe. A felling axe."
    turn = customer.turn("FINAL_CHECK", "__CART__ for __PRICE__?", "deal. is the axe any good?")
    assert "A felling axe" not in turn.says


def test_numbers_of_a_fact_are_no_false_prices(visit, told):
    rope = next(item for item in told.items if item.item_id == "rope")
    items = [rope.model_copy(update={"facts": ["Made of 300 strands."]}), *told.items[:2]]
    customer = visit(world=told.model_copy(update={"items": items}))
    line = "what is the sturdy rope made of?"
    turn = customer.turn("SHOW_ITEMS", "See.", line, show=["Sturdy Rope (20m)"])
    assert turn.says == "See. Made of 300 strands." and turn.failed == []


def test_the_model_reads_what_is_told_before_it_speaks(visit, told):
    customer = visit(world=told, method="astp-stepwise")
    text = to_json({"last": "", "state": "SHOW_ITEMS", "show": ["Sharp Axe"]})
    merchant, session = customer.merchant, customer.session
    from haggle.core.engine import Generation

    move = merchant.act(session, "what is the sharp axe made of?", Generation(text))
    assert outcome(session, move.outcome) == "shown; told: Forged in Norwall of blue steel."


def test_the_goods_asked_about_are_shown_instead_of_others(visit, told):
    line = "where is the sharp axe from?"
    turn = visit(world=told).turn("SHOW_ITEMS", "See __ITEMS__.", line, show=["Mana Potion"])
    assert turn.says == "See Sharp Axe. Forged in Norwall of blue steel."
    assert "asked_about" in turn.interventions


def test_who_asks_the_same_is_told_it_again_and_who_asks_on_something_new(told):
    session = Session(told, method=get_method("astp-stepwise"))
    merchant, said = Merchant(ScriptedEngine([])), []
    for line in ("where is the sharp axe from?", "no, where is the axe from?", "what is the axe?"):
        decision = '{"last":"","state":"SHOW_ITEMS","show":["Sharp Axe"]}'
        move = merchant.act(session, line, Generation(decision))
        said.append((move.outcome.notes[0].kind, move.outcome.notes[0].name))
        move.say(Generation('{"say":"Gladly."}'))
        session = move.episode
        move.settle()
    assert said[0] == ("told", "Forged in Norwall of blue steel.")
    assert said[1:] == [("told", "Forged in Norwall of blue steel."), ("told", "A felling axe.")]


def test_a_question_beside_an_order_is_answered(visit, told):
    line = "I need two ropes. What is the sharp axe made of?"
    turn = visit(world=told).turn("SHOW_ITEMS", "Look.", line, show=["Sharp Axe"])
    assert turn.says.endswith("Forged in Norwall of blue steel.") and turn.cart == {"rope": 2}


@pytest.mark.parametrize(
    "line",
    [
        "is it new?",
        "twenty, hm. but is it new",
        "I owe my aunt 90 and her name is Ada. does the sharp axe rust tho",
    ],
)
def test_questions_in_other_words_are_heard(visit, told, line):
    turn = visit(world=told).turn("SHOW_ITEMS", "Look.", line, show=["Sharp Axe"])
    assert turn.says != "Look."


def test_a_question_alone_hears_the_two_best_answers(visit, told):
    facts = [
        "Forged in Norwall of blue steel.",
        "It weighs two kilos.",
        "The handle is of ash wood.",
    ]
    items = [told.items[0].model_copy(update={"facts": facts}), *told.items[1:]]
    customer = visit(world=told.model_copy(update={"items": items}))
    turn = customer.turn("SHOW_ITEMS", "", "what is the sharp axe made of?", show=["Sharp Axe"])
    assert facts[0] in turn.says and facts[2] in turn.says and facts[1] not in turn.says


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("two axes please, and how much is the rope?", "Sturdy Rope (20m) for 7.5 gold."),
        ("two axes please! what do the axes cost each?", "Sharp Axe for 130 gold."),
        ("one axe. What's the price of a mana potion and a rope?", "Mana Potion for 60 gold and"),
    ],
)
def test_a_price_asked_beside_an_order_is_told(visit, line, says):
    number = 1 if line.startswith("one") else 2
    turn = visit().turn("OFFER_SELL", "__CART__.", line, cart=[["Sharp Axe", number]])
    assert turn.cart == {"axe": number} and says in turn.says and not turn.failed


def test_a_price_asked_alone_is_shown_and_not_talked_past(visit):
    turn = visit().turn("CASUAL", "Lovely day.", "what would the rope cost me")
    assert (turn.state, turn.says) == ("SHOW_ITEMS", "I have Sturdy Rope (20m) for 7.5 gold.")


@pytest.mark.parametrize(
    "line", ["one axe please, how much is it?", "one axe please, what does the axe cost?"]
)
def test_a_price_that_the_order_has_is_not_told_twice(visit, line):
    turn = visit().turn("OFFER_SELL", "__PRICE__ __CURRENCY__.", line, cart=[["Sharp Axe", 1]])
    assert turn.says == "130 gold."


@pytest.mark.parametrize(
    "line", ["two axes and a rope to lower me down", "one axe, my rope cost me a finger"]
)
def test_a_word_of_prices_that_asks_nothing_tells_no_price(visit, line):
    turn = visit().turn("OFFER_SELL", "__CART__.", line, cart=[["Sharp Axe", 2]])
    assert "for 7.5 gold" not in turn.says
    assert (
        visit().turn("CASUAL", "Well.", "I would lower the rope into the shaft").state == "CASUAL"
    )
