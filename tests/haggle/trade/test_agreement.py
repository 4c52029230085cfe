"""Answers held against the right ones: labels count, words do not."""

from __future__ import annotations

import pytest

from haggle.grammar.json_text import DecodeError
from haggle.trade.agreement import agreement

OFFER = '{"last":"","state":"OFFER_SELL","cart":[["Hemp Rope",2],["?moon",1]],"say":"a"}'
BID = '{"last":"OFFER_SELL","state":"NEGOTIATE","bid":"10%","say":"a"}'
YES = '{"last":"OFFER_SELL","state":"FINAL_CHECK","say":"a"}'


@pytest.mark.parametrize("right", [OFFER, BID, YES])
def test_other_words_for_the_same_answer_agree(right):
    verdict = agreement(right, right.replace('"say":"a"', '"say":"something else"'), "")
    assert verdict.valid and verdict.last and verdict.joint
    assert verdict.cart is not False and verdict.bid is not False


@pytest.mark.parametrize(
    ("right", "old", "new", "wrong"),
    [
        (OFFER, "2]", "3]", "cart"),
        (OFFER, "Hemp Rope", "Silk Rope", "cart"),
        (OFFER, ',["?moon",1]', "", "cart"),
        (OFFER, '"last":""', '"last":"NEGOTIATE"', "last"),
        (BID, "10%", "20%", "bid"),
        (YES, "FINAL_CHECK", "COMMIT_SALE", "state"),
    ],
)
def test_what_differs_is_named(right, old, new, wrong):
    assert old in right
    verdict = agreement(right, right.replace(old, new), "")
    assert verdict.valid and getattr(verdict, wrong) is False
    assert verdict.joint == (wrong in {"last", "bid"})


def test_what_is_not_listed_may_be_worded_otherwise():
    assert agreement(
        OFFER, OFFER.replace("?moon", "?the moon").replace("Hemp Rope", "hemp rope"), ""
    ).joint


def test_the_right_cart_in_the_wrong_state_is_no_right_cart():
    other = OFFER.replace("OFFER_SELL", "CASUAL").replace('[["Hemp Rope",2],["?moon",1]]', "[]")
    assert agreement(OFFER, other, "").cart is False


def test_emptying_the_ledger_where_nothing_is_called_off_is_wrong():
    calm = '{"last":"OFFER_SELL","state":"CASUAL","say":"a"}'
    assert not agreement(calm, calm.replace('"say"', '"cart":[],"say"'), "").joint
    cleared = calm.replace('"say"', '"cart":[],"say"')
    assert (
        agreement(cleared, cleared, "").cart is True and agreement(cleared, calm, "").cart is False
    )


@pytest.mark.parametrize("answer", ["", "hello", '{"last":1}', "{", OFFER[:30]])
def test_an_unreadable_answer_agrees_in_nothing(answer):
    verdict = agreement(OFFER, answer, "")
    assert not (verdict.valid or verdict.last or verdict.state or verdict.joint)
    assert verdict.cart is False


def test_an_unreadable_right_answer_is_an_error():
    with pytest.raises(DecodeError):
        agreement("nonsense", OFFER, "")


LINE = 'cart [["Hemp Rope",2],["Tin Whistle",1]] price 9\nplayer: two more ropes'
MORE = '{"last":"OFFER_SELL","state":"OFFER_SELL","change":[["Hemp Rope","+2"]],"say":"a"}'


@pytest.mark.parametrize(
    ("other", "agrees"),
    [
        ('"change":[["Hemp Rope",4]]', True),
        ('"change":[["hemp rope","x2"]]', True),
        ('"cart":[["Tin Whistle",1],["Hemp Rope",4]]', True),
        ('"cart":[["Hemp Rope",4]]', False),
        ('"change":[["Hemp Rope",2]]', False),
        ('"change":[["Hemp Rope","+2"],["?moon",1]]', False),
        ('"change":[]', False),
    ],
)
def test_a_change_and_the_cart_it_leads_to_are_the_same(other, agrees):
    answer = MORE.replace('"change":[["Hemp Rope","+2"]]', other)
    assert agreement(MORE, answer, line=LINE).joint is agrees
    assert agreement(answer, MORE, line=LINE).joint is agrees


def test_an_order_of_nothing_that_is_sold_comes_to_no_offer():
    refusal = '{"last":"","state":"CASUAL","say":"a"}'
    order = '{"last":"","state":"OFFER_SELL","cart":[["?moon",1]],"say":"a"}'
    assert agreement(refusal, order, line="cart []\nplayer: a moon").joint
    assert not agreement(refusal, order, line=LINE).joint
    assert not agreement(refusal, OFFER, line="cart []\nplayer: a moon").joint


def test_a_change_of_another_line_is_wrong():
    """Compared without the line that was answered, both would come to an empty cart."""
    gone = '{"last":"OFFER_SELL","state":"OFFER_SELL","change":[["Hemp Rope",0]],"say":"a"}'
    assert agreement(gone, gone, LINE).joint
    assert not agreement(gone, gone.replace("Hemp Rope", "Tin Whistle"), LINE).joint
    with pytest.raises(TypeError):
        agreement(gone, gone)  # type: ignore[call-arg]
