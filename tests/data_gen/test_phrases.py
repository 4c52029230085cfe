"""The phrasebook: enough to say, nothing shared between train and test, nothing from the benchmark."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import yaml

from data_gen.bank import load_bank
from data_gen.language.phrasebook import (
    PHRASES,
    PLAIN,
    SPLITS,
    Split,
    expansions,
    load_phrasebook,
    slots,
)
from data_gen.language.voices import load_voices, voices_of
from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from haggle.trade import placeholders

from .conftest import grams, words

BOOK = load_phrasebook()


def strings(data: object) -> Iterator[str]:
    """Every string in nested data."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from strings(value)


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "data_gen").rglob("*.yaml")),
    ids=lambda path: "-".join(path.with_suffix("").parts[-2:]),
)
def test_no_six_words_in_a_row_are_those_of_a_benchmark_player(path, benchmark_grams):
    spoken = "player" in path.parts
    for line in strings(yaml.safe_load(path.read_text(encoding="utf-8"))):
        for text in expansions(line) if spoken else (line,):
            shared = {benchmark_grams[gram] for gram in grams(text) if gram in benchmark_grams}
            assert not shared, f"{text!r} shares six words with {shared}"


@pytest.mark.parametrize("act", BOOK.player)
def test_every_act_can_be_said_in_many_ways_by_every_voice(act):
    phrases = BOOK.player[act]
    said = {w.casefold() for lines in phrases.train.values() for p in lines for w in expansions(p)}
    assert len(said) >= 80
    for split in SPLITS:
        voices = set(voices_of(split))
        assert set(phrases.of(split)) == voices, "each voice has phrases of its own"
        assert all(len(lines) >= 4 for lines in phrases.of(split).values())


def test_the_voices_of_the_plan_exist_and_test_voices_are_never_trained_on():
    wanted = {"terse", "chatty", "archaic", "esl", "slang", "child", "lawyerly", "dictated"}
    assert wanted <= set(load_voices())
    assert set(voices_of("train")) & set(voices_of("test")) == {PLAIN}
    assert len(voices_of("train")) >= 8 and len(voices_of("test")) >= 3


def said_in(split: Split) -> dict[str, set[str]]:
    """Every wording of a split by act, without case and end marks."""
    return {
        act: {
            " ".join(w.casefold().split()).strip(" .!?")
            for p in chain.from_iterable(phrases.of(split).values())
            for w in expansions(p)
        }
        for act, phrases in BOOK.player.items()
    }


def test_train_and_test_share_no_wording_not_even_across_acts():
    train, test = (set().union(*said_in(split).values()) for split in SPLITS)
    assert not train & test


def test_no_five_words_of_an_act_in_test_are_those_of_training():
    def runs(wordings: set[str]) -> set[tuple[str, ...]]:
        split = [words(w) for w in wordings]
        return {tuple(w[i : i + 5]) for w in split for i in range(len(w) - 4)}

    train, test = said_in("train"), said_in("test")
    for act in train:
        assert not runs(train[act]) & runs(test[act]), act


def test_purposes_are_disjoint_and_each_is_what_some_shop_sells_for():
    tags = {
        tag for genre in load_bank().genres.values() for item in genre.items for tag in item.tags
    }
    for tag, phrases in BOOK.purposes.items():
        assert tag in tags
        assert phrases.test and not {p.casefold() for p in phrases.train} & {
            p.casefold() for p in phrases.test
        }


def test_merchants_speak_no_number_and_only_known_placeholders():
    lines = [line for manners in BOOK.merchant.values() for m in manners.values() for line in m]
    assert len(lines) > 1000
    for line in lines:
        rest = placeholders.fill(line, {})
        assert "__" not in rest and not re.search(r"\d", line), line


@pytest.mark.parametrize(
    ("kind", "needed", "allowed"),
    [
        ("OFFER_new", placeholders.PRICE, {placeholders.PRICE, placeholders.CART, placeholders.CURRENCY}),
        ("FINAL_CHECK", placeholders.PRICE, {placeholders.PRICE, placeholders.CART, placeholders.CURRENCY}),
        ("NEGOTIATE", placeholders.PRICE, {placeholders.PRICE, placeholders.CART, placeholders.CURRENCY}),
        ("SHOW_price", placeholders.PRICES, {placeholders.PRICES, placeholders.ITEMS, placeholders.CURRENCY}),
        ("CASUAL_greet", "", set()),
        ("END_leave", "", set()),
    ],
)  # fmt: skip
def test_a_line_uses_only_placeholders_that_have_a_value_where_it_is_said(kind, needed, allowed):
    for line in chain.from_iterable(BOOK.merchant[kind].values()):
        assert placeholders.used(line) <= allowed, line
        assert not needed or needed in line, line


def test_the_last_question_is_a_question():
    lines = chain.from_iterable(BOOK.merchant["FINAL_CHECK"].values())
    assert all(line.endswith("?") for line in lines)


@pytest.mark.parametrize("kind", BOOK.merchant)
def test_merchants_have_many_lines_in_eight_manners(kind):
    manners = BOOK.merchant[kind]
    assert len(set(manners) - {PLAIN}) >= 8 and sum(map(len, manners.values())) >= 40


def test_a_phrase_is_drawn_only_when_its_slots_can_be_filled():
    rng = random.Random(0)
    given, must = frozenset({"ordinal", "qty"}), frozenset({"qty"})
    said = {BOOK.wording("order_ordinal", "train", rng, given=given) for _ in range(500)}
    assert any("{qty}" in text for text in said) and not all("{qty}" in text for text in said)
    said = {BOOK.wording("order_ordinal", "train", rng, given=given, must=must) for _ in range(99)}
    assert all("{qty}" in text for text in said)
    with pytest.raises(KeyError, match="no train phrase of 'create'"):
        BOOK.wording("create", "train", rng)


def test_a_voice_speaks_its_own_phrases_and_the_plain_ones_but_no_other_voices():
    rng = random.Random(0)
    own = {w for p in BOOK.player["confirm"].train["child"] for w in expansions(p)}
    plain = {w for p in BOOK.player["confirm"].train[PLAIN] for w in expansions(p)}
    said = {BOOK.wording("confirm", "train", rng, "child") for _ in range(500)}
    assert said & own and said & plain and said <= own | plain


def test_slots_are_read_from_a_phrase():
    assert slots("{qty} {item} for {price}") == {"qty", "item", "price"} and slots("hi") == set()


def test_alternatives_stand_for_all_their_wordings():
    assert set(expansions("[a|b] c[ d|]")) == {"a c d", "a c", "b c d", "b c"}
    assert expansions("plain") == ("plain",)
    for broken in ("[a|b", "a]", "[a[b|c]]", "[1|2|3|4|5]" * 5):
        with pytest.raises(ValueError):
            expansions(broken)


@pytest.fixture
def edited(tmp_path: Path):
    """Loads a copy of the phrase files with one text replaced."""

    def load(name: str, old: str, new: str) -> str:
        shutil.copytree(PHRASES, tmp_path / "phrases")
        path = tmp_path / "phrases" / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(HaggleError) as refused:
            load_phrasebook(tmp_path / "phrases")
        assert name in str(refused.value)
        return str(refused.value)

    return load


@pytest.mark.parametrize(
    ("name", "old", "new", "complaint"),
    [
        ("player/social.yaml", '- "hi"', '- "hi {merchnt}"', "unknown slot 'merchnt'"),
        ("player/social.yaml", '- "hi"', '- "hi {"', "acts"),
        ("player/social.yaml", '- "hi"', '- "hi [there"', "brackets do not pair"),
        ("player/social.yaml", '- "hi"', '- "Anybody Home?"', "is in train and test"),
        ("player/social.yaml", "    train:", "    trian:", "trian"),
        ("player/social.yaml", "  greet:", "  create:", "stands in another file too"),
        ("purposes.yaml", "purposes:", "purpose:", "did you mean 'purposes'"),
    ],
)
def test_a_mistake_in_a_phrase_file_is_named(edited, name, old, new, complaint):
    assert complaint in edited(name, old, new)
