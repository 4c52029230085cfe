"""The same methods behind a counter: the state is planned, the merchant's format writes it out."""

from __future__ import annotations

import pytest

from haggle.core.engine import Generation
from haggle.grammar.json_text import to_json
from haggle.planning.config import PlanConfig
from haggle.planning.planner import METHODS, Plan
from haggle.planning.reading import Form
from haggle.trade.planning import planning_merchant
from haggle.trade.session import Session

from .conftest import RuledEngine, drawn, liking


class Counter(RuledEngine):
    """Writes the chosen state out with an axe in the cart."""

    def _answer(self, request):
        if isinstance(request.constraint, Form):
            return super()._answer(request)
        self.states = [shape.name for shape in request.constraint.states]
        cart = {"cart": [["Sharp Axe", 1]]} if self.states == ["OFFER_SELL"] else {}
        return Generation(to_json({"last": "", "state": self.states[0], **cart, "say": "Well."}))


def test_the_chosen_state_is_written_in_the_merchants_format(stall):
    plans: list[Plan] = []
    engine = Counter(liking("OFFER_SELL"))
    merchant = planning_merchant(engine, "state", "best-of-k+sop", told=plans.append)
    session = Session(stall)
    turn = merchant.reply(session, "the sharp axe please")
    assert turn.state == "OFFER_SELL" and engine.states == ["OFFER_SELL"]
    assert session.cart == {"axe": 1} and session.sale_price == 130
    assert plans[-1].choice is not None and plans[-1].choice.act == "OFFER_SELL"


@pytest.mark.parametrize("asks", ["paper", "own"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_serves_and_sells_nothing_by_planning_alone(method, asks, stall):
    session = Session(stall)
    config = PlanConfig(asks=asks)
    turn = planning_merchant(Counter(drawn), "state", method, config).reply(session, "good day")
    assert turn.failed == [] and turn.says
    assert session.sales == [] and session.cart == {}
