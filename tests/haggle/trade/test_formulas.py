"""Numbers left to be worked out: `3*4` in an answer is three for each of four, and code's sum."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from haggle.grammar.json_text import DecodeError
from haggle.trade.agreement import agreement
from haggle.trade.edits import as_formulas, shortened, whole
from haggle.trade.formula import Formula
from haggle.trade.procedure import load_procedure
from haggle.trade.resolve import resolve
from haggle.trade.session import Session
from haggle.trade.wire import Proposal, decode_compact, encode_compact
from haggle.trade.world_io import named_world

PROCEDURE = load_procedure()
ROPE, LAMP = "Sturdy Rope (20m)", "Simple Lantern"


def offer(carried: str) -> str:
    return f'{{"last":"","state":"OFFER_SELL",{carried},"say":"__CART__, __PRICE__."}}'


def test_a_product_is_its_number_and_remembers_how_it_was_told():
    product = Formula("3*4")
    assert product == 12 and product + 1 == 13 and json.dumps([product]) == "[12]"
    assert product.told == "3*4"
    for twin in (copy.deepcopy(product), pickle.loads(pickle.dumps(product))):
        assert twin == 12 and twin.told == "3*4"


def test_what_is_written_is_read_again():
    text = offer(f'"cart":[["{ROPE}","2*5"],["{LAMP}",3]]')
    proposal = decode_compact(text, PROCEDURE)
    assert proposal.cart == ((ROPE, 10), (LAMP, 3))
    assert encode_compact(proposal, PROCEDURE) == text


@pytest.mark.parametrize(
    "text", ["0*3", "3*0", "3*", "*3", "2*3*4", "-2*3", "2.5*2", "1000*2", "\u00b2"]
)
def test_other_arithmetic_is_no_quantity(text):
    with pytest.raises(DecodeError, match=r"'cart', entry 1 must be a whole number or"):
        decode_compact(offer(f'"cart":[["{ROPE}","{text}"]]'), PROCEDURE)


@pytest.mark.parametrize(("step", "number"), [("2*3", 6), ("+2*3", 10), ("-1*3", 1), ("-3*3", 0)])
def test_a_change_may_be_a_product_too(step, number):
    proposal = decode_compact(offer(f'"change":[["{ROPE}","{step}"]]'), PROCEDURE)
    assert dict(whole({ROPE: 4}, proposal)) == ({ROPE: number} if number else {})


def test_the_ledger_holds_plain_numbers_and_caps_them():
    session = Session(named_world("frontier_shop"))
    stock = {item.item_name: item.quantity for item in session.world.inventory}
    cart = ((ROPE, Formula("2*2")), (LAMP, Formula("900*900")))
    resolved = resolve(session, Proposal("", "OFFER_SELL", "__CART__", cart=cart), guarded=True)
    held = {session.world.by_id[i].item_name: n for i, n in resolved.cart.items()}
    assert held == {ROPE: 4, LAMP: stock[LAMP]}
    assert all(type(number) is int for number in resolved.cart.values())


def test_a_product_agrees_with_the_number_it_comes_to():
    product = offer(f'"cart":[["{ROPE}","2*5"]]')
    assert agreement(product, offer(f'"cart":[["{ROPE}",10]]'), "").cart
    assert not agreement(product, offer(f'"cart":[["{ROPE}","2*4"]]'), "").cart


@pytest.mark.parametrize(
    ("heard", "number", "told"),
    [
        ("two ropes {R x2} for each of the five of us", 10, "2*5"),
        ("five of us, two ropes {R x2} each", 10, "2*5"),
        ("a crew of twelve {12}, 3 a head", 36, "3*12"),
        ("a pair each, seven of us", 14, "2*7"),
        ("ten ropes {R x10}", 10, 10),  # said
        ("a rope for each of the five of us", 5, 5),
        ("two for me and two for him", 4, "2+2"),
        ("two for me, three for him and five hooks {Hook x5}", 5, 5),
        ("seventeen {17} people", 34, 34),  # of numbers that nobody said
        ("two, three, twelve {12} or eighteen {18}", 36, 36),  # in more ways than one
        ("six buses with six in each", 36, "6*6"),
        ("five mine, three hers, and one for the dog", 9, 9),  # three is said once
        ("only twenty-four {24}? pretzels, as many as we are short", 16, 16),  # nobody said four
        ("a pair of ropes {Sturdy Rope (20m)} for each of the ten of us", 20, "2*10"),
        ("three ropes {R x3} more for every one of the four of us", "+12", "+3*4"),
        ("all of it", "all", "all"),
    ],
)
def test_only_what_the_line_leaves_to_be_worked_out_is_told_as_a_product(heard, number, told):
    ((_, given),) = as_formulas(((ROPE, number),), heard)
    if isinstance(given, Formula):
        assert given == number
        given = given.told
    assert given == told


def test_labels_of_a_first_order_are_told_so_too():
    session = Session(named_world("frontier_shop"))
    proposal = Proposal("", "OFFER_SELL", "__CART__", cart=((ROPE, 15),))
    told = shortened(session, "three ropes a head, five of us", proposal)
    assert '"3*5"' in encode_compact(told, PROCEDURE) and told == proposal
