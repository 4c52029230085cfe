"""The longest order that the grammar allows, against the tokens that an answer may have: what fits,
and what becomes of an order that is cut off."""

from __future__ import annotations

import pytest

from haggle.core.codec import matches
from haggle.core.engine import Generation
from haggle.grammar.json_text import to_json
from haggle.trade.merchant import MAX_TOKENS, Merchant, constraint_for
from haggle.trade.methods import get_method
from haggle.trade.session import Session
from haggle.trade.wire import MAX_LINES, UNLISTED_CHARACTERS
from haggle.trade.world_io import named_world
from haggle.weights.models import BaseModel
from serving.engines.scripted import ScriptedEngine

SHOPS = ("caravan_stall", "frontier_shop", "trench_outfitter")
PIECES = 9999  # the largest number that the grammar allows
METHOD = get_method("astp-stepwise")


def session_of(shop: str) -> Session:
    """A customer who has one good in the cart."""
    session = Session(named_world(shop), method=METHOD)
    first = '{"last":"","state":"OFFER_SELL","cart":[["' + session.world.inventory[0].item_name
    Merchant(ScriptedEngine([])).complete(
        session, f"one {session.world.inventory[0].item_name}", Generation(first + '",1]]}')
    )
    assert session.cart and session.state == "OFFER_SELL"
    return session


def order(names: list[str], pieces: int) -> str:
    lines = [[name, pieces] for name in names]
    return to_json({"last": "OFFER_SELL", "state": "OFFER_SELL", "change": lines})


@pytest.mark.slow
@pytest.mark.parametrize("shop", SHOPS)
def test_an_order_of_everything_fits_and_one_of_thousands_of_ten_goods(shop: str, base: BaseModel):
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(base.path)

    def tokens(text: str) -> int:
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    session = session_of(shop)
    allowed = constraint_for(session, "state")
    longest = sorted(session.world.sellable_names, key=tokens, reverse=True)
    for names, pieces in ((longest[:MAX_LINES], 99), (longest[:10], PIECES)):
        text = order(names, pieces)
        assert allowed is not None and matches(allowed, text)
        assert tokens(text) < MAX_TOKENS  # and a token that ends it
    unlisted = order(["?" + "strange " * (UNLISTED_CHARACTERS // 8)] * MAX_LINES, PIECES)
    assert tokens(unlisted) > MAX_TOKENS, "such an order is cut: see below"


def test_an_order_that_is_cut_off_anywhere_moves_nothing():
    names = list(named_world("trench_outfitter").sellable_names)[: MAX_LINES - 2]
    text = order([*names, "?a strange lamp", "?another"], PIECES)
    line = f"{PIECES} of everything, please"
    for end in range(0, len(text), 3):
        session = session_of("trench_outfitter")
        cart, price = dict(session.cart), session.sale_price
        merchant = Merchant(ScriptedEngine([]))
        turn = merchant.complete(session, line, Generation(text[:end], finish_reason="length"))
        assert (session.cart, session.sale_price, session.sales) == (cart, price, [])
        assert "degraded" in turn.interventions and "format" in turn.proposed_failed
        assert turn.says and turn.cut and not turn.failed and turn.state == "OFFER_SELL"
