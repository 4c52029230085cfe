"""Lines are read back, and a rephrased one is refused when it says something else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from data_gen.acts import Act
from data_gen.language.mentions import Names
from data_gen.teachers.asking import Rejected
from data_gen.teachers.reading import Reader, bare_line, numbers
from data_gen.teachers.survival import check_merchant, check_player
from data_gen.worlds import shop_of
from haggle.trade.procedure import load_procedure
from haggle.trade.world_io import named_world

PROCEDURE = load_procedure()
SHOP = shop_of(named_world("frontier_shop"))
NAMES = Names(SHOP)


def reader_of(*near: str, words: Sequence[str] = ()) -> Reader:
    return Reader(SHOP, NAMES, near, words)


def verdict(old: str, new: str, act: Act, *near: str) -> str:
    """Why a rephrased player's line is refused; `ok` when it is not."""
    words = [name[1:] for name, _ in act.cart if name.startswith("?")]
    try:
        check_player(old, new, act, reader_of(*near, words=words), "gold")
    except Rejected as rejected:
        return rejected.reason
    return "ok"


def merchant_verdict(old: str, new: str, state: str = "CASUAL") -> str:
    try:
        check_merchant(old, new, state, PROCEDURE, reader_of(), "gold")
    except Rejected as rejected:
        return rejected.reason
    return "ok"


# Reading a line back


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("twenty-five gold", [25]), ("a hundred and five", [105]), ("two hundred fifty", [250]),
        ("half a dozen", [6]), ("a couple", [2]), ("two dozen", [24]), ("1,200 or 2k", [1200, 2000]),
        ("x3, 3x", [3, 3]), ("one more, another one", []), ("40%", [40]), ("7.5", [7.5]),
        ("ninety-nine thousand two hundred", [99200]), ("often alone", []),
    ],
)  # fmt: skip
def test_numbers_are_read_in_digits_and_words(text, values):
    assert [number.value for number in numbers(text) if not number.soft] == values


@pytest.mark.parametrize(
    ("text", "lines", "values"),
    [
        ("2 sharp axes and three Sturdy Shields for 900", {"Sharp Axe": 2, "Sturdy Shield": 3}, [900]),
        ("sharp axe x2, local map", {"Sharp Axe": 2, "Local Map": 1}, []),
        ("a couple of your best healing potions", {"Healing Potion": 2}, []),
        ("200 for the local map", {"Local Map": 1}, [200]),
        ("sturdy rope (20m) x4", {"Sturdy Rope (20m)": 4}, []),
        ("Local Map (60 gold)", {"Local Map": 1}, [60]),
        ("ADVENTURER’S KITS, all of them", {"Adventurer's Kit": 1}, []),
        ("maps", {}, []),
    ],
)  # fmt: skip
def test_items_are_read_with_their_numbers(text, lines, values):
    reading = reader_of().read(text)
    assert (reading.lines, reading.values) == (lines, values)


def test_short_names_are_known_where_they_are_clear():
    assert reader_of().read("the map").lines == {}
    assert reader_of("Local Map").read("the map").lines == {"Local Map": 1}
    assert reader_of(words=["moon cheese"]).read("two moon cheeses").lines == {"?moon cheese": 2}


@pytest.mark.parametrize(
    ("text", "line"),
    [('"Two maps."', "Two maps."), ("Player: hello", "hello"), ("**Rephrased**: so be it", "so be it"),
     ("it's a dog's life", "it's a dog's life")],
)  # fmt: skip
def test_wrapping_is_taken_off_a_line(text, line):
    assert bare_line(text, ["Player", "Rephrased"]) == line


# What survives


ORDER = Act("create", "order", (("Sharp Axe", 2), ("Local Map", 1)))
UNLISTED = Act("create", "order", (("?elven wand", 1),))
ADD = Act("add", "order", (("Sharp Axe", 2), ("Local Map", 3)), changed=True)
REMOVE = Act("remove", "order", (("Sharp Axe", 2),), changed=True)
BID = Act("haggle_total", "haggle", bid=200)
OFF = Act("haggle_amount_off", "haggle", bid="-20")
AGREE = Act("accept", "agree")
DOUBT = Act("hesitate", "hesitate")
PURPOSE = Act("recommend", "recommend")


@pytest.mark.parametrize(
    ("act", "old", "new"),
    [
        (
            ORDER,
            "I'd like 2 sharp axes and a local map",
            "two Sharp Axes plus one local map for me",
        ),
        (ORDER, "a pair of sharp axes, the Local Map", "Local Map and 2 sharp axes, friend"),
        (UNLISTED, "one elven wand please", "might you sell me an elven wand"),
        (ADD, "add 3 local maps", "and three local maps too"),
        (REMOVE, "take out the local map", "leave the local map here, please"),
        (BID, "can you do 200 gold?", "two hundred gold and not a coin more?"),
        (OFF, "knock 20 off", "make it twenty gold less"),
        (AGREE, "yes, deal", "agreed, let's do it"),
        (AGREE, "No problem, I'll take it.", "Sure, I will take it."),
        (DOUBT, "let me think about it", "hm, I need a moment"),
        (PURPOSE, "what helps with exploring caves?", "I'm off to explore caves. Any advice?"),
        (Act("leave", "leave"), "goodbye then", "I'm off, farewell!"),
        (Act("greet", "greet"), "hello there", "good morning to you"),
    ],
)
def test_other_words_for_the_same_are_accepted(act, old, new):
    assert verdict(old, new, act) == "ok"


@pytest.mark.parametrize(
    ("act", "old", "new", "reason"),
    [
        (ORDER, "2 sharp axes and a local map", "2 Sharp axes and a local map!", "unchanged"),
        (ORDER, "2 sharp axes and a local map", "", "empty"),
        (ORDER, "2 sharp axes and a local map", "a local map and 3 sharp axes", "quantity"),
        (ORDER, "2 sharp axes and a local map", "a sharp axe and 2 local maps, please", "quantity"),
        (ORDER, "2 sharp axes and a local map", "2 sharp axes and some local maps", "quantity"),
        (ORDER, "2 sharp axes and a local map", "I'd like 2 of your sharp axes", "item"),
        (
            ORDER,
            "2 sharp axes and a local map",
            "2 sharp axes, local map, healing potion",
            "new_item",
        ),
        (
            ORDER,
            "2 sharp axes and a local map",
            "2 sharp axes and a local map, and a shield",
            "new_item",
        ),
        (ORDER, "2 sharp axes and a local map", "2 sharp axes and a local map for 200", "number"),
        (
            ORDER,
            "2 sharp axes and a local map",
            "don't give me 2 sharp axes and a local map",
            "negation",
        ),
        (ORDER, "2 sharp axes and a local map", "2 sharp axes and only a local map", "act"),
        (ORDER, "2 sharp axes and a local map", "<b>2 sharp axes and a local map</b>", "markup"),
        (UNLISTED, "one elven wand please", "one magic wand please, friend", "item"),
        (ADD, "add 3 local maps", "3 local maps, that would do", "act"),
        (ADD, "add 3 local maps", "add 3 local maps instead", "act"),
        (REMOVE, "take out the local map", "I want the local map", "act"),
        (BID, "can you do 200 gold?", "what about 210 gold?", "number"),
        (BID, "can you do 200 gold?", "what about 200 gold off?", "act"),
        (BID, "can you do 200 gold?", "could you do 200 coins?", "currency"),
        (OFF, "knock 20 off", "make it 20, please", "act"),
        (AGREE, "yes, deal", "no, no deal", "negation"),
        (AGREE, "yes, deal", "is that a deal, then?", "question"),
        (AGREE, "yes, deal", "we will see what happens", "act"),
        (AGREE, "by my beard, mine!", "it means just what it meant", "act"),
        (AGREE, "yes, deal", "ok, show me which one is better", "act"),
        (AGREE, "yes, deal", "Yes! " * 40, "length"),
        (DOUBT, "not sure about that yet", "sure, let me think, agreed", "negation"),
        (DOUBT, "let me think about it", "I thought about it and it's a deal", "act"),
        (PURPOSE, "what helps with exploring caves?", "what helps with cooking dinner?", "act"),
        (Act("leave", "leave"), "goodbye then", "hello then", "act"),
    ],
)
def test_a_line_that_says_something_else_is_refused(act, old, new, reason):
    assert verdict(old, new, act) == reason


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        (
            "That makes __CART__ for __PRICE__ gold.",
            "__CART__, and I ask __PRICE__ gold for it.",
            "OFFER_SELL",
        ),
        (
            "__PRICE__ __CURRENCY__, shall we?",
            "Shall I wrap it up for __PRICE__ __CURRENCY__?",
            "FINAL_CHECK",
        ),
        ("Have a look: __ITEMS__.", "These may please you: __ITEMS__.", "SHOW_ITEMS"),
        ("I do not carry that.", "You will not find such a thing here.", "CASUAL"),
    ],
)
def test_a_merchants_line_may_be_said_in_other_words(old, new, state):
    assert merchant_verdict(old, new, state) == "ok"


@pytest.mark.parametrize(
    ("old", "new", "state", "reason"),
    [
        ("That makes __PRICE__ gold.", "That makes quite some gold.", "OFFER_SELL", "placeholder"),
        ("That makes __PRICE__ gold.", "__PRICE__ gold, so __PRICE__ gold.", "OFFER_SELL", "placeholder"),
        ("That makes __PRICE__ gold.", "That makes __TOTAL__ __PRICE__ gold.", "OFFER_SELL", "placeholder"),
        ("That makes __PRICE__ gold.", "That makes __PRICE__ gold for 2.", "OFFER_SELL", "number"),
        ("That makes __PRICE__ gold.", "Sharp Axes make __PRICE__ gold.", "OFFER_SELL", "item"),
        ("That makes __PRICE__ gold.", "That makes __PRICE__ credits.", "OFFER_SELL", "currency"),
        ("I do not carry that.", "I have plenty of that.", "CASUAL", "negation"),
        ("__PRICE__ gold is my word.", "I lower it to __PRICE__ gold.", "NEGOTIATE", "outcome"),
        ("__PRICE__ gold, shall we?", "It is __PRICE__ gold then.", "FINAL_CHECK", "question"),
        ("Sold! Use it well.", "Sold, is it? Use it well.", "COMMIT_SALE", "question"),
    ],
)  # fmt: skip
def test_a_merchants_line_that_loses_something_is_refused(old, new, state, reason):
    assert merchant_verdict(old, new, state) == reason
