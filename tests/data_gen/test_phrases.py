"""The phrasebook: enough to say, nothing shared between train and test, nothing from the benchmark."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import yaml

from data_gen.phrasebook import MIN_TRAIN, PHRASES, Split, load_phrasebook, slots
from data_gen.worlds import load_bank
from haggle import placeholders
from haggle.config import ROOT
from haggle.errors import HaggleError

BOOK = load_phrasebook()
N = 6


def words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.casefold())


def grams(text: str) -> set[tuple[str, ...]]:
    """All runs of six words."""
    said = words(text)
    return {tuple(said[i : i + N]) for i in range(len(said) - N + 1)}


def strings(data: object) -> Iterator[str]:
    """Every string in nested data."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for value in data.values() if isinstance(data, dict) else data:
            yield from strings(value)


@pytest.fixture(scope="module")
def benchmark_grams() -> dict[tuple[str, ...], str]:
    """Six-word runs of every player line of the development set, with the case."""
    found: dict[tuple[str, ...], str] = {}
    path = ROOT / "eval" / "benchmarks" / "dev.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        for said in (case["player"], *(past["player"] for past in case["history"])):
            found |= dict.fromkeys(grams(said), case["id"])
    assert len(found) > 300
    return found


@pytest.mark.parametrize(
    "path", sorted((ROOT / "data_gen").rglob("*.yaml")), ids=lambda path: path.stem
)
def test_no_six_words_in_a_row_are_those_of_a_benchmark_player(path, benchmark_grams):
    for text in strings(yaml.safe_load(path.read_text(encoding="utf-8"))):
        shared = {benchmark_grams[gram] for gram in grams(text) if gram in benchmark_grams}
        assert not shared, f"{text!r} shares six words with {shared}"


@pytest.mark.parametrize("act", BOOK.player)
def test_every_act_can_be_said_in_many_ways(act):
    phrases = BOOK.player[act]
    assert len({p.casefold() for p in phrases.train}) == len(phrases.train) >= MIN_TRAIN == 25
    assert len({p.casefold() for p in phrases.test}) == len(phrases.test) >= 10


def test_train_and_test_share_no_phrase_not_even_across_acts():
    def said(split: Split) -> set[str]:
        phrases = chain.from_iterable(p.of(split) for p in BOOK.player.values())
        return {" ".join(phrase.casefold().split()).strip(" .!?") for phrase in phrases}

    assert not said("train") & said("test")


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
    lines = list(chain.from_iterable(p.train for p in BOOK.merchant.values()))
    assert len(lines) > 500
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
    for line in BOOK.merchant[kind].train:
        assert placeholders.used(line) <= allowed, line
        assert not needed or needed in line, line


def test_the_last_question_is_a_question():
    assert all(line.endswith("?") for line in BOOK.merchant["FINAL_CHECK"].train)


def test_a_phrase_is_drawn_only_when_its_slots_can_be_filled():
    rng = random.Random(0)
    said = {BOOK.say("accept", "train", rng) for _ in range(500)}
    assert not any("{" in text for text in said)
    priced = {BOOK.say("accept", "train", rng, price="777") for _ in range(500)}
    assert any("777" in text for text in priced)
    with pytest.raises(KeyError, match="no train phrase of 'create'"):
        BOOK.say("create", "train", rng)


def test_slots_are_read_from_a_phrase():
    assert slots("{qty} {item} for {price}") == {"qty", "item", "price"} and slots("hi") == set()


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
        ("player.yaml", '- "hi"', '- "hi {merchnt}"', "unknown slot ['merchnt']"),
        ("player.yaml", '- "hi"', '- "hi {"', "acts"),
        ("player.yaml", '- "hi"', '- "Anybody Home?"', "is in train and test"),
        ("player.yaml", "    train:", "    trian:", "trian"),
        ("merchant.yaml", "Come in, come in", "Come in, 3 times", "digits or unknown placeholder"),
        ("purposes.yaml", "purposes:", "purpose:", "did you mean 'purposes'"),
    ],
)
def test_a_mistake_in_a_phrase_file_is_named(edited, name, old, new, complaint):
    assert complaint in edited(name, old, new)
