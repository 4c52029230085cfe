"""What is told of goods: the fact that answers, the description, no prices, and never too much."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from haggle.core.config import read_text
from haggle.language.english.linker import English
from haggle.trade.knowledge import asks_about_goods, speaks_of_price
from haggle.trade.session import Session
from haggle.trade.telling import MAX_TOLD, told
from haggle.trade.world import Item

QUESTIONS = Path(__file__).with_name("questions.yaml")


def goods(description: str = "", *facts: str, name: str = "Oil Lamp") -> Item:
    return Item(item_id="it", item_name=name, description=description, facts=list(facts))


def questions() -> list[tuple[Item, str, str]]:
    """Item, question and the fact that answers it."""
    return [
        (goods(entry["description"], *entry["facts"], name=entry["name"]), question, fact)
        for entry in yaml.safe_load(read_text(QUESTIONS))
        for fact, asked in entry["facts"].items()
        for question in asked
    ]


def test_most_questions_find_the_fact_that_answers_them():
    asked = questions()
    missed = [question for item, question, fact in asked if told(item, question) != fact]
    assert len(asked) == 74 and len({item.item_name for item, _, _ in asked}) == 12
    assert len(missed) <= 2, missed


def test_without_a_fact_that_fits_the_description_is_told():
    lamp = goods("A tin lamp. It stands low.", "It burns whale oil.")
    assert told(lamp, "does it sing?") == "A tin lamp. It stands low."
    assert told(lamp, "which oil does it burn?") == "It burns whale oil."


def test_of_goods_without_a_description_the_facts_are_told():
    assert told(goods("", "It is tin.", "It is old."), "tell me about the lamp") == "It is tin. It is old."  # fmt: skip


def test_of_goods_that_nothing_is_known_of_nothing_is_told():
    assert told(goods(), "where is the lamp from?") == ""
    assert told(goods("For 9 gold it is yours."), "what is it?") == ""


def test_the_name_of_the_goods_is_no_answer():
    lamp = goods("A low lamp.", "An oil lamp like this hung in every inn.", "It weighs little.")
    assert told(lamp, "how heavy is the oil lamp?") == "It weighs little."


@pytest.mark.parametrize(
    "question", ["", "?", "(", "((((*** \\", "x" * 9999, "lamp " * 500, "\x00"]
)
def test_any_question_gets_an_answer(question):
    assert told(goods("A tin lamp.", "It is old."), question) in {"A tin lamp.", "It is old."}


@pytest.mark.parametrize("name", ["***", "(a", "Lamp (", "12", "a|b"])
def test_any_name_is_read(name):
    assert told(goods("A lamp.", name=name), "what is a lamp?") == "A lamp."


SENTENCE = "It hangs from a hook in the low beam of the long kitchen ceiling. "


@pytest.mark.parametrize(
    "text",
    [SENTENCE * 150, "word " * 2000, "x" * 10_000, "one. " + "x" * 9_995, "a, " * 3_333],
    ids=["sentences", "words", "letters", "short first", "commas"],
)
def test_a_long_description_is_told_in_part(text):
    said = told(goods(text), "tell me about it")
    assert 0 < len(said) <= MAX_TOLD
    assert text.startswith(said.removesuffix("..."))
    if ". " in text:
        assert said.endswith(".") and not said.endswith("...")
    assert len(told(goods("", text[:1000]), "tell me about it")) <= MAX_TOLD


@pytest.mark.parametrize(
    "sentence",
    [
        "It costs 40.",
        "Forty gold would buy it elsewhere.",
        "Last week it went for 99 crowns.",
        "Yours for 40!",
        "They are 12.50 each.",
        "Half price today.",
        "A fine lamp at $5.",
        "It is worth two hundred to a collector.",
        "Only 7 apiece.",
        "I offer 10% off.",
        "My father paid 300 for it.",
        "You get it for ten florins.",
    ],
)
def test_what_looks_like_a_price_is_never_told(sentence):
    lamp = goods(f"A tin lamp. {sentence} It hangs low.", sentence, "It is old.")
    assert speaks_of_price(sentence)
    assert told(lamp, f"what about this: {sentence}", currency="crowns") != sentence
    assert told(lamp, "what is it?") == "A tin lamp. It hangs low."


@pytest.mark.parametrize(
    "sentence",
    [
        "It burns for 6 hours.",
        "The rope is 20 metres long.",
        "One filling lasts all night.",
        "The rim is gold and the handle is silver.",
        "Three smiths worked on it.",
        "It weighs 1.25 kilos.",
        "It was cheap work but honest.",
        "It runs two shifts on a charge.",
    ],
)
def test_other_numbers_are_told(sentence):
    assert not speaks_of_price(sentence, "crowns")
    assert told(goods("", sentence), "what is it?", currency="crowns") == sentence


def test_a_number_beside_the_shops_own_money_is_a_price():
    lamp = goods("It once bought 9 acorns. It is tin.")
    assert told(lamp, "what is it?", currency="acorn") == "It is tin."
    assert told(lamp, "what is it?", currency="shells").startswith("It once")


def asks(stall, line: str) -> bool:
    session = Session(stall, linker=English())
    return asks_about_goods(line, session.read(line))


@pytest.mark.parametrize(
    "line",
    [
        "what's the axe made of?",
        "Where does the rope come from?",
        "is the rope waterproof",
        "how long does the potion keep?",
        "tell me about the map",
        "is the mana potion safe for kids?",
        "who forged that axe",
        "how much does the axe weigh?",
        "is it sharp?",
        "where are they from?",
        "does the wand work?",
        "is this thing cursed?",
        "what is the map of?",
        "any scratches on the axe?",
        "will the rope hold me?",
        "I'd like to know how old the map is",
    ],
)
def test_questions_on_the_nature_of_goods(stall, line):
    assert asks(stall, line)


@pytest.mark.parametrize(
    "line",
    [
        "how much is the axe?",
        "what does the rope cost?",
        "do you have any axes?",
        "how many potions have you got?",
        "is the map still available?",
        "what's the total?",
        "how much for two axes and the map?",
        "can I have two ropes?",
        "I'll take the axe",
        "two potions please",
        "would you take 50 for the map?",
        "what do you sell?",
        "where are you from?",
        "how are you?",
        "is the road to the north safe?",
        "what's your name?",
        "is that all right?",
        "yes",
        "goodbye",
        "any chance of a discount on the rope?",
        "could you do the axe cheaper?",
        "got any axes left?",
        "what comes to all together?",
        "make it three axes",
        "is 50 gold all right for the axe?",
        "",
    ],
)
def test_other_lines_are_no_such_questions(stall, line):
    assert not asks(stall, line)


def test_what_answers_is_told_again_and_a_dropped_g_is_none():
    lamp = Item(
        item_id="lamp", item_name="Lamp", price=3, quantity=2,
        description="A brass lamp. It needs winding each morning.",
        facts=["Children under six must not use it."],
    )  # fmt: skip
    assert told(lamp, "does it want windin'?") == "It needs winding each morning."
    again = told(lamp, "is it safe for a small child?", heard=lambda text: "six" in text)
    assert again == "Children under six must not use it."
    assert told(lamp, "my boy is four, is it ok for him?") == "Children under six must not use it."


def test_a_question_about_a_difference_is_one_about_goods(stall):
    line = "what's the difference between the two axes you got?"
    assert asks_about_goods(line, Session(stall).read(line))
