"""What a grammar forces, and what is left of it behind a text."""

from __future__ import annotations

import re

import pytest

from haggle.grammar.forced import DONE, after, forced, is_free
from haggle.grammar.nodes import REGEX, render
from haggle.grammar.values import Choice, Either, Field, Fields, Items, Label, Row, Spoken, Whole
from haggle.grammar.values import texts as to_node

NAMES = Label(("Sharp Axe", "Sharp Knife", "Sœur's Salve"))
CART = Items(Row((NAMES, Either((Whole(2), Label(("all",)))))), 0, 3)
ANSWER = to_node(
    Fields(
        (
            Field("state", Label(("CASUAL", "OFFER_SELL"))),
            Choice(((), (Field("cart", CART),))),
            Field("say", Spoken()),
        )
    ),
    True,
)
ANSWERS = (
    '{"state":"CASUAL","say":"Hello, friend."}',
    '{"state":"OFFER_SELL","cart":[],"say":"x"}',
    '{"state":"OFFER_SELL","cart":[["Sharp Axe",2],["Sœur\'s Salve","all"]],"say":"Yes."}',
)


def left(text: str):
    rest = after(ANSWER, text)
    assert rest is not None
    return rest


@pytest.mark.parametrize(
    ("said", "follows"),
    [
        ("", '{"state":"'),
        ('{"state":"O', 'FFER_SELL","'),
        ('{"state":"CASUAL","c', 'art":['),
        ('{"state":"CASUAL","cart":[["Sh', "arp "),
        ('{"state":"CASUAL","cart":[["Sharp A', 'xe",'),
        ('{"state":"CASUAL","cart":[["Sharp Axe",12', "]"),
        ('{"state":"CASUAL","cart":[["Sharp Axe",1', ""),
        ('{"state":"CASUAL","cart":[]', ',"say":"'),
        ('{"state":"CASUAL","say":"Well"', "}"),
    ],
)
def test_what_all_answers_share_is_forced(said, follows):
    assert forced(left(said))[0] == follows


@pytest.mark.parametrize("answer", ANSWERS)
def test_forced_texts_and_what_is_chosen_make_up_the_answer(answer):
    grammar, text = ANSWER, ""
    while grammar != DONE:
        given, grammar = forced(grammar)
        text += given
        if grammar != DONE:
            text += answer[len(text)]
            grammar = left(text)
    assert text == answer


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_is_left_behind_a_text_are_the_ends_of_its_answers(answer):
    for size in range(len(answer)):
        rest = re.compile(render(left(answer[:size]), REGEX, {}))
        assert rest.fullmatch(answer[size:])
        assert not rest.fullmatch(answer[size:] + "x")


def test_no_answer_begins_otherwise():
    assert after(ANSWER, '{"state":"END') is None
    assert after(ANSWER, '{"state":"CASUAL","say":"a\\') is None
    assert after(ANSWER, ANSWERS[0] + "}") is None


def test_free_words_are_told_from_choices():
    assert is_free(left('{"state":"CASUAL","say":"He'))
    assert not is_free(left('{"state":"'))
    assert not is_free(left('{"state":"CASUAL","cart":[["'))


def test_a_line_has_its_longest_even_when_begun():
    assert after(ANSWER, '{"state":"CASUAL","say":"' + "a" * 240) is not None
    assert after(ANSWER, '{"state":"CASUAL","say":"' + "a" * 241) is None
