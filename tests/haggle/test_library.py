"""What a game imports: a shop, a line, a turn."""

from __future__ import annotations

import subprocess
import sys

import pytest

import haggle
from haggle.core.errors import HaggleError
from serving.engines import EngineConfig
from serving.engines.scripted import ScriptedEngine

OFFER = (
    '{"last":"","state":"OFFER_SELL","cart":[["Sturdy Rope (20m)",2]],"say":"__CART__: __PRICE__."}'
)
REVIEW = '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"__CART__ for __PRICE__, yes?"}'


def test_a_line_is_answered_and_the_ledger_can_be_read():
    with haggle.open_shop("frontier_shop", engine=ScriptedEngine([OFFER, REVIEW])) as shop:
        turn = shop.say("two ropes")
        assert (turn.state, shop.cart) == ("OFFER_SELL", {"Sturdy Rope (20m)": 2})
        assert str(int(shop.price or 0)) in turn.says and not shop.ended
        with pytest.raises(HaggleError, match="no review"):
            shop.confirm()
        shop.say("deal")
        assert shop.confirm().state == "COMMIT_SALE" and shop.cart == {}
        assert [str(int(sale.price)) in turn.says for sale in shop.sales] == [True]


def test_an_engine_that_shops_share_is_asked_as_its_config_says():
    config = EngineConfig(engine="scripted", method="astp-stepwise", ask_below=0.5)
    engine = ScriptedEngine(config)
    engine.config = config  # type: ignore[attr-defined]
    with haggle.open_shop("frontier_shop", engine=engine) as shop:
        assert shop.session.method.name == "astp-stepwise" and shop.merchant.ask_below == 0.5


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"guard": "sate"}, "guard"),
        ({"confirmation": "loud"}, "confirmation"),
        ({"engine": "llamcpp"}, "llamcpp"),
        ({"embeddings": "maybe"}, "maybe"),
    ],
)
def test_a_wrong_option_is_told(options, what):
    with pytest.raises(HaggleError, match=what):
        haggle.open_shop("frontier_shop", **options)


def test_a_missing_shop_is_told():
    with pytest.raises(HaggleError):
        haggle.open_shop("no_such_shop.yaml")


def test_importing_is_light():
    code = "import sys, haggle; print(any(m.split('.')[0] in ('torch', 'pydantic', 'serving') for m in sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


@pytest.mark.slow
def test_the_readme_example_runs_on_the_shipped_model(tmp_path):
    shop_file = tmp_path / "my_shop.csv"
    shop_file.write_text(
        "item_id,item_name,price,quantity\nlamp,Brass Lantern,20,5\n", encoding="utf-8"
    )
    with haggle.open_shop(shop_file) as shop:
        turn = shop.say("good day! two lanterns, please")
        assert turn.says and shop.cart == {"Brass Lantern": 2}
