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


def _shop(*names: str, said: str = "") -> World:
    goods = [
        Item(item_id=name, item_name=name, price=4, quantity=9, description=said) for name in names
    ]
    return World(name="shop", merchant=INKS.merchant, currency="gold", items=goods)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("the big water bag", "the big water bag {Four-Litre Water Bag}"),
        ("a small bag", "a small bag {Two-Litre Water Bag}"),
        ("one bag, the four litres one", "one bag {Two-Litre Water Bag / Four-Litre Water Bag x1}, "
         "the four litres {Four-Litre Water Bag} one"),
    ],
)  # fmt: skip
def test_the_big_one_has_the_larger_measure(said: str, read: str) -> None:
    bags = _shop("Two-Litre Water Bag", "Four-Litre Water Bag")
    assert linked_line(English().read(said, bags.view())) == read


def test_a_word_of_all_names_describes_none_of_them() -> None:
    shop = _shop("Wheel of Old Cheese", "Small Wheel of Young Cheese")
    goods = [shop.items[0], shop.items[1].model_copy(update={"description": "A wheel for four."})]
    shop = shop.model_copy(update={"items": goods})
    read = linked_line(English().read("the wheel", shop.view()))
    assert read == "the wheel {Wheel of Old Cheese / Small Wheel of Young Cheese}"


def test_a_measure_at_the_beginning_of_names_is_no_name_at_the_end_of_another() -> None:
    shop = _shop("Set of Bearings", "Knee Pad Set")
    assert linked_line(English().read("give me two sets", shop.view())) == "give me two sets"
    alone = _shop("Bearing", "Knee Pad Set")
    assert linked_line(English().read("two sets", alone.view())) == "two sets {Knee Pad Set x2}"


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("two sacks of the late potatoes", "two sacks of the late potatoes {Late Potatoes x2}"),
        ("two sacks", "two sacks {Sack of Hen Manure x2}"),
        ("a sack of", "a sack {Sack of Hen Manure} of"),
        ("a sack of the", "a sack {Sack of Hen Manure} of the"),
    ],
)
def test_what_goods_are_asked_for_in_is_no_other_good(said: str, read: str) -> None:
    shop = _shop("Late Potatoes", "Sack of Hen Manure")
    assert linked_line(English().read(said, shop.view())) == read
