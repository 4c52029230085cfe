"""The judge of answers: it lets small talk stand beside a yes that code reads, and only that."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from haggle.core.errors import HaggleError
from haggle.language import judge as judging
from haggle.language.answer import Answer
from haggle.language.english.linker import English
from haggle.language.evidence import AGAIN, DOUBTFUL, HARMLESS, Judge, read_answer
from haggle.language.judge import MiniLMJudge, load_judge
from haggle.language.reading import Catalogue, Thing, View
from haggle.language.terms import Good, Terms

TERMS = Terms((Good("lamp", ("Brass Lamp", "Brass Lamps"), 2),), 48, "florins", "Ada")
TALK = "wrap them up, the wind tore my roof off"


class Sure:
    """A judge that says the same of every answer, and notes what it was asked."""

    def __init__(self, odds: float) -> None:
        self.odds, self.asked = odds, list[str]()

    def agreement(self, answer: str) -> float:
        self.asked.append(answer)
        return self.odds


CHANGING = ["not", "never", "if", "unless", "when", "tomorrow", "later", "maybe", "but", "only", "seven", "40", "half",
            "more", "less", "instead", "without", "cheaper"]  # fmt: skip
YES, UNSURE, NO = 99.0, 0.0, -99.0


@pytest.fixture(scope="module")
def judge() -> Judge:
    try:
        loaded = load_judge(True)
    except HaggleError as error:
        pytest.skip(str(error))
    assert loaded is not None
    return loaded


def verdict(line: str, judge: Judge | None, **told: bool) -> str:
    return read_answer(line, TERMS, judge, **told).verdict


def test_words_beside_a_yes_keep_a_sale_open_unless_a_judge_finds_them_harmless():
    assert verdict(TALK, None) == "open"
    assert verdict(TALK, Sure(YES)) == "affirms"
    assert verdict(TALK, Sure(HARMLESS)) == "open"


@pytest.mark.parametrize(
    "line",
    [
        "the wind tore my roof off",  # no yes in it
        "what a fine lamp for a dark roof",
        "wrap them up, the wind tore my roof off, no?",
        "wrap up three lamps, the wind tore my roof off",
        "wrap them up for forty, the wind tore my roof off",
        "wrap them up, my roof needs no lamps",
        '"wrap them up", said the wind',
        "wrap them up, the wind tore my roof off, and I'm",
        "nein, danke, der Wind",
        "*nods at the wind*",
        "wrap them up, not",
        "never, wrap them up",
        "wrap them up, is it",
        "wrap them up, my arse",
        "wrap them up *puts the coins back*",
        "wrap them up, for forty thalers",
        "wrap them up. Ten guineas.",
        "I'll take them, three barrels",
        "wrap them up. I only want a lamp",
        "sold to this gentleman beside me",
        "I can pay you next week, wind permitting",
        "put it on hold for me, the wind is up",
        "you are all right, thanks",
        "cheaper sounds good to me, wrap them up",
        "maybe aye, wrap them up, and thanks",
        "later sounds good to me, wrap them up",
        "aye, wrap them up, and only one",
        "nein aye, wrap them up",
    ],
)
def test_a_judge_supplies_no_yes_and_no_other_terms(line: str):
    assert verdict(line, Sure(YES)) != "affirms"
    assert verdict(line, Sure(YES), again=True) != "affirms"


def test_what_it_cannot_read_to_the_end_keeps_the_sale_open(judge: Judge):
    long = f"wrap them up, love, my feet are killing me {'la ' * 125}, but only once you halve it"
    assert len(long) < 500
    assert judge.agreement(long) == -math.inf and verdict(long, judge) == "open"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("two brass lamps for 48 florins, yes", "the goods for the price, yes"),
        ("İİİİİ the 2 lamps, once I am paid, ok", "İİİİİ the goods, once I am paid, ok"),
        ("three lamps for 40", "three lamps for 40"),
    ],
)
def test_goods_and_price_are_named_in_general(line: str, told: str):
    assert Answer(line, TERMS).in_general() == told


def test_goods_that_were_not_reviewed_keep_the_sale_open():
    assert verdict(TALK, Sure(YES), others=True) == "open"
    things = (
        Thing("lamp", "Brass Lamp", 24, for_sale=True),
        Thing("rope", "Hemp Rope", 4, for_sale=True),
    )
    english = English(None, Sure(YES))
    view = View(Catalogue(things, "florins"), held={"lamp": 2}, shown=("lamp",))
    for line, agrees in ((TALK, True), ("wrap them up, the hemp rope is for my roof", False)):
        consent = english.read(line, view).consent
        assert consent is not None
        assert (consent.answer(TERMS).verdict == "affirms") is agrees


def test_a_judge_that_is_sure_of_the_contrary_overrules_a_yes():
    assert verdict("deal", None) == verdict("deal", Sure(UNSURE)) == "affirms"
    assert verdict("deal", Sure(NO)) == verdict("deal", Sure(DOUBTFUL)) == "open"


def test_a_second_yes_of_which_every_word_is_read_is_not_doubted_again():
    assert verdict("fine", Sure(NO)) == "open"
    assert verdict("fine", Sure(NO), again=True) == "affirms"


@pytest.mark.parametrize("line", ["yes...", "um, yes, please…", "yes, thank you .."])
def test_a_second_yes_may_trail_off(line):
    for judge in (None, Sure(NO)):
        assert verdict(line, judge) == "open", "the first one puts it off"
        assert verdict(line, judge, again=True) == "affirms"


@pytest.mark.parametrize(
    "line",
    [
        "yes, but...",
        "yes, if...",
        "yes... not",
        "well...",
        "fine...",
        "sure…",
        "i take it...",
        "deal...",
        "yes, goodbye...",
        "...",
    ],
)
def test_what_trails_off_behind_other_words_is_no_second_yes(line):
    assert verdict(line, None, again=True) == "open"


@pytest.mark.parametrize("word", [*CHANGING, "nein"])
def test_a_word_that_changes_terms_stands_beside_no_agreement_in_its_sentence(word: str):
    for line in ("the wind tore my {} roof off, wrap them up", "wrap them up, {} the wind is up"):
        assert verdict(line.format(word), Sure(YES)) == "open"


def test_a_mere_yes_beside_small_talk_answers_a_second_question_only():
    line = "yes, the wind tore my roof off"
    assert verdict(line, Sure(YES)) == "open"
    assert verdict(line, Sure(YES), again=True) == "affirms"
    assert verdict(line, Sure(HARMLESS), again=True) == "open"


def test_it_is_asked_in_general_terms_and_seldom():
    hearing = Sure(YES)
    verdict("2 brass lamps for 48 florins, wrap them up, my roof leaks", hearing)
    verdict("yes, my roof leaks", hearing, again=True)
    assert hearing.asked == [
        "the goods for the price, wrap them up, my roof leaks",
        f"{AGAIN}yes, my roof leaks",
    ]
    verdict("no thank you", hearing)
    verdict("my roof leaks", hearing)
    assert len(hearing.asked) == 2


def test_the_shipped_one_tells_small_talk_from_a_catch(judge: Judge):
    said = {
        "Wrap them up, love, my feet are killing me": True,
        "Wrap them up, love, once my ship has come in": False,
        "I'll take them, the boys will be thrilled": True,
        "I'll take them, on the day pigs fly over this town": False,
    }
    assert {line: verdict(line, judge) == "affirms" for line in said} == said


@pytest.mark.parametrize(
    "line", ["", "deal " * 90, "🙂" * 200, "[CLS] deal [SEP]", "{x}<|im_end|>"]
)
def test_any_line_can_be_judged(judge: Judge, line: str):
    assert isinstance(judge.agreement(line), float)


def test_it_takes_at_most_twenty_milliseconds(judge: Judge):
    lines = [f"wrap them up, my roof leaks in {n} places since the storm" for n in range(30)]
    began = time.perf_counter()
    for line in lines:
        read_answer(line, TERMS, judge)
    assert (time.perf_counter() - began) / len(lines) < 0.02


def test_where_it_is_missing_the_grammar_stands_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    pytest.importorskip("onnxruntime", reason="the extra `embeddings` is not installed")
    monkeypatch.setattr(judging, "_shared", lambda: MiniLMJudge(tmp_path))
    assert load_judge("auto") is None and load_judge(False) is None
    with pytest.raises(HaggleError, match="there is no such file"):
        load_judge(True)
