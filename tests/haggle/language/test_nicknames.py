"""Goods called by what such things are called: the lexicon and when it is asked."""

from __future__ import annotations

import re

import pytest

from haggle.language.english.line import singular
from haggle.language.english.linker import English
from haggle.language.english.synonyms import FILE, MAX_WORDS, other_names, singulars
from haggle.trade.prompting import linked_line
from haggle.trade.world import Item, MerchantInfo, World

SHOP = World(
    name="shop",
    merchant=MerchantInfo(name="Odo", persona="Odo sells."),
    currency="crowns",
    items=[
        Item(item_id="torch", item_name="Field Flashlight", price=30, quantity=4),
        Item(item_id="paper", item_name="Toilet Paper (soft)", price=3, quantity=40),
        Item(item_id="lamp", item_name="Oil Lantern", price=20, quantity=4),
        Item(item_id="dagger", item_name="Dagger of Vorn", price=90, quantity=2),
        Item(item_id="tiara", item_name="Tiara", price=900, quantity=1),
        Item(item_id="bow", item_name="Long Bow", price=90, quantity=2),
        Item(item_id="gloves", item_name="Wool Gloves", price=9, quantity=2),
        Item(item_id="gun", item_name="Pistol"),
    ],
)


def link(text: str, cart: tuple[str, ...] = ()) -> str:
    return linked_line(English().read(text, SHOP.view(cart)))


def test_the_lexicon_is_in_order():
    lines = FILE.read_text("utf-8").splitlines()
    entries = [line.split(": ") for line in lines if not line.startswith("#")]
    heads = [head for head, _ in entries]
    assert heads == sorted(set(heads)) and len(heads) == len(other_names()) > 4000
    for head, names in entries:
        assert singulars(head) not in map(singulars, names.split(", "))
        for said in (head, *names.split(", ")):
            words = said.split(" ")
            assert len(words) <= MAX_WORDS and re.fullmatch(r"[^\W\d_]+( [^\W\d_]+)*", said), said


def test_the_lexicon_has_words_as_people_write_them():
    words = set(re.findall(r"[^\W\d_]+", FILE.read_text("utf-8")))
    assert words >= {"canvas", "tennis", "cactus", "christmas", "scissors", "compass", "lens"}
    assert not words & {"canva", "tenni", "cactu", "christma", "scissor", "len"}


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("a loo roll please", "a loo roll {Toilet Paper} please"),
        ("4 loo rolls", "4 loo rolls {Toilet Paper x4}"),
        ("how much for the torch?", "how much for the torch {Field Flashlight}?"),
        ("two blades and 3 mitts", "two blades {Dagger of Vorn x2} and 3 mitts {Wool Gloves x3}"),
        ("a light", "a light {Field Flashlight / Oil Lantern}"),
        ("Pocket torches x2", "Pocket torches {Field Flashlight x2} x2"),
    ],
)
def test_what_people_call_a_thing_is_linked(said, read):
    assert link(said) == read.replace("{Toilet Paper", "{Toilet Paper (soft)")


@pytest.mark.parametrize(
    "said",
    [
        "do you sell light armour",  # belongs to the word behind it
        "light them both",  # a verb
        "that will be 40 crowns",  # the shop's money
        "a crossbow",  # no bow
        "got a gun?",  # only known, not sold
        "i travel light",
    ],
)
def test_a_word_that_is_no_name_here_stays_bare(said):
    assert link(said) == said


def test_what_is_in_the_cart_goes_first():
    assert link("drop a light", cart=("lamp",)) == "drop a light {Oil Lantern}"


def test_a_name_of_the_list_goes_before_what_people_call_it():
    assert link("a flashlight") == "a flashlight {Field Flashlight}"
    assert link("an oil light") == "an oil {Oil Lantern} light"


def test_a_guess_is_never_sure():
    guess = English().read("2 loo rolls", SHOP.view())
    assert guess.named() == frozenset()
    assert guess.named(sure=False) == {"paper"}
    assert English().read("2 toilet papers", SHOP.view()).named() == {"paper"}


@pytest.mark.parametrize(
    ("plural", "single"),
    [("gloves", "glove"), ("knives", "knife"), ("loaves", "loaf"), ("stoves", "stove")],
)
def test_plurals_in_ves(plural, single):
    assert singular(plural) == single
