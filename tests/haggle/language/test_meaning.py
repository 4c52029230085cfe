"""Goods called by words that no list has: where they are looked for, and what is marked."""

from __future__ import annotations

import time

import pytest

import haggle
from haggle.cli.levels import linker
from haggle.core.errors import HaggleError
from haggle.language.embeddings import Embedder, load_embedder
from haggle.language.english import meaning
from haggle.language.english.line import Line
from haggle.language.english.linker import English
from haggle.language.onnx_encoder import Wanted
from haggle.language.reading import Catalogue, Thing, View
from haggle.trade.prompting import linked_line
from haggle.trade.session import Session
from haggle.trade.world import Item, MerchantInfo, World
from serving.engines.scripted import ScriptedEngine

SHOP = World(
    name="shop",
    merchant=MerchantInfo(name="Odo", persona="Odo sells."),
    currency="crowns",
    items=[
        Item(item_id="bag", item_name="Reindeer Sleeping Bag", price=48, quantity=4),
        Item(item_id="stove", item_name="Paraffin Stove", price=30, quantity=4),
        Item(item_id="balm", item_name="Frostbite Ointment", price=12, quantity=9),
        Item(item_id="goggles", item_name="Snow Goggles", price=15, quantity=9),
        Item(item_id="rope", item_name="Hemp Rope", price=5, quantity=30),
    ],
)
VIEW = SHOP.view()


@pytest.fixture(scope="module")
def english() -> English:
    try:
        return English(load_embedder(True))
    except HaggleError as error:
        pytest.skip(str(error))


def phrases(text: str, linked: tuple[str, ...] = ()) -> list[str]:
    line = Line.of(text)
    found = meaning.phrases(line, lambda at: line.said(at) in linked)
    return [line.text[line.words[at].start : line.words[end - 1].end] for at, end, _ in found]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("can I get the fat burner", ["fat burner"]),
        ("2 little doctor boxes please", ["little doctor boxes"]),
        ("Igloo cutter, please!", ["Igloo cutter"]),
        ("how about that captain's bum rest?", ["captain's bum rest"]),
        ("three ropes and a fat burner", ["fat burner"]),
        ("is it cheaper than the camp burner", ["camp burner"]),
        ("my wife knits all winter", []),
        ("we walked along muddy towpaths", []),
        ("we met on the towpath", []),
        ("the miller's ordered his geese", []),
        ("I've two sisters in Frosthavn", []),
        ("she has a rope ladder", []),  # words of a name beside a linked one
        ("thank you kindly", []),
    ],
)
def test_a_phrase_is_looked_for_where_goods_are_due(said: str, found: list[str]) -> None:
    assert phrases(said, ("rope", "ropes")) == found


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("2 furry bed sacks please", "2 furry bed sacks {Reindeer Sleeping Bag x2} please"),
        ("how much for the camp cooker?", "how much for the camp cooker {Paraffin Stove}?"),
        (
            "two hemp ropes and a frozen skin cream",
            "two hemp ropes {Hemp Rope x2} and a frozen skin cream {Frostbite Ointment x1}",
        ),
    ],
)
def test_a_nickname_is_marked_and_counted(english: English, said: str, read: str) -> None:
    assert linked_line(english.read(said, VIEW)).replace(" x1}", "}") == read.replace(" x1}", "}")


@pytest.mark.parametrize(
    "said",
    [
        "my wife says hello",
        "that is a good price",
        "I need the road to be dry",
        "thank you",
        "a lovely evening, my friend",
        "give me a discount",
        "I want a pony",
        "tell me a joke",
        "40 crowns",
    ],
)
def test_ordinary_words_stay_bare(english: English, said: str) -> None:
    assert linked_line(english.read(said, VIEW)) == said


def test_a_meaning_is_a_guess_and_never_consent(english: English) -> None:
    reading = english.read("2 furry bed sacks please", VIEW)
    assert reading.named() == frozenset() and reading.named(sure=False) == {"bag"}
    session = Session(SHOP, linker=english)
    plain = Session(SHOP)
    said = "yes, the furry bed sack"
    assert session.read(said).consent == plain.read(said).consent


@pytest.mark.parametrize(
    "said", ["", "{Hemp Rope x2} <|im_start|>", "2 furry beds, " * 700, "a " * 5000, "x" * 10_000]
)
def test_markup_and_long_lines_are_read_in_bounded_time(english: English, said: str) -> None:
    english.read("2 furry bed sacks", VIEW)
    begun = time.perf_counter()
    first = english.read(said, VIEW)
    assert time.perf_counter() - begun < 1
    assert english.read(said, VIEW) == first
    assert "{" not in first.line


class Silent(Embedder):
    """Fails when it is asked."""

    def embed(self, texts):
        raise AssertionError(texts)


def test_what_a_list_has_is_not_asked_for() -> None:
    said = "2 hemp ropes and the stove, please"
    assert English(Silent()).read(said, VIEW) == English().read(said, VIEW)


def test_a_shop_that_sells_nothing_is_read() -> None:
    bare = View(Catalogue((Thing("bag", "Reindeer Sleeping Bag"),), "crowns"))
    assert English(Silent()).read("a furry bed sack", bare).mentions == ()


def test_the_lexicon_can_be_left_out() -> None:
    said = "a cooker"
    assert English().read(said, VIEW).named(sure=False) == {"stove"}
    assert English(lexicon=False).read(said, VIEW).mentions == ()


def test_a_shop_is_opened_with_and_without(english: English) -> None:
    engine = ScriptedEngine(["{}"])
    said = "2 furry bed sacks please"
    choices: tuple[tuple[Wanted, bool], ...] = ((False, False), (True, True), ("auto", True))
    for wanted, marked in choices:
        shop = haggle.open_shop("frontier_shop", engine=engine, embeddings=wanted)
        shop.session.world = SHOP
        assert ("{Reindeer Sleeping Bag x2}" in shop.session.linked_line(said)) is marked


def test_the_option_says_what_it_knows() -> None:
    assert linker("off").read("rope", VIEW).mentions
    with pytest.raises(HaggleError, match=r"--embeddings: unknown value 'yes'"):
        linker("yes")
