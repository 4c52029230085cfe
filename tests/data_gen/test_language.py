"""How players type: names that can only mean one thing, voices that keep the meaning, noise."""

from __future__ import annotations

import random
import re
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_gen.language.mentions import Names, join, number_word, quantity_word, single
from data_gen.language.noise import garble, typo
from data_gen.language.phrasebook import PLAYER_SLOTS, load_phrasebook
from data_gen.language.voices import UNDRESSED, load_voices, voices_of
from data_gen.worlds import Shop, sample_shop
from haggle.trade.world import Item, MerchantInfo, World


def shop(*names: str, nicknames: dict[str, list[str]] | None = None) -> Shop:
    items = [
        Item(item_id=f"i{n}", item_name=name, price=10 + n, quantity=5)
        for n, name in enumerate(names)
    ]
    merchant = MerchantInfo(name="Ash", persona="A merchant.")
    world = World(name="w", merchant=merchant, currency="gold", items=items)
    heads = {name: name.split()[-1].casefold() for name in names}
    return Shop(world=world, heads=heads, tags={}, nicknames=nicknames or {})


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "zero"), (7, "seven"), (13, "thirteen"), (40, "forty"), (42, "forty-two"),
     (100, "one hundred"), (305, "three hundred and five"), (999, "nine hundred and ninety-nine")],
)  # fmt: skip
def test_numbers_are_spelled(number, words):
    assert number_word(number) == words


@given(st.integers(1, 60), st.randoms(use_true_random=False))
def test_a_quantity_is_never_read_as_another(number, rng):
    said = quantity_word(number, rng)
    known = {"a couple of": 2, "a couple": 2, "a pair of": 2, "a brace of": 2, "a dozen": 12,
             "one dozen": 12, "two dozen": 24, "a score of": 20, "half a dozen": 6,
             "half-a-dozen": 6, "a half dozen": 6}  # fmt: skip
    assert said == str(number) or said == number_word(number) or known.get(said) == number
    assert not quantity_word(number, rng, of=False).endswith(" of")


def test_a_short_name_is_used_only_where_one_item_can_be_meant():
    names = Names(shop("Small Lantern", "Large Lantern", "Hemp Rope"))
    assert "lantern" not in " ".join(chain(*names.aliases("Small Lantern"))).casefold().split()
    assert "rope" in names.aliases("Hemp Rope")[1]
    assert "Small" in names.aliases("Small Lantern")[1]
    among = frozenset({"Small Lantern", "Hemp Rope"})
    assert "lantern" in names.aliases("Small Lantern", among)[1], "clear among those in the cart"


def test_a_nickname_two_items_share_is_not_used():
    nicknames = {"Oil Lamp": ["torch", "glower"], "Star Lamp": ["torch"]}
    names = Names(shop("Oil Lamp", "Star Lamp", nicknames=nicknames))
    assert names.aliases("Oil Lamp")[0] == ["glower"]
    assert names.aliases("Star Lamp")[0] == []


def test_a_name_that_fits_two_items_is_ambiguous_and_one_that_fits_three_is_not():
    assert Names(shop("Small Drum", "Old Drum", "Flute")).ambiguous(
        ["Small Drum", "Old Drum", "Flute"]
    ) == [("drum", ["Small Drum", "Old Drum"])]
    three = ["Small Drum", "Old Drum", "Large Drum"]
    assert Names(shop(*three)).ambiguous(three) == []


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_every_name_a_player_uses_points_to_its_item_alone(seed):
    rng = random.Random(seed)
    sampled = sample_shop(rng, "train", (4, 16))
    names = Names(sampled)
    taken: dict[str, str] = {}
    for item in sampled.world.items:
        for alias in (item.item_name, *chain(*names.aliases(item.item_name))):
            assert taken.setdefault(alias.casefold(), item.item_name) == item.item_name, alias


def test_lists_hold_every_part():
    rng = random.Random(0)
    for _ in range(200):
        text = join(["2 axes", "a map", "3 ropes"], rng)
        assert text.index("2 axes") < text.index("a map") < text.index("3 ropes")
    assert join(["a map"], rng) == "a map" and join([], rng) == ""


def test_a_single_item_has_no_number_but_one():
    rng = random.Random(0)
    said = {single("axe", rng) for _ in range(200)}
    assert {"an axe", "axe", "one axe"} <= said and not any(re.search(r"[02-9]", s) for s in said)


@given(
    st.text(st.sampled_from("abcdefghij 0123456789'.,"), max_size=80),
    st.floats(0, 3),
    st.randoms(use_true_random=False),
)
def test_noise_never_touches_a_number(text, strength, rng):
    assert re.findall(r"\d+", garble(text, strength, rng)) == re.findall(r"\d+", text)


def test_noise_grows_with_its_strength_and_none_is_none():
    text = "could you please put three of the hooded lanterns aside for my brother"

    def changed(strength: float) -> int:
        rng = random.Random(1)
        return sum(garble(text, strength, rng) != text for _ in range(500))

    assert changed(0) == 0 < changed(0.3) < changed(1) <= 500


@given(st.text(st.characters(categories=["Ll"]), max_size=12), st.randoms(use_true_random=False))
def test_a_typo_is_one_slip(word, rng):
    assert abs(len(typo(word, rng)) - len(word)) <= 1
    if len(word) < 4:
        assert typo(word, rng) == word


@pytest.mark.parametrize("voice", load_voices())
def test_a_voice_keeps_numbers_and_slots_of_every_phrase(voice):
    style, book, rng = load_voices()[voice], load_phrasebook(), random.Random(0)
    for act in book.player:
        for _ in range(5):
            phrase = book.wording(act, style.split, rng, voice, given=PLAYER_SLOTS)
            swapped = style.phrase(phrase, rng)
            assert sorted(re.findall(r"\{\w+\}", swapped)) == sorted(re.findall(r"\{\w+\}", phrase))
            assert re.findall(r"\d+", swapped) == re.findall(r"\d+", phrase)
            if act.startswith(UNDRESSED):
                dressed = style.dress(act, phrase, rng)
                assert dressed.casefold().rstrip(".!") in phrase.casefold() or style.unpunctuated


def test_openers_and_closers_say_neither_yes_nor_no():
    forbidden = re.compile(
        r"\b(yes|yeah|no|nope|deal|sold|agreed|sure|cancel|remove|add|cheaper)\b", re.IGNORECASE
    )
    for name, voice in load_voices().items():
        for text in (*voice.openers, *voice.closers):
            bare = text.replace("no rush", "").replace("no cap", "").replace("no wait", "")
            assert not forbidden.search(bare) or text == "yes?", (name, text)


def test_a_test_player_has_a_voice_of_the_test_split():
    from data_gen.players.scripted import sample_profile

    voices = {sample_profile(random.Random(i), "test").voice for i in range(100)}
    assert voices == set(voices_of("test"))
