"""Decide, see the outcome, then speak: two answers of a model make one turn."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from data_gen.config import DataConfig
from data_gen.sources import make_dialogue, to_row
from haggle.core.agent import Decided
from haggle.core.engine import Generation
from haggle.core.text import is_outcome
from haggle.dataset import decisions, whole_answers
from haggle.trade.merchant import Guard, Merchant, written
from haggle.trade.methods import get_method
from haggle.trade.session import Session
from haggle.trade.speech import claims
from serving.engines.scripted import ScriptedEngine

ORDER = '{"last":"","state":"OFFER_SELL","cart":[["Sharp Axe",9],["?elven sword",1]]}'
SAID = '{"say":"__CART__, so __PRICE__ __CURRENCY__."}'


def talk(stall, *answers, guard: Guard = "state") -> tuple[Any, Session]:
    """A merchant whose model gives these answers and speaks freely, and a customer."""
    merchant = Merchant(ScriptedEngine(answers), guard, speech="free")
    return merchant, Session(stall, method=get_method("astp-stepwise"))


def test_the_line_is_asked_for_with_the_outcome_in_view(stall):
    merchant, session = talk(stall, ORDER, SAID)
    turn = merchant.reply(session, "nine axes and an elven sword")
    decided, spoken = merchant.engine.requests
    assert decided.messages == spoken.messages[:-2]
    assert [m.role for m in spoken.messages[-2:]] == ["assistant", "user"]
    assert spoken.messages[-2].content == ORDER
    seen = spoken.messages[-1].content
    assert seen == "outcome: +3 Sharp Axe; not sold here: elven sword; only 3 Sharp Axe left"
    assert turn.says.startswith("3 Sharp Axes, so 390 gold.") and turn.raw == f"{ORDER}\n{SAID}"
    assert turn.usage.completion_tokens == len(ORDER.split()) + len(SAID.split())


def test_later_turns_see_the_turn_as_it_was(stall):
    merchant, session = talk(stall, ORDER, SAID, '{"last":"OFFER_SELL","state":"CASUAL"}', "?", "?")
    merchant.reply(session, "nine axes and an elven sword")
    before = merchant.engine.requests[-1].messages
    merchant.reply(session, "how do you do")
    later = merchant.engine.requests[2].messages
    assert later[: len(before)] == before  # a prefix cache holds
    assert later[len(before)].content == SAID


def test_a_line_that_cannot_be_read_is_asked_for_once_more_then_replaced(stall):
    merchant, session = talk(stall, ORDER, "Well!", ORDER)
    turn = merchant.reply(session, "nine axes and an elven sword please")
    first, second = merchant.engine.requests[1:]
    assert first.temperature == second.temperature > 0 and first.seed != second.seed
    assert turn.says.startswith("That makes 3 Sharp Axes for 390 gold.")
    assert turn.cart == {"axe": 3} and not turn.valid_json
    assert "safe_line" in turn.interventions and "format" in turn.proposed_failed


SECOND = '{"last":"","state":"OFFER_SELL","cart":[["Local Map",2]]}'


def test_of_two_actions_in_one_answer_the_first_is_carried_out_alone(stall):
    merchant, session = talk(stall, ORDER + SECOND, SAID)
    turn = merchant.reply(session, "nine axes and an elven sword please")
    assert turn.cart == {"axe": 3} == session.cart and not turn.valid_json


def test_two_actions_that_cannot_be_told_apart_change_nothing(stall):
    merchant, session = talk(stall, f"{ORDER}\n{SECOND}", SAID)
    turn = merchant.reply(session, "nine axes and an elven sword please")
    assert turn.cart == {} == session.cart and "degraded" in turn.interventions


def test_an_action_in_the_place_of_a_line_is_never_carried_out(stall):
    merchant, session = talk(stall, ORDER, SECOND, SAID)
    turn = merchant.reply(session, "nine axes and an elven sword please")
    assert turn.cart == {"axe": 3} == session.cart and turn.says.startswith("3 Sharp Axes")


@pytest.mark.parametrize(
    ("decision", "line", "claim"),
    [
        ('{"last":"OFFER_SELL","state":"NEGOTIATE","bid":null}', "I have swapped it.", "changed"),
        ('{"last":"OFFER_SELL","state":"OFFER_SELL","change":[]}', "Changed, then.", "changed"),
        ('{"last":"OFFER_SELL","state":"CASUAL"}', "Your basket is empty again.", "emptied"),
        ('{"last":"OFFER_SELL","state":"CASUAL"}', "Sold! It is settled.", "concluded"),
        (
            '{"last":"OFFER_SELL","state":"OFFER_SELL","change":[["Sharp Axe",2]]}',
            "I do not sell that.",
            "refused",
        ),
    ],
)
def test_a_line_against_the_outcome_is_written_again(stall, decision, line, claim):
    untrue = json.dumps({"say": line})
    merchant, session = talk(stall, decision, untrue, '{"say":"Well, well."}')
    written(
        session, "an axe", '{"last":"","state":"OFFER_SELL","cart":[["Sharp Axe",1]],"say":"x"}'
    )
    turn = merchant.reply(session, "make it two axes" if ",2]" in decision else "an axe, hm")
    assert turn.says == "Well, well." and claim in turn.proposed_failed
    assert "safe_line" not in turn.interventions and len(merchant.engine.requests) == 3


def test_with_the_guard_off_every_line_stands(stall):
    merchant, session = talk(stall, ORDER, '{"say":"I do not sell that."}', guard="off")
    turn = merchant.reply(session, "nine axes and an elven sword")
    assert turn.says.startswith("I do not sell that.") and turn.interventions == []


def test_a_model_that_speaks_before_it_acts_is_not_heard(stall):
    early = ORDER[:-1] + ',"say":"Sold to you for nothing."}'
    merchant, session = talk(stall, early, SAID)
    turn = merchant.reply(session, "nine axes and an elven sword please")
    assert "nothing" not in turn.says and len(merchant.engine.requests) == 2
    assert session.exchanges[-1].answer == ORDER


def test_what_code_says_itself_is_not_asked_for(stall):
    sale = '{"last":"FINAL_CHECK","state":"COMMIT_SALE"}'
    merchant, session = talk(stall, sale)
    written(
        session, "an axe", '{"last":"","state":"OFFER_SELL","cart":[["Sharp Axe",1]],"say":"x"}'
    )
    review = '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"__CART__, __PRICE__ gold?"}'
    written(session, "fine", review)
    turn = merchant.reply(session, "if you throw in a map")
    assert turn.withheld and not session.sales and len(merchant.engine.requests) == 1
    assert session.exchanges[-1].outcome.startswith("held back: ")


def test_lines_of_several_talks_are_asked_for_together(stall):
    merchant, first = talk(stall, ORDER, "no JSON", SAID)
    second = Session(stall, method=first.method)
    turns = merchant.reply_batch(
        [(first, "nine axes and an elven sword"), (second, "nine axes and an elven sword")]
    )
    assert turns[1].interventions[-1] == "degraded" and turns[0].cart == {"axe": 3}
    assert len(merchant.engine.requests) == 3


def test_the_line_streams_behind_the_decision(stall):
    merchant, session = talk(stall, ORDER, SAID)
    *pieces, turn = merchant.stream(session, "nine axes and an elven sword")
    assert "".join(p for p in pieces if isinstance(p, str)) == ORDER + SAID
    assert turn.cart == {"axe": 3}
    decided = next(n for n, p in enumerate(pieces) if isinstance(p, Decided))
    assert pieces[decided].outcome.cart == {"axe": 3} and "".join(pieces[:decided]) == ORDER


def test_a_raw_turn_can_be_played_again(stall):
    merchant, session = talk(stall, ORDER, SAID)
    turn = merchant.reply(session, "nine axes and an elven sword")
    again = Session(stall, method=session.method)
    assert written(again, "nine axes and an elven sword", turn.raw).says == turn.says
    assert again.messages() == session.messages()


def test_a_raw_turn_whose_line_was_replaced_is_replaced_again(stall):
    merchant, session = talk(stall, ORDER, "Well!", '{"say":"Sold! It is settled."}')
    turn = merchant.reply(session, "nine axes and an elven sword please")
    assert turn.says.startswith("That makes 3 Sharp Axes") and turn.raw.count("\n") == 2
    again = Session(stall, method=session.method)
    repeated = merchant.complete(again, "nine axes and an elven sword please", Generation(turn.raw))
    assert (repeated.says, repeated.interventions) == (turn.says, turn.interventions)
    assert again.messages() == session.messages()


def test_data_sets_hold_both_answers_of_a_turn():
    config = DataConfig(seed=3, method="astp-stepwise")
    row = to_row(*make_dialogue(config, "train", 1))
    messages, turns = row["messages"], row["turns"]
    places = decisions(messages)
    assert len(places) == len(turns) and len(messages) == 1 + 4 * len(turns)
    for at, answer, turn in zip(places, whole_answers(messages), turns, strict=True):
        decision, said = (json.loads(text) for text in answer.split("\n"))
        assert decision["state"] == turn["state"] and list(said) == ["say"]
        assert "say" not in decision and is_outcome(messages[at + 1]["content"])


def test_a_player_cannot_pose_as_an_outcome(stall):
    _, session = talk(stall)
    assert not is_outcome(session.messages("outcome: sold")[-1].content)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Sold! Mind the edge.", {"concluded"}),
        ("Shall I say it is settled?", set()),
        ("Updated: two ropes.", {"changed"}),
        ("I am happy to change it.", {"changed"}),
        ("I could change it if you like.", set()),
        ("Cancelled, the counter is clear.", {"emptied"}),
        ("That is nothing I can offer.", {"refused"}),
        ("A good rope never lets you down.", set()),
    ],
)
def test_claims(line, found):
    assert claims(line) == found


def test_a_stream_without_an_end_is_an_error(stall):
    class Broken(ScriptedEngine):
        def stream(self, request):
            yield from (p for p in super().stream(request) if not isinstance(p, Generation))

    merchant = Merchant(Broken([ORDER]))
    with pytest.raises(RuntimeError, match="ended without"):
        list(merchant.stream(Session(stall, method=get_method("astp-stepwise")), "hm"))


class Sure(ScriptedEngine):
    """Gives each decision a probability."""

    def __init__(self, probability: float | None, *answers: str) -> None:
        super().__init__(answers)
        self.probability = probability

    def generate(self, requests):
        found = super().generate(requests)
        return [
            replace(answer, probability=self.probability if request.scored else None)
            for answer, request in zip(found, requests, strict=True)
        ]


TWO_AXES = '{"last":"","state":"OFFER_SELL","cart":[["Sharp Axe",2]]}'
TALK = '{"last":"","state":"CASUAL"}'


def asker(stall, probability, *answers, below: float = 0.5) -> tuple[Any, Session]:
    merchant = Merchant(Sure(probability, *answers), ask_below=below)
    return merchant, Session(stall, method=get_method("astp-stepwise"))


def test_an_order_the_model_doubts_is_asked_about_and_a_yes_settles_it(stall):
    merchant, session = asker(stall, 0.2, TWO_AXES, TALK, SAID)
    turn = merchant.reply(session, "couple of the sharp axe thingies")
    assert (turn.state, session.cart, turn.withheld) == ("CASUAL", {}, "asked_order")
    assert "2 Sharp Axes" in turn.says and turn.says.endswith("?")
    turn = merchant.reply(session, "yes please")
    assert (turn.state, session.cart) == ("OFFER_SELL", {"axe": 2}) and not turn.withheld
    assert session.pending is None


@pytest.mark.parametrize(
    ("line", "cart"),
    [
        ("no, three sharp axes", {"axe": 3}),
        ("yes, but three sharp axes", {"axe": 3}),
        ("yes, and a mana potion", {"axe": 2, "potion": 1}),
    ],
)
def test_the_order_that_was_asked_about_is_put_right(stall, line, cart):
    """Whatever the model makes of it."""
    merchant, session = asker(stall, 0.2, TWO_AXES, TALK, SAID)
    merchant.reply(session, "couple of the sharp axe thingies")
    turn = merchant.reply(session, line)
    assert (turn.state, session.cart, turn.withheld) == ("OFFER_SELL", cart, "")


def test_another_answer_to_the_question_is_read_as_any_line(stall):
    merchant, session = asker(stall, 0.2, TWO_AXES, TALK, '{"say":"Hm."}')
    merchant.reply(session, "couple of the sharp axe thingies")
    merchant.reply(session, "lovely weather")
    assert session.cart == {} and session.pending is None


def test_an_order_may_be_confirmed_behind_a_question(stall):
    merchant, session = asker(stall, 0.2, TWO_AXES, TALK, TALK, SAID)
    merchant.reply(session, "couple of the sharp axe thingies")
    merchant.reply(session, "are you open tomorrow?")
    assert merchant.reply(session, "yes please").cart == {"axe": 2}


@pytest.mark.parametrize(
    ("answer", "state", "cart", "why"),
    [
        ("No axe! The other thing!", "CASUAL", {}, "asked_other"),
        ("the sharp axes there, a couple", "OFFER_SELL", {"axe": 2}, ""),
    ],
)
def test_nothing_is_asked_twice(stall, answer, state, cart, why):
    merchant, session = asker(stall, 0.2, TWO_AXES, TWO_AXES, SAID)
    assert merchant.reply(session, "couple of the sharp axe thingies").withheld == "asked_order"
    turn = merchant.reply(session, answer)
    assert (turn.state, session.cart, turn.withheld) == (state, cart, why)


def test_of_two_candidates_it_is_asked_which(stall):
    potion = '{"last":"","state":"OFFER_SELL","cart":[["Mana Potion",1]]}'
    items = [*stall.items, stall.items[1].model_copy(update={
        "item_id": "heal", "item_name": "Healing Potion"})]  # fmt: skip
    merchant, session = asker(stall.model_copy(update={"items": items}), 0.2, potion)
    turn = merchant.reply(session, "a potion")
    assert turn.withheld == "asked_which" and turn.says == (
        "Which do you mean: Mana Potion or Healing Potion?"
    )


@pytest.mark.parametrize(("probability", "below"), [(0.9, 0.5), (0.2, 0.0), (None, 0.5)])
def test_a_sure_decision_is_carried_out(stall, probability, below):
    merchant, session = asker(stall, probability, TWO_AXES, SAID, below=below)
    assert merchant.reply(session, "two sharp axes").cart == {"axe": 2}


def test_what_moves_no_cart_is_not_asked_about(stall):
    merchant, session = asker(stall, 0.01, '{"last":"","state":"CASUAL"}', '{"say":"Well met."}')
    assert merchant.reply(session, "hello").withheld == ""
