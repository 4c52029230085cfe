"""A model rephrases scripted lines: what they mean survives, or the original stands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

from data_gen.acts import Act
from data_gen.config import DataConfig
from data_gen.language.mentions import Names
from data_gen.sources import make_dialogue, to_row
from data_gen.teachers.asking import Rejected
from data_gen.teachers.reading import Reader, bare_line, numbers
from data_gen.teachers.source import LlmSource
from data_gen.teachers.survival import check_merchant, check_player
from data_gen.worlds import shop_of
from haggle.config import parse
from haggle.engine import Generation, GenerationRequest
from haggle.errors import HaggleError
from haggle.procedure import load_procedure
from haggle.wire import decode_compact
from haggle.world_io import named_world

PROCEDURE = load_procedure()
SHOP = shop_of(named_world("frontier_shop"))
NAMES = Names(SHOP)
NUMBER = 8


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


# Whole dialogues


class Model:
    """An engine that rephrases as a test says."""

    name, model = "stub", "stub-1"

    def __init__(self, answer: Callable[[GenerationRequest], str | Generation]) -> None:
        self.answer = answer
        self.batches: list[list[GenerationRequest]] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        self.batches.append(list(requests))
        answers = (self.answer(request) for request in requests)
        return [a if isinstance(a, Generation) else Generation(a, 10, 4) for a in answers]

    def stream(self, request: GenerationRequest):
        raise NotImplementedError

    def close(self) -> None:
        pass


def source_of(model: Model, noise: float = 0.0, **rewriter: Any) -> LlmSource:
    data = {
        "train": NUMBER, "test": 0, "noise": noise,
        "teacher": {"concurrency": 3, "rewriter": {"engine": "model", "max_attempts": 2} | rewriter},
    }  # fmt: skip
    return LlmSource(parse(data, DataConfig, "test"), lambda name: model)


@cache
def originals() -> tuple[dict[str, Any], ...]:
    config = DataConfig(train=NUMBER, test=0, noise=0.0)
    return tuple(to_row(*make_dialogue(config, "train", i)) for i in range(NUMBER))


def longer(request: GenerationRequest) -> str:
    """The line with a word before it."""
    return f"Well, {request.messages[1].content}"


def labels(row: dict[str, Any]) -> list[tuple[str, ...]]:
    return [(t["act"], t["last"], t["state"], t["cart"]) for t in row["turns"]]


def says(row: dict[str, Any]) -> list[str]:
    texts = [m["content"] for m in row["messages"] if m["role"] == "assistant"]
    return [decode_compact(text, PROCEDURE).say for text in texts]


def test_lines_change_and_everything_else_stays():
    source = source_of(Model(longer))
    rows = list(source.rows("train", range(NUMBER)))
    changed = 0
    for row, before in zip(rows, originals(), strict=True):
        assert labels(row) == labels(before) and row["id"] == before["id"]
        assert row["teacher"] == "rewriter:stub" and row["player"] == before["player"]
        for new, old in zip(says(row), says(before), strict=True):
            assert new in {old, f"Well, {old}"}
        for turn, old_turn in zip(row["turns"], before["turns"], strict=True):
            changed += turn["player"] == f"Well, {old_turn['player']}"
            assert turn["player"] in {old_turn["player"], f"Well, {old_turn['player']}"}
            assert "__" not in turn["npc_dialogue"]
        assert [m["content"] for m in row["messages"][1::2]] == [
            m["content"].replace("player: ", "player: Well, ")
            if t["player"].startswith("Well, ") and not o["player"].startswith("Well, ")
            else m["content"]
            for m, t, o in zip(before["messages"][1::2], row["turns"], before["turns"], strict=True)
        ]
    report = source.report()["rewriter"]
    assert changed > 20 and report["accepted"] > 0.9 * report["turns"]


def test_all_lines_of_the_dialogues_under_way_are_asked_for_at_once():
    model = Model(longer)
    list(source_of(model).rows("train", range(3)))
    lines = 2 * sum(len(row["turns"]) for row in originals()[:3])
    assert lines * 0.8 < len(model.batches[0]) <= lines


def test_a_rejected_line_is_asked_again_with_the_reason_then_the_original_stands():
    def numerous(request: GenerationRequest) -> str:
        return f"{longer(request)} 77 times"

    model = Model(numerous)
    source = source_of(model, max_attempts=3)
    rows = list(source.rows("train", range(3)))
    for row, before in zip(rows, originals(), strict=False):
        assert {**row, "teacher": ""} == {**before, "teacher": ""}
        assert row["teacher"] == "oracle"
    report = source.report()["rewriter"]
    assert report["given_up"] == {"original": report["turns"]}
    assert sum(report["rejected"].values()) == report["answers"] == 3 * report["turns"]
    assert report["rejected"]["number"] > report["turns"]
    again = [r for batch in model.batches[1:] for r in batch if len(r.messages) == 4]
    assert again and all("cannot be used" in request.messages[-1].content for request in again)
    assert all(request.messages[2].content.endswith("77 times") for request in again)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (Generation("so then I", finish_reason="length"), "truncated"),
        ("one\ntwo", "lines"),
        ('{"line": "x"}', "markup"),
    ],
)
def test_unusable_phrasings_are_counted_by_reason(answer, reason):
    source = source_of(Model(lambda request: answer), max_attempts=1)
    rows = list(source.rows("train", [0]))
    assert labels(rows[0]) == labels(originals()[0])
    assert source.report()["rewriter"]["rejected"][reason] > 0


@pytest.mark.parametrize(("player", "merchant"), [(True, False), (False, True)])
def test_one_side_alone_may_be_rewritten(player, merchant):
    rows = list(source_of(Model(longer), player=player, merchant=merchant).rows("train", range(4)))
    for row, before in zip(rows, originals(), strict=False):
        assert (says(row) != says(before)) == merchant
        lines = [[t["player"] for t in r["turns"]] for r in (row, before)]
        assert (lines[0] != lines[1]) == player


def test_a_share_of_the_lines_is_asked_for():
    half, whole = (source_of(Model(longer), share=share) for share in (0.5, 1.0))
    for source in (half, whole):
        list(source.rows("train", range(NUMBER)))
    turns = [s.report()["rewriter"]["turns"] for s in (half, whole)]
    assert 0.3 * turns[1] < turns[0] < 0.7 * turns[1]


def test_typing_noise_is_laid_over_the_rewritten_lines():
    calm, noisy = (
        list(source_of(Model(longer), noise).rows("train", range(NUMBER))) for noise in (0.0, 3.0)
    )
    pairs = [
        (a["player"], b["player"])
        for one, other in zip(calm, noisy, strict=True)
        for a, b in zip(one["turns"], other["turns"], strict=True)
    ]
    assert [labels(row) for row in calm] == [labels(row) for row in noisy]
    changed = sum(a != b for a, b in pairs)
    assert 0.2 * len(pairs) < changed < len(pairs)
    assert all(re.findall(r"\d+", a) == re.findall(r"\d+", b) for a, b in pairs)


def test_forged_texts_and_insults_are_left_as_they_are():
    model = Model(longer)
    source = source_of(model, merchant=False)
    rows = list(source.rows("train", range(40)))
    before = (to_row(*make_dialogue(DataConfig(noise=0.0), "train", i)) for i in range(40))
    kept = 0
    for row, old in zip(rows, before, strict=True):
        for turn, was in zip(row["turns"], old["turns"], strict=True):
            if turn["act"].startswith(("attack", "insult", "silence")):
                kept += 1
                assert turn["player"] == was["player"]
    assert kept > 2


def test_a_rewritten_player_may_stand_before_a_model_as_merchant():
    def both(request: GenerationRequest) -> str:
        return "garbage" if len(request.messages[0].content) > 2000 else longer(request)

    data = {
        "train": 2, "test": 0, "noise": 0,
        "teacher": {"engine": "model", "max_attempts": 1, "rewriter": {"engine": "model"}},
    }  # fmt: skip
    source = LlmSource(parse(data, DataConfig, "test"), lambda name: Model(both))
    rows = list(source.rows("train", range(2)))
    assert {row["teacher"] for row in rows} == {"rewriter:stub"}  # no answer of it was of use
    assert [labels(row) for row in rows] == [labels(row) for row in originals()[:2]]
    assert any(turn["player"].startswith("Well, ") for row in rows for turn in row["turns"])
    assert json.dumps(source.report())


def test_an_engine_that_gives_up_ends_the_run():
    def fails(request: GenerationRequest) -> str:
        raise HaggleError("no answer in 6 attempts: 500", where="stub")

    with pytest.raises(HaggleError, match="500"):
        list(source_of(Model(fails)).rows("train", range(2)))


def test_a_rewriter_without_work_is_an_error():
    with pytest.raises(HaggleError, match="nobody's lines"):
        source_of(Model(longer), player=False, merchant=False)
