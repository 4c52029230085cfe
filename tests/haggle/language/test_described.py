"""Goods of one name, told apart by what is said of them."""

from __future__ import annotations

import pytest

from haggle.language.english.linker import English
from haggle.trade.prompting import linked_line
from haggle.trade.world import Item, MerchantInfo, World

INKS = World(
    name="inks", merchant=MerchantInfo(name="Odo", persona="Odo sells."), currency="gold", items=[
    Item(item_id="a", item_name="Cake of Lamp Ink", price=4, quantity=9,
         description="A dry cake of black ink from soot."),
    Item(item_id="b", item_name="Cake of Cinnabar Ink", price=11, quantity=9,
         description="A dry cake of bright red ink, red as blood."),
])  # fmt: skip


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("three black inks", "three black inks {Cake of Lamp Ink x3}"),
        ("is the red ink poison", "is the red ink {Cake of Cinnabar Ink} poison"),
        ("the dry ink", "the dry ink {Cake of Lamp Ink / Cake of Cinnabar Ink}"),
        ("black lamp oil and an ink", "black lamp {Cake of Lamp Ink} oil and an ink "
         "{Cake of Lamp Ink / Cake of Cinnabar Ink}"),
    ],
)  # fmt: skip
def test_the_words_beside_a_name_choose_what_is_described_so(said: str, read: str) -> None:
    assert linked_line(English().read(said, INKS.view())) == read
