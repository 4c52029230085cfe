"""The item bank is large, sane and split; sampled shops are valid, varied and confusable."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_gen.bank import (
    MAX_PRICE,
    Genre,
    Manner,
    families,
    load_bank,
    load_unsold,
    split_genres,
    words,
)
from data_gen.language.phrasebook import PHRASES, SPLITS, Split, load_phrasebook
from data_gen.worlds import QUALITIES, SCALES, Shop, invented_word, sample_shop, shop_of
from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from haggle.trade.knowledge import speaks_of_price
from haggle.trade.telling import MAX_TOLD
from haggle.trade.world import World, normalise
from haggle.trade.world_io import load_world, named_world

BANK = load_bank()
GENRES = sorted(BANK.genres)
BANK_ITEMS = [item for genre in BANK.genres.values() for item in genre.items]
BANK_WORDS = frozenset(word for item in BANK_ITEMS for word in item.name.split())
BANK_WORDS |= frozenset(QUALITIES)
MANNERS = set(Manner.__args__)  # type: ignore[attr-defined]
SAME_PLURAL = {"Wakizashi", "Oak Bokken", "Fine Oak Bokken", "Dried Bonito", "Shadow Tabi", "Glass Goldfish"}  # fmt: skip
SHOPS = 300


@cache
def shops(
    seed: int, split: Split = "train", items: tuple[int, int] = (5, 14), invented: float = 0.2
) -> list[Shop]:
    rng = random.Random(seed)
    return [sample_shop(rng, split, items, invented) for _ in range(SHOPS)]


def is_invented(name: str) -> bool:
    """Whether a name holds a word that is in no name of the bank."""
    return any(
        word not in BANK_WORDS and word.removesuffix("'s") not in BANK_WORDS
        for word in name.split()
    )


class TestBank:
    def test_it_is_as_large_as_promised(self):
        by_split = Counter(genre.split for genre in BANK.genres.values())
        assert len(BANK_ITEMS) >= 850 and by_split["train"] >= 12 and by_split["test"] >= 4
        assert len(load_unsold().items) >= 300

    @pytest.mark.parametrize("genre", GENRES)
    def test_a_genre_has_enough_of_everything(self, genre):
        g = BANK.genres[genre]
        assert len(g.items) >= 40 and len(families(genre)) >= 6
        assert 3 <= len(set(g.currency)) <= 5
        assert min(len(set(g.places)), len(set(g.times))) >= 4 and len(set(g.backgrounds)) >= 3
        assert len(g.merchants) >= 5 and len({m.manner for m in g.merchants}) >= 4

    def test_merchants_show_all_manners(self):
        manners = Counter(m.manner for g in BANK.genres.values() for m in g.merchants)
        assert set(manners) <= MANNERS and len(MANNERS) == 9
        assert sum(manners[m] for m in MANNERS - {"plain"}) >= 60
        assert all(manners[m] >= 5 for m in MANNERS)

    def test_train_and_test_share_no_item_merchant_or_place(self):
        def names(split: Split) -> set[str]:
            found: set[str] = set()
            for _, genre in split_genres(split):
                found |= {normalise(item.name) for item in genre.items}
                found |= {m.name for m in genre.merchants} | {m.persona for m in genre.merchants}
                found |= set(genre.places)
            return found

        assert names("train") and names("test") and not names("train") & names("test")

    def test_no_name_stands_in_the_bank_twice(self):
        items = Counter(normalise(item.name) for item in BANK_ITEMS)
        merchants = Counter(m.name for g in BANK.genres.values() for m in g.merchants)
        assert max(items.values()) == 1 and max(merchants.values()) == 1

    @pytest.mark.parametrize("genre", GENRES)
    def test_nicknames_are_other_names_and_mean_one_item_of_the_genre(self, genre):
        seen: dict[str, str] = {}
        for item in BANK.genres[genre].items:
            assert 2 <= len(item.nicknames) <= 4, item.name
            for nickname in item.nicknames:
                assert nickname.casefold() not in item.name.casefold()
                assert words(nickname) - words(item.name), (item.name, nickname)
                assert not re.match(r"(a|an|the|some)\b", nickname), (item.name, nickname)
                assert seen.setdefault(nickname.casefold(), item.name) == item.name, nickname

    @pytest.mark.parametrize("genre", GENRES)
    def test_a_plural_is_the_name_with_other_endings(self, genre):
        for item in BANK.genres[genre].items:
            one, many = item.name.split(), item.plural.split()
            assert len(one) == len(many), item.plural
            assert all(a[:2] == b[:2] for a, b in zip(one, many, strict=True)), item.plural
            changed = [b for a, b in zip(one, many, strict=True) if a != b]
            assert all(word.endswith("s") for word in changed), item.plural
            ends_in_s = item.name.split(" (")[0].endswith("s")
            assert changed or ends_in_s or item.name in SAME_PLURAL, item.plural

    def test_there_is_something_to_tell_of_every_item(self):
        assert not [i.name for i in BANK_ITEMS if not i.description or len(i.facts) < 2]

    @pytest.mark.parametrize("genre", BANK.genres)
    def test_what_is_told_is_short_and_plain_and_speaks_of_no_price(self, genre):
        names = [item.name for item in BANK.genres[genre].items if " " in item.name]
        for item in BANK.genres[genre].items:
            told = " ".join([item.description, *item.facts])
            assert told.isascii() and not any(character.isdigit() for character in told)
            assert len(item.description) <= MAX_TOLD and len(item.facts) <= 4, item.name
            assert not any(n in told for n in names if n not in item.name), item.name
            for sentence in re.split(r"(?<=[.!?]) ", told):
                for currency in BANK.genres[genre].currency:
                    assert not speaks_of_price(sentence, currency), sentence

    def test_prices_reach_from_one_to_a_hundred_thousand(self):
        assert min(item.price[0] for item in BANK_ITEMS) == 1
        assert 0.9 * MAX_PRICE <= max(item.price[1] for item in BANK_ITEMS) <= MAX_PRICE

    def test_confusable_items_cost_nearly_the_same_or_quite_another_price(self):
        ratios = []
        for genre in GENRES:
            for family in families(genre):
                low, high = (pick(item.price[0] for item in family) for pick in (min, max))
                ratios.append(high / low)
        assert sum(r < 1.2 for r in ratios) > 30 and sum(r > 2.5 for r in ratios) > 30

    def test_a_family_shares_a_head_a_last_word_or_a_whole_name(self):
        def named(genre: str) -> list[set[str]]:
            return [{item.name for item in family} for family in families(genre)]

        assert {"Small Canvas Tent", "Large Canvas Tent"} in named("fantasy_town")
        assert {"Phone Charger", "Phone Charger Cable"} in named("corner_shop")

    def test_what_is_sold_nowhere_cannot_be_taken_for_something_sold(self):
        sold = {item.name: words(item.name) for item in BANK_ITEMS}
        for unsold in load_unsold().items:
            own = words(unsold.name)
            like = [name for name, theirs in sold.items() if own <= theirs]
            assert not like, (unsold.name, like)
        names = Counter(normalise(unsold.name) for unsold in load_unsold().items)
        assert max(names.values()) == 1

    def test_every_item_serves_a_purpose_there_are_phrases_for(self):
        purposes = load_phrasebook().purposes
        assert {tag for item in BANK_ITEMS for tag in item.tags} == set(purposes)
        assert all(item.tags for item in BANK_ITEMS)
        for tag, phrases in purposes.items():
            assert len(set(phrases.train)) >= 24 and len(set(phrases.test)) >= 8, tag
        said = {s: {p.casefold() for v in purposes.values() for p in v.of(s)} for s in SPLITS}
        assert not said["train"] & said["test"]

    @pytest.mark.parametrize("world", ["frontier_shop", "spaceport_quartermaster"])
    def test_the_benchmark_shops_sell_nothing_of_the_bank(self, world):
        path = ROOT / "eval" / "benchmarks" / "worlds" / f"{world}.json"
        theirs = {normalise(item.item_name) for item in load_world(path).items}
        assert not theirs & {normalise(item.name) for item in BANK_ITEMS}


class TestSampler:
    @settings(max_examples=150, deadline=None)
    @given(
        seed=st.integers(0, 2**32),
        split=st.sampled_from(SPLITS),
        low=st.integers(4, 40),
        more=st.integers(0, 36),
        invented=st.sampled_from((0.0, 0.2, 0.6, 1.0)),
    )
    def test_any_shop_is_valid_and_as_asked_for(self, seed, split, low, more, invented):
        high = min(40, low + more)
        shop = sample_shop(random.Random(seed), split, (low, high), invented)
        assert shop == sample_shop(random.Random(seed), split, (low, high), invented)
        world = shop.world
        World.model_validate(world.model_dump())
        assert low <= len(world.inventory) <= high
        assert 1 <= len(world.items) - len(world.inventory) <= 8
        assert all(item.price == int(item.price or 0) for item in world.inventory)
        assert all(1 <= (item.price or 0) <= MAX_PRICE for item in world.inventory)
        assert all(re.fullmatch(r"\w{2,16}", item.item_id) for item in world.items)
        assert all(item.plural for item in world.items)
        for about in (shop.heads, shop.tags, shop.nicknames):
            assert set(about) == set(world.sellable_names)
        assert world.name.rsplit("_", 1)[0] in dict(split_genres(split))

    def test_names_that_coincide_are_made_anew_rather_than_dropped(self):
        assert {len(shop.heads) for shop in shops(10, "train", (40, 40), 1.0)} == {40}

    def test_every_genre_is_met(self):
        for split in SPLITS:
            met = {shop.world.name.rsplit("_", 1)[0] for shop in shops(1, split)}
            assert met == {name for name, _ in split_genres(split)}

    def test_a_large_shop_takes_items_of_a_second_genre_of_its_split(self):
        ours = {item.name: name for name, g in split_genres("test") for item in g.items}
        for seed in range(20):
            shop = sample_shop(random.Random(seed), "test", (70, 70), invented=0)
            sold = shop.world.sellable_names
            assert len(sold) == 70
            assert len({ours[name] for name in sold if name in ours}) == 2

    def test_shops_tell_what_the_bank_tells_but_not_of_variants(self):
        bank = {i.name: i for genre in BANK.genres.values() for i in genre.items}
        items = [
            i for seed in range(60) for i in sample_shop(random.Random(seed), "train").world.items
        ]
        known = [item for item in items if item.item_name in bank]
        assert len(known) > 300
        for item in known:
            told = bank[item.item_name]
            assert (item.description, item.facts) == (told.description, told.facts)
        descriptions = {item.description for item in bank.values()}
        others = [item for item in items if item.item_name not in bank]
        assert {item.description for item in others} <= descriptions | {""}
        assert any(item.description for item in others), "a name made up for a known thing"
        assert any(not item.description for item in others), "a variant of a known thing"

    def test_more_than_two_genres_hold_is_refused(self):
        with pytest.raises(HaggleError, match="500 items"):
            sample_shop(random.Random(1), "test", (500, 500))

    def test_invented_names_are_as_frequent_as_asked_for(self):
        def share(invented: float) -> float:
            sold = [n for shop in shops(2, invented=invented) for n in shop.world.sellable_names]
            return sum(map(is_invented, sold)) / len(sold)

        assert share(0) == 0 and share(1) == 1 and 0.17 < share(0.2) < 0.28

    def test_some_names_hold_nothing_but_invented_words(self):
        sold = [n for shop in shops(3, invented=0.2) for n in shop.world.sellable_names]
        wholly = sum(not set(name.split()) & BANK_WORDS for name in sold) / len(sold)
        assert 0.02 < wholly < 0.1

    def test_confusable_names_meet_on_purpose(self):
        def alike(shop: Shop) -> bool:
            own = [words(name) for name in shop.world.sellable_names]
            inside = any(a < b for a in own for b in own)
            return inside or len(set(shop.heads.values())) < len(shop.heads)

        together = sum(map(alike, shops(4, items=(8, 8)))) / SHOPS
        assert 0.55 < together < 0.95

    def test_unsellable_things_may_look_like_what_is_sold(self):
        def lookalike(shop: Shop) -> bool:
            known = [words(i.item_name) for i in shop.world.items if not i.for_sale]
            return any(words(name) < other for name in shop.world.sellable_names for other in known)

        assert sum(map(lookalike, shops(5))) > SHOPS / 5

    def test_a_shop_has_one_scale_of_prices(self):
        ranges = {item.name: item.price for item in BANK_ITEMS}
        scales = set()
        for shop in shops(6, invented=0):
            fitting = {
                scale
                for scale in SCALES
                if all(
                    min(ranges[i.item_name][0] * scale - 51, ranges[i.item_name][0] * scale * 0.7)
                    <= (i.price or 0)
                    <= max(1, ranges[i.item_name][1] * scale)
                    for i in shop.world.inventory
                    if i.item_name in ranges
                )
            }
            assert fitting, shop.world
            scales |= fitting
        assert scales == set(SCALES)

    def test_prices_are_round_or_odd_and_of_all_sizes(self):
        prices = [int(i.price or 0) for shop in shops(7) for i in shop.world.inventory]
        large = [price for price in prices if price >= 100]
        assert min(prices) == 1 and max(prices) > 50_000
        assert 0.3 < sum(price % 5 == 0 for price in large) / len(large) < 0.8
        assert 0.1 < sum(price % 10 == 9 for price in large) / len(large) < 0.5

    def test_haggling_currency_stock_manner_and_setting_vary(self):
        worlds = [shop.world for shop in shops(8)]
        assert len({w.currency for w in worlds}) > 20
        assert len({w.merchant.haggling.max_discount for w in worlds}) >= 6
        assert len({w.merchant.haggling.step for w in worlds}) >= 3
        assert {i.quantity for w in worlds for i in w.inventory} >= {1, 2, 30, 120}
        assert {shop.manner for shop in shops(8)} == MANNERS
        assert len({w.situation for w in worlds}) > SHOPS / 2

    def test_another_seed_gives_another_shop(self):
        assert len({shop.world.name for shop in shops(9)}) == SHOPS

    def test_invented_words_can_be_pronounced_and_differ(self):
        rng = random.Random(4)
        made = [invented_word(rng) for _ in range(200)]
        assert all(word.isalpha() and word[0].isupper() and len(word) >= 4 for word in made)
        assert len(set(made)) > 150

    def test_a_given_world_is_a_shop_too(self):
        shop = shop_of(named_world("frontier_shop"))
        assert shop.heads["Basic Compass"] == "compass" and shop.manner == "plain"


class TestBadBank:
    """Each wrong entry is an error that names the file and the field."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "items").mkdir()
        shutil.copy(PHRASES / "items" / "wild_west.yaml", tmp_path / "items" / "mine.yaml")
        return tmp_path

    @pytest.mark.parametrize(
        ("old", "new", "field", "hint"),
        [
            ("split: train", "split: trian", "split", "train"),
            ("places:", "palces:", "palces", "did you mean 'places'"),
            ("plural:", "plurals:", "items.0.plurals", "did you mean 'plural'"),
            ("manner: gruff", "manner: gruf", "merchants.0.manner", "gruff"),
            ("price: [3, 6]", "price: [6, 3]", "items.0", "Kerosene Lantern"),
            ("price: [3, 6]", "price: [0, 6]", "items.0", "Kerosene Lantern"),
            ('"oil lamp"', '"kerosene lanterns"', "items.0", "says no more"),
            ('name: "Box of Matches"', 'name: "kerosene-lantern"', "twice", "kerosene-lantern"),
        ],
    )
    def test_a_wrong_entry_names_file_and_field(self, root, old, new, field, hint):
        path = root / "items" / "mine.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(HaggleError) as caught:
            load_bank(root)
        message = str(caught.value)
        assert "mine.yaml" in message and field in message and hint in message

    def test_the_unchanged_file_is_right(self, root):
        assert isinstance(load_bank(root).genres["mine"], Genre)

    def test_no_genre_at_all_is_an_error(self, tmp_path):
        with pytest.raises(HaggleError, match="no genre"):
            load_bank(tmp_path)

    def test_a_misspelt_key_of_the_unsold_is_an_error(self, tmp_path):
        (tmp_path / "unsold.yaml").write_text('items: [{nmae: "Harp"}]', encoding="utf-8")
        with pytest.raises(HaggleError) as caught:
            load_unsold(tmp_path)
        assert "unsold.yaml" in str(caught.value) and "nmae" in str(caught.value)
