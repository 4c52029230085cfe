"""A store, and talks in it with scripted decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from haggle.grammar.json_text import to_json
from haggle.language.embeddings import load_embedder
from haggle.language.english.linker import English
from haggle.trade.merchant import Merchant
from haggle.trade.methods import get_method
from haggle.trade.records import TurnRecord
from haggle.trade.session import Session
from haggle.trade.world import Item, MerchantInfo, Situation, World
from serving.engines.scripted import ScriptedEngine


def good(name: str, price: int, quantity: int, description: str, *facts: str) -> Item:
    return Item(
        item_id=name.casefold().replace(" ", "_"), item_name=name, price=price, quantity=quantity,
        description=description, facts=list(facts),
    )  # fmt: skip


@pytest.fixture(scope="module")
def store() -> World:
    return World(
        name="store",
        merchant=MerchantInfo(name="Ilse Brandt", persona="A plain woman. She was born at sea."),
        currency="pence",
        situation=Situation(
            location="Brandt's store on the quay",
            background="The road to Hull has been under water since Sunday.",
        ),
        items=[
            good("Storm Lantern", 42, 5, "A lantern that stays alight in wind.",
                 "One filling burns eight hours."),
            good("Table Lamp", 30, 4, "A brass lamp for the parlour.", "It weighs two pounds."),
            good("Bottle of Lamp Oil", 7, 30, "Clear oil for lamps."),
            good("Coil of Rope", 20, 9, "Strong rope for mooring.", "It is one inch thick."),
            good("Sea Boots", 60, 6, "High boots of leather.", "Made by Tom Curnow in Hull."),
            good("Ankle Boots", 48, 6, "Laced black boots.", "They have a low heel."),
            good("Cough Syrup", 6, 12, "A sweet syrup that soothes a cough.",
                 "A child takes one spoonful."),
            Item(item_id="sextant", item_name="Sextant"),
        ],
    )  # fmt: skip


Talk = Callable[..., TurnRecord]


@pytest.fixture
def talk(store: World) -> Talk:
    """The last turn of a talk: lines with the model's decision for each."""

    def run(*turns: tuple[str, dict[str, Any]], meaning: bool = False) -> TurnRecord:
        embedder = load_embedder("auto") if meaning else None
        if meaning and embedder is None:
            pytest.skip("the extra `embeddings` is not installed")
        session = Session(store, method=get_method("astp-stepwise"), linker=English(embedder))
        for line, decision in turns:
            last = {"last": session.last}
            engine = ScriptedEngine([to_json(last | decision), *['{"say":"Hm."}'] * 3])
            turn = Merchant(engine).reply(session, line)
        return turn

    return run


def order(**cart: int) -> dict[str, Any]:
    lines = [[name.replace("_", " "), number] for name, number in cart.items()]
    return {"state": "OFFER_SELL", "cart": lines}


def change(**cart: int | str) -> dict[str, Any]:
    lines = [[name.replace("_", " "), number] for name, number in cart.items()]
    return {"state": "OFFER_SELL", "change": lines}


def show(*names: str) -> dict[str, Any]:
    return {"state": "SHOW_ITEMS", "show": list(names)}


CHAT = {"state": "CASUAL"}
DEAL = {"state": "NEGOTIATE", "bid": None}
REVIEW = {"state": "FINAL_CHECK"}
SHELF = ("what have you got?", show("Storm Lantern"))
