"""Remarks, praise, questions and odd goods: what changes no order."""

from __future__ import annotations

import pytest

from haggle.grammar.json_text import to_json
from haggle.language.embeddings import MiniLM
from haggle.language.english.linker import English
from haggle.trade.bidding import offered
from haggle.trade.merchant import TRADE, Merchant
from haggle.trade.methods import get_method
from haggle.trade.session import Session
from haggle.trade.world import World
from serving.engines.scripted import ScriptedEngine

from .conftest import CHAT, Talk, change, order, show

BOOTS = ("the sea boots, please", order(Sea_Boots=1))
BOTH = ("two bottles of lamp oil and the sea boots", order(Bottle_of_Lamp_Oil=2, Sea_Boots=1))


@pytest.mark.parametrize("line", ["swap it for a rope and the sextant"])
def test_goods_that_are_not_sold_stop_no_swap(talk: Talk, line) -> None:
    assert talk(BOOTS, (line, change(Coil_of_Rope=1))).cart["coil_of_rope"] == 1


@pytest.mark.parametrize("decided", [change(Coil_of_Rope=1), order(Coil_of_Rope=1)])
@pytest.mark.parametrize(
    ("line", "before"),
    [
        ("could I swap that for a rope?", BOOTS),
        ("would you change that for a rope for free?", BOOTS),
        ("could I swap the boots for a rope?", BOTH),
        ("What is the rope made of? No boots then", BOTH),
    ],
)
def test_a_question_empties_no_cart(talk: Talk, line, before, decided) -> None:
    assert talk(before, (line, decided)).cart


@pytest.mark.parametrize(
    "line",
    [
        "never would I swap it for a rope, they are lovely",
        "My husband would swap it for a rope any day, silly man",
        "the sea boots only look heavy.",
        "the sea boots alone are worth the trip",
    ],
)
def test_a_remark_throws_nothing_out(talk: Talk, line) -> None:
    for decided in (CHAT, change(Coil_of_Rope=1)):
        assert talk(BOTH, (line, decided)).cart.items() >= {("sea_boots", 1)}
    assert talk(BOTH, (line, CHAT)).cart["bottle_of_lamp_oil"] == 2
    assert "sea_boots" in talk(BOOTS, (line, change(Coil_of_Rope=1))).cart


@pytest.mark.parametrize(
    "line",
    [
        "The table lamp is too dear. What else have you?",
        "Show me the lantern please. How long does it burn?",
        "My brother has the ankle boots too. Are the sea boots any warmer?",
        "I saw a coil of rope as well. Who made the boots?",
    ],
)
def test_what_is_only_spoken_of_is_not_ordered(talk: Talk, line) -> None:
    assert talk((line, show("Storm Lantern"))).cart == {}


@pytest.mark.parametrize(
    "line",
    [
        "that's a good price, thank you",
        "what a good price!",
        "I don't need a discount",
        "I never ask for a discount",
    ],
)
def test_praise_of_a_price_lowers_none(talk: Talk, line) -> None:
    assert talk(BOOTS, (line, CHAT)).interventions == []


def test_a_currency_may_be_a_sign(store: World, talk: Talk) -> None:
    euro = store.model_copy(update={"currency": "€"})
    session = Session(euro, method=get_method("astp-stepwise"))
    Merchant(ScriptedEngine([to_json({"last": session.last} | BOOTS[1])])).reply(session, BOOTS[0])
    found = offered(session, "I give you 50 €")
    assert found is not None and found.number == 50


def test_a_shop_read_ahead_is_not_read_in_a_turn(store: World) -> None:
    pytest.importorskip("onnxruntime")
    embedder = MiniLM()
    session = Session(store, method=get_method("astp-stepwise"), linker=English(embedder))
    TRADE.read_ahead(session)
    before = embedder._row.cache_info().misses
    assert before > len(store.inventory) * 2
    engine = ScriptedEngine([to_json({"last": "", "state": "CASUAL"}), *['{"say":"Hm."}'] * 3])
    Merchant(engine).reply(session, "have you something for my cough?")
    assert embedder._row.cache_info().misses <= before + 8  # the line and its parts


@pytest.mark.parametrize(
    "line", ["read it back", "my back hurts", "not sure", "what was it again?"]
)
def test_an_order_is_not_emptied_by_a_stray_word(talk: Talk, line) -> None:
    assert talk(BOOTS, (line, change(Sea_Boots=0))).cart == {"sea_boots": 1}


@pytest.mark.parametrize("line", ["take it out again", "no, drop it", "I'll leave it, thanks"])
def test_words_for_it_empty_an_order(talk: Talk, line) -> None:
    assert talk(BOOTS, (line, change(Sea_Boots=0))).cart == {}


@pytest.mark.parametrize("line", ["and how much are the boots now?", "what is the price of them?"])
def test_a_price_bargained_down_is_the_price_that_is_told(talk: Talk, line) -> None:
    bid = ("fifty for them?", {"state": "NEGOTIATE", "bid": 50})
    turn = talk(BOOTS, bid, (line, show("Sea Boots")))
    assert "60" not in turn.says and "56 pence" in turn.says
    both = ("two pairs of sea boots", order(Sea_Boots=2))
    turn = talk(
        both, ("110 for both?", {"state": "NEGOTIATE", "bid": 110}), (line, show("Sea Boots"))
    )
    assert "60" not in turn.says
