"""Taking over an earlier conversation: the ledger stands where it was left."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from haggle.core.errors import HaggleError
from haggle.trade.methods import get_method
from haggle.trade.replay import PastExchange, bid_in, replay
from haggle.trade.session import Session


def past(player: str, say: str, state: str = "CASUAL", **fields: object) -> PastExchange:
    npc: dict[str, object] = {"npc_dialogue": say, "context_type": state, **fields}
    if state not in {"CASUAL", "END"}:
        npc |= {"context_type": "TRADE", "context_subtype": state}
    return PastExchange.model_validate({"player": player, "npc": npc})


TWO_AXES = {"items": [{"item_id": "axe", "quantity": 2}], "original_price": 260, "sale_price": 260}


def test_an_offer_taken_over_is_on_the_counter(stall):
    session = Session(stall)
    replay(session, past("two axes", "260 gold for the pair.", "OFFER_SELL", **TWO_AXES))
    assert (session.last, session.cart, session.sale_price) == ("OFFER_SELL", {"axe": 2}, 260)
    answer = json.loads(session.exchanges[0].answer)
    assert answer["cart"] == [["Sharp Axe", 2]]
    assert answer["say"] == "__PRICE__ gold for the pair.", "reads as the model's own lines do"


def test_a_haggled_price_stays_through_review_and_small_talk(stall):
    session = Session(stall)
    replay(session, past("two axes", "260.", "OFFER_SELL", **TWO_AXES))
    haggled = TWO_AXES | {"sale_price": 230}
    replay(session, past("230?", "230 it is.", "NEGOTIATE", **haggled))
    replay(session, past("ok", "230, sure?", "FINAL_CHECK", **haggled))
    replay(session, past("nice weather", "Is it."))
    assert (session.last, session.state, session.sale_price) == ("FINAL_CHECK", "CASUAL", 230)
    assert "COMMIT_SALE" in session.legal_states()
    assert json.loads(session.exchanges[1].answer)["bid"] == 230


def test_a_total_that_was_not_kept_is_computed(stall):
    session = Session(stall)
    replay(session, past("two axes", "There.", "OFFER_SELL", items=TWO_AXES["items"]))
    assert session.sale_price == 260


def test_a_sale_taken_over_took_the_stock(stall):
    session = Session(stall)
    replay(session, past("two axes", "260.", "OFFER_SELL", **TWO_AXES))
    replay(session, past("ok", "Sure?", "FINAL_CHECK", **TWO_AXES))
    replay(session, past("yes", "Sold.", "COMMIT_SALE", **TWO_AXES))
    assert session.cart == {} and session.world.by_id["axe"].quantity == 1


def test_items_shown_are_remembered(stall):
    session = Session(stall)
    replay(session, past("axes?", "This one.", "SHOW_ITEMS", items=[{"item_id": "axe"}]))
    assert session.shown == ("Sharp Axe",) and session.cart == {}


def test_the_papers_format_takes_over_too(stall):
    session = Session(stall, method=get_method("astp"))
    replay(session, past("two axes", "260 gold.", "OFFER_SELL", **TWO_AXES))
    answer = json.loads(session.exchanges[0].answer)
    assert answer["context_details"]["items"][0] == {
        "item_id": "axe", "item_name": "Sharp Axe", "quantity": 2, "price": 130.0,
    }  # fmt: skip
    assert answer["npc_dialogue"] == "260 gold."


@pytest.mark.parametrize(
    ("exchange", "complaint"),
    [
        (past("x", "y", "OFFER_SEL"), "did you mean 'OFFER_SELL'"),
        (past("x", "y", "OFFER_SELL", items=[{"item_id": "axx"}]), "did you mean 'axe'"),
        (past("x", "y", "CASUAL", context_type="TRADE"), "unknown state 'TRADE'"),
    ],
)
def test_what_this_shop_does_not_know_is_refused(stall, exchange, complaint):
    with pytest.raises(HaggleError) as refused:
        replay(Session(stall), exchange)
    assert complaint in str(refused.value)


def test_a_misspelt_field_is_refused():
    with pytest.raises(ValidationError):
        past("x", "y", "CASUAL", mood="good")


@pytest.mark.parametrize(
    ("text", "bid"),
    [
        ("can you do 500?", 500), ("10% off please", "10%"), ("15 percent less", "15%"),
        ("2 axes for 200", 200), ("cheaper!", None), ("my 3rd try: 90 gold", 90), ("", None),
    ],
)  # fmt: skip
def test_the_bid_in_a_line(text, bid):
    assert bid_in(text) == bid
