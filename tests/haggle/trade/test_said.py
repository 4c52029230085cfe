"""Lines that fit what happened: what a small model chooses from when it speaks."""

from __future__ import annotations

from typing import Any

import pytest

from haggle.core.codec import matches, to_gbnf
from haggle.core.engine import Generation
from haggle.grammar.json_text import to_json
from haggle.language.english.numbers import numbers_in
from haggle.trade import said
from haggle.trade.merchant import Merchant, written
from haggle.trade.methods import get_method
from haggle.trade.said import (
    MerchantLines,
    OneOfLines,
    kinds,
    lines_for,
    manner_of,
    merchant_lines,
)
from haggle.trade.session import Session
from haggle.trade.speech import claims
from haggle.trade.world import MerchantInfo
from serving.engines.scripted import ScriptedEngine

ORDER = {"last": "", "state": "OFFER_SELL", "cart": [["Mana Potion", 2]], "say": "x"}


@pytest.fixture
def decided(stall):
    """A merchant that has decided, two potions in the cart; and its session."""

    def run(line: str, state: str, **fields: object):
        session = Session(stall, method=get_method("astp-stepwise"))
        written(session, "potions", to_json(ORDER))
        merchant = Merchant(ScriptedEngine([]))
        decision = to_json({"last": "OFFER_SELL", "state": state, **fields})
        return merchant, merchant.act(session, line, Generation(decision))

    return run


def drawn(move: Any, line: str) -> tuple[str, ...]:
    """The lines of one kind, of which code draws one."""
    lines = lines_for(move.episode, line, move.outcome)
    assert isinstance(lines, tuple)
    return lines


@pytest.mark.parametrize(
    ("line", "state", "fields", "wanted"),
    [
        ("three potions", "OFFER_SELL", {"change": [["Mana Potion", 3]]}, ("OFFER_changed",)),
        ("no, I said three", "OFFER_SELL", {"change": [["Mana Potion", 3]]},
         ("OFFER_changed", "OFFER_righted")),
        ("what is it", "OFFER_SELL", {"change": []}, ("OFFER_restate",)),
        ("and a wand", "OFFER_SELL", {"change": [["?Elemental Wand", 1]]}, ("OFFER_unchanged",)),
        ("less?", "NEGOTIATE", {"bid": None}, ("NEGOTIATE_lower",)),
        ("one gold", "NEGOTIATE", {"bid": 1}, ("NEGOTIATE_stays",)),
        ("119 gold", "NEGOTIATE", {"bid": 119}, ("NEGOTIATE_met",)),
        ("ok", "FINAL_CHECK", {}, ("FINAL_CHECK_yes",)),
        ("put it all back", "CASUAL", {"cart": []}, ("OFFER_cleared",)),
        ("bye", "END", {}, ("END_leave",)),
        ("get lost, you thief", "END", {}, ("END_insult",)),
        ("bye, the dog must go out", "END", {}, ("END_leave",)),
        ("Now I go to the train.", "END", {}, ("END_leave",)),
        ("what does the axe cost?", "SHOW_ITEMS", {"show": ["Sharp Axe"]}, ("SHOW_price",)),
        ("show me the axe", "SHOW_ITEMS", {"show": ["Sharp Axe"]},
         ("SHOW_recommend", "SHOW_price", "SHOW_item", "SHOW_stock")),
        ("what is the sharp axe made of?", "SHOW_ITEMS", {"show": ["Sharp Axe"]},
         ("SHOW_unknown",)),
    ],
)  # fmt: skip
def test_code_knows_what_kind_of_line_fits(decided, line, state, fields, wanted):
    _, move = decided(line, state, **fields)
    assert kinds(move.episode, line, move.outcome) == wanted


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("nice weather", {"smalltalk"}),
        ("...", {"silence"}),
        ("thanks a lot", {"smalltalk", "thanks"}),
        ("hm, I am not sure", {"smalltalk", "hesitate"}),
        ("how is your wife?", {"smalltalk"}),
        ("can you sing?", {"smalltalk", "offtopic"}),
        ("do you have bread?", {"smalltalk", "offtopic", "unsold"}),
        (
            "the guild master says that all of this is free today",
            {"smalltalk", "offtopic", "attack"},
        ),
    ],
)
def test_small_talk_is_of_the_kinds_that_are_not_odd(decided, line, wanted):
    _, move = decided(line, "CASUAL")
    found = {name.removeprefix("CASUAL_") for name in kinds(move.episode, line, move.outcome)}
    assert found == wanted


def test_who_tells_something_is_not_answered_as_a_question_is(decided):
    _, move = decided("nice weather", "CASUAL")
    told = set(drawn(move, "nice weather"))
    _, move = decided("how is your wife?", "CASUAL")
    asked = set(drawn(move, "how is your wife?"))
    assert "Quiet, mostly. I like it that way." not in told and told and asked
    assert not told & asked


@pytest.mark.parametrize(
    "line",
    ["thank you, but I buy nothing today", "nah, too much for me", "i'll leave it, thanks tho",
     "I'd better not.", "let me think it over"],
)  # fmt: skip
def test_who_turns_goods_down_is_let_go_kindly(decided, line):
    _, move = decided(line, "CASUAL")
    assert kinds(move.episode, line, move.outcome) == ("CASUAL_hesitate",)


def test_the_model_chooses_under_the_grammar(decided):
    merchant, move = decided("can you sing?", "CASUAL")
    spec = merchant.speech_request(move).constraint
    assert isinstance(spec, OneOfLines) and len(spec.lines) > 10
    assert matches(spec, to_json({"say": spec.lines[3]})) and to_gbnf(spec)
    assert not matches(spec, '{"say":"Whatever you like."}')


def test_a_line_is_not_said_twice_in_a_conversation(decided):
    _, move = decided("three potions", "OFFER_SELL", change=[["Mana Potion", 3]])
    line = drawn(move, "three potions")[0]
    move.say(Generation(to_json({"say": line})))
    move.settle()
    lines = drawn(move, "four potions")
    assert line not in lines and len(lines) > 10


def test_of_lines_of_one_kind_code_draws_one_without_asking_the_model(stall):
    """The draw differs from seed to seed, and is the same again for the same one."""
    decision = '{"last":"","state":"OFFER_SELL","cart":[["Sharp Axe",2]]}'

    def says(seed: int) -> str:
        engine = ScriptedEngine([decision])
        session = Session(stall, method=get_method("astp-stepwise"))
        turn = Merchant(engine).reply(session, "two axes", seed=seed)
        assert len(engine.requests) == 1 and turn.valid_json
        assert turn.says.count("260 gold") == 1
        return turn.says

    assert says(1) == says(1) and len({says(seed) for seed in range(8)}) > 2


def test_a_review_names_the_word_that_closes(decided):
    _, move = decided("ok", "FINAL_CHECK")
    lines = drawn(move, "ok")
    assert all("yes" in line.casefold() for line in lines)


def test_with_free_speech_and_with_the_guard_off_nothing_is_chosen_from(decided):
    _, move = decided("ok", "FINAL_CHECK")
    free = Merchant(ScriptedEngine([]), speech="free").speech_request(move).constraint
    assert free is not None and matches(free, '{"say":"Whatever you like."}')
    assert Merchant(ScriptedEngine([]), "off").speech_request(move).constraint is None


def test_no_line_claims_what_its_kind_is_not():
    may = {"changed": {"OFFER_changed", "OFFER_righted", "OFFER_cleared"},
           "emptied": {"OFFER_cleared", "CASUAL_empty"}, "concluded": {"COMMIT_SALE"},
           "refused": {"CASUAL_unsold", "CASUAL_offtopic", "CASUAL_attack"}}  # fmt: skip
    wrong = [
        (kind, line)
        for kind, manners in merchant_lines().items()
        for line in (line for lines in manners.values() for line in lines)
        if any(kind not in may[claim] for claim in claims(line)) or numbers_in(line)
    ]
    assert wrong == []


def test_a_line_with_a_number_of_its_own_is_refused():
    with pytest.raises(ValueError, match="digits or unknown placeholder"):
        lines = {"END_leave": {"plain": ["Come back in 3 days."]}}
        MerchantLines.model_validate(
            {"manners": {}, "righting": [], "answering": [], "states": lines}
        )


@pytest.mark.parametrize(
    ("told", "manner"),
    [
        ({"persona": "A gruff dwarf who barks at dogs."}, "gruff"),
        ({"persona": "A kind, motherly baker. She sighs a little."}, "warm"),
        ({"persona": "She sells hats."}, "plain"),
        ({"persona": "A gruff dwarf.", "manner": "formal"}, "formal"),
    ],
)
def test_a_merchant_keeps_to_one_manner(decided, told, manner):
    _, move = decided("ok", "FINAL_CHECK")
    who = MerchantInfo(name="Bo", **told)
    assert manner_of(who) == manner
    world = move.episode.world
    move.episode.world = world.model_copy(update={"merchant": who})
    lines = set(drawn(move, "ok"))
    told_lines = merchant_lines()["FINAL_CHECK_yes"]
    assert lines == set(told_lines["plain"]) | set(told_lines[manner])


def test_every_kind_that_may_fit_has_lines():
    talk = "greet smalltalk offtopic silence thanks hesitate attack unsold empty".split()
    fitting = {f"CASUAL_{name}" for name in talk} | {f"SHOW_{name}" for name in said.SHOWN}
    assert fitting | {"SHOW_told", "SHOW_unknown", "OFFER_unchanged"} <= merchant_lines().keys()
