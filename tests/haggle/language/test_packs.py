"""What goods come in, and numbers in their names: "five tubes", "the five-fingered gloves"."""

from __future__ import annotations

import pytest

from haggle.language.english.linker import English
from haggle.trade.prompting import linked_line
from haggle.trade.world import Item, MerchantInfo, World

SHOP = World(
    name="shop",
    merchant=MerchantInfo(name="Odo", persona="Odo sells."),
    currency="gold pieces",
    items=[
        Item(item_id="tube", item_name="Heavy Inner Tube", price=9, quantity=9),
        Item(item_id="salt", item_name="Tube of Salt Tablets", price=4, quantity=9),
        Item(item_id="chess", item_name="Chess Set", price=30, quantity=3),
        Item(item_id="wheels", item_name="Set of Wheels", price=22, quantity=9),
        Item(item_id="sack", item_name="Sack of Oats", price=5, quantity=9),
        Item(item_id="spuds", item_name="Late Potatoes", price=3, quantity=50),
    ],
)


@pytest.mark.parametrize(
    ("line", "cart", "read"),
    [
        ("make it five tubes", ("salt",), "make it five tubes {Tube of Salt Tablets x5}"),
        ("five tubes", (), "five tubes {Heavy Inner Tube x5}"),
        ("five inner tubes", ("salt",), "five inner tubes {Heavy Inner Tube x5}"),
        ("drop the set", ("chess",), "drop the set {Chess Set}"),
        ("the set of wheels", ("chess",), "the set of wheels {Set of Wheels}"),
        ("two sacks of the late potatoes", ("sack",),
         "two sacks of the late potatoes {Late Potatoes x2}"),
        ("drop the set", ("chess", "wheels"), "drop the set"),
    ],
)  # fmt: skip
def test_a_pack_names_the_only_goods_at_hand_that_come_so(line, cart, read):
    assert linked_line(English().read(line, SHOP.view(cart, ()))) == read


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("the five-fingered gloves", "the five-fingered gloves {Five-Finger Gloves}"),
        ("the five-finger gloves", "the five-finger gloves {Five-Finger Gloves}"),
        ("a three-legged stool", "a three-legged stool {Three-Legged Stool}"),
    ],
)
def test_a_number_of_a_name_may_stand_in_another_form(line, read):
    names = ["Five-Finger Gloves", "Three-Finger Gloves", "Three-Legged Stool", "Milking Stool"]
    goods = [Item(item_id=name, item_name=name, price=9, quantity=9) for name in names]
    shop = SHOP.model_copy(update={"items": goods})
    assert linked_line(English().read(line, shop.view((), ()))) == read
