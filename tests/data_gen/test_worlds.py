"""Sampled shops: valid, varied, and of genres that training never meets in tests."""

from __future__ import annotations

import random

import pytest

from data_gen.mentions import name_line, quantity_word, unambiguous_heads
from data_gen.worlds import invented_word, load_bank, load_unsold, sample_shop, shop_of
from haggle.world import World
from haggle.world_io import named_world

SHOPS = 150


def genres(split: str) -> set[str]:
    return {name for name, genre in load_bank().genres.items() if genre.split == split}


def test_train_and_test_share_no_genre_item_merchant_or_place():
    def names(split: str) -> set[str]:
        found: set[str] = set()
        for name in genres(split):
            genre = load_bank().genres[name]
            found |= {item.name.casefold() for item in genre.items}
            found |= {merchant.name for merchant in genre.merchants} | set(genre.places)
        return found

    assert genres("train") and genres("test")
    assert not names("train") & names("test")


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_shop_is_of_its_splits_genres_and_within_the_size_asked_for(split):
    rng = random.Random(1)
    seen = set()
    for _ in range(SHOPS):
        world = sample_shop(rng, split, (3, 6), invented=0.2).world
        World.model_validate(world.model_dump())
        genre = world.name.rsplit("_", 1)[0]
        seen.add(genre)
        assert 1 <= len(world.inventory) <= 6 and len(world.items) > len(world.inventory)
        assert all(item.price == int(item.price or 0) > 0 for item in world.inventory)
    assert seen == genres(split)


def test_invented_names_are_as_frequent_as_asked_for_and_never_repeat_a_shop():
    bank = {item.name for genre in load_bank().genres.values() for item in genre.items}

    def invented(share: float) -> float:
        rng = random.Random(2)
        names = [
            item.item_name
            for _ in range(SHOPS)
            for item in sample_shop(rng, "train", (8, 8), share).world.inventory
        ]
        return sum(name not in bank for name in names) / len(names)

    assert invented(0) == 0 and invented(1) == 1 and 0.15 < invented(0.2) < 0.25


def test_the_same_seed_gives_the_same_shop():
    one, two, other = (sample_shop(random.Random(seed), "train") for seed in (5, 5, 6))
    assert one == two and one != other


def test_haggling_currency_and_stock_vary():
    rng = random.Random(3)
    worlds = [sample_shop(rng, "train").world for _ in range(SHOPS)]
    assert len({w.currency for w in worlds}) > 5
    assert {w.merchant.haggling.max_discount for w in worlds} >= {0.0, 0.1, 0.2}
    assert {i.quantity for w in worlds for i in w.inventory} >= {1, 2, 30}


def test_invented_words_can_be_pronounced_and_differ():
    rng = random.Random(4)
    made = [invented_word(rng) for _ in range(200)]
    assert all(word.isalpha() and word[0].isupper() and len(word) >= 4 for word in made)
    assert len(set(made)) > 150


def test_what_is_sold_nowhere_is_sold_nowhere():
    sold = {item.name.casefold() for genre in load_bank().genres.values() for item in genre.items}
    assert not sold & {item.name.casefold() for item in load_unsold().items}


def test_a_short_name_is_used_only_where_it_can_mean_one_thing():
    shop = shop_of(named_world("frontier_shop"))
    heads = unambiguous_heads(shop)
    assert heads["Basic Compass"] == "compass"
    assert "Sharp Axe" not in heads and "Healing Potion" not in heads and "Local Map" not in heads


@pytest.mark.parametrize("number", [1, 2, 3, 7, 12, 40])
def test_a_quantity_is_always_said_somehow(number):
    rng = random.Random(number)
    spellings = {quantity_word(number, rng) for _ in range(200)}
    words = {1: "one", 2: "two", 3: "three", 7: "seven", 12: "twelve"}
    expected = {str(number)} | ({words[number]} if number in words else set())
    extra = {2: {"a couple of"}, 12: {"a dozen"}}.get(number, set())
    assert spellings == expected | extra
    shop = shop_of(named_world("frontier_shop"))
    for _ in range(50):
        line = name_line(shop, "Basic Compass", number, rng).casefold()
        assert "compass" in line
        assert number == 1 or any(s in line for s in spellings | {f"x{number}", f"{number}x"})
