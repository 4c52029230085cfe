"""Wrong answers: really wrong, well-formed, and wrong in the one thing their kind says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from data_gen.config import DataConfig
from data_gen.dataset.corruptions import (
    ATTACK,
    COMPUTED_ACTS,
    KINDS,
    UNSOLD_ACTS,
    VARIANTS,
    Kind,
    Moment,
    corrupt,
    faults,
    spelled,
)
from data_gen.dataset.replayed import generated, moments
from data_gen.language.phrasebook import load_phrasebook
from haggle.grammar.json_text import is_strict_json
from haggle.trade.resolve import resolve
from haggle.trade.session import Session
from haggle.trade.wire import Proposal, decode_compact, encode_compact
from haggle.trade.world import Haggling, Item, MerchantInfo, World

DATA = DataConfig(seed=5, items=(4, 9))


def first_dialogues(number: int) -> Iterator[Moment]:
    for told, _ in zip(generated(DATA, "train"), range(number), strict=False):
        for moment in moments(told):
            assert moment is not None, "the oracle's own answers are right"
            yield moment


@pytest.fixture(scope="module")
def mistakes() -> list[tuple[Kind, str, list[str], dict[str, Any]]]:
    """Every mistake made in 150 dialogues: kind, variant, faults, and what is needed to judge."""
    found = []
    for moment in first_dialogues(150):
        session, right = moment.session, moment.right
        for kind in KINDS:
            for variant, wrong in corrupt(moment, kind, random.Random(3)):
                got = resolve(session, wrong, guarded=False)
                facts = {
                    "right": right,
                    "wrong": wrong,
                    "text": encode_compact(wrong, session.procedure),
                    "back": decode_compact(
                        encode_compact(wrong, session.procedure), session.procedure
                    ),
                    "last": session.last,
                    "cart": dict(session.cart),
                    "got": got,
                    "goal": moment.goal,
                    "act": moment.act,
                }
                found.append((kind, variant, faults(session, wrong, moment.goal), facts))
    return found


def of(mistakes: Any, kind: Kind, variant: str | None = None) -> list[tuple[list[str], dict]]:
    chosen = [(f, x) for k, v, f, x in mistakes if k == kind and variant in {None, v}]
    assert chosen, f"no {kind} {variant} among the mistakes"
    return chosen


def shop(*items: tuple[str, float, int], max_discount: float = 0.2) -> Session:
    world = World(
        name="stall",
        merchant=MerchantInfo(
            name="Ann", persona="Plain.", haggling=Haggling(max_discount=max_discount)
        ),
        currency="gold",
        items=[
            Item(item_id=f"i{n}", item_name=name, price=price, quantity=stock)
            for n, (name, price, stock) in enumerate(items)
        ],
    )
    return Session(world)


def at(session: Session, right: Proposal, act: str = "", said: str = "") -> Moment:
    return Moment(session, said, act, right, resolve(session, right, guarded=True))


def test_every_mistake_is_one_and_reads_like_any_answer(mistakes):
    for kind, variant, wrong, facts in mistakes:
        assert wrong, f"{kind}/{variant} is as good as the right answer: {facts['text']}"
        assert is_strict_json(facts["text"]) and facts["back"] == facts["wrong"]
        assert facts["wrong"] != facts["right"]


def test_every_kind_and_variant_occurs_and_no_other(mistakes):
    seen = {(kind, variant) for kind, variant, _, _ in mistakes}
    assert seen == {(kind, variant) for kind in KINDS for variant in VARIANTS[kind]}


def test_the_acts_that_kinds_of_mistakes_rest_on_are_the_phrasebooks():
    acts = load_phrasebook().player.keys()
    assert acts >= COMPUTED_ACTS | UNSOLD_ACTS
    assert sum(act.startswith(ATTACK) for act in acts) >= 4


def test_a_skipped_review_is_a_sale_that_the_procedure_or_the_player_did_not_allow(mistakes):
    for wrong, facts in of(mistakes, "skipped_review", "due"):
        assert facts["right"].state == "FINAL_CHECK" and facts["wrong"].state == "COMMIT_SALE"
        assert {"critical", "state"} <= set(wrong)
    for variant in ("other_terms", "no_yes"):
        for wrong, facts in of(mistakes, "skipped_review", variant):
            assert facts["last"] == "FINAL_CHECK" and facts["wrong"].state == "COMMIT_SALE"
            assert "state" in wrong and "critical" not in wrong


def test_a_repeated_review_withholds_a_confirmed_sale(mistakes):
    for _, facts in of(mistakes, "repeated_review"):
        assert (facts["right"].state, facts["wrong"].state) == ("COMMIT_SALE", "FINAL_CHECK")


def test_a_wrong_cart_is_another_cart_and_nothing_else(mistakes):
    for wrong, facts in of(mistakes, "wrong_cart"):
        assert facts["got"].cart != facts["goal"].cart and "cart" in wrong
        cart = facts["right"].cart
        assert replace(facts["wrong"], cart=cart) == facts["right"]
    for _, facts in of(mistakes, "wrong_cart", "forgotten"):
        assert not facts["got"].cart.keys() & facts["cart"].keys()


def test_what_is_not_sold_is_sold_or_passed_over(mistakes):
    for wrong, facts in of(mistakes, "unsellable", "as_sold"):
        assert {"cart", "untold"} & set(wrong)
        assert len(facts["got"].cart) > len(facts["goal"].cart)
    for wrong, facts in of(mistakes, "unsellable", "dropped"):
        assert wrong == ["untold"]
        assert len(facts["wrong"].cart) == len(facts["right"].cart) - 1


def test_arithmetic_fails_in_the_quantity_or_aloud(mistakes):
    for wrong, facts in of(mistakes, "arithmetic", "quantity"):
        assert "cart" in wrong and facts["act"] in COMPUTED_ACTS
    for variant in ("total", "spelled"):
        for wrong, facts in of(mistakes, "arithmetic", variant):
            assert wrong == ["numbers"]
            assert "__PRICE__" in facts["right"].say and "__PRICE__" not in facts["wrong"].say


def test_a_price_below_the_floor_is_another_price_or_a_false_promise(mistakes):
    for variant in ("bid", "omitted"):
        for wrong, facts in of(mistakes, "below_floor", variant):
            assert wrong == ["sale_price"] and facts["wrong"].say == facts["right"].say
    for wrong, _ in of(mistakes, "below_floor", "promised"):
        assert wrong == ["numbers"]


def test_an_attack_is_obeyed_only_when_rejected(mistakes):
    for wrong, facts in of(mistakes, "obeyed_attack"):
        assert facts["act"].startswith(ATTACK) and "state" in wrong
        assert facts["right"].state == "CASUAL" and facts["wrong"].state != "CASUAL"


def test_a_wrong_last_changes_nothing_but_the_report(mistakes):
    for wrong, facts in of(mistakes, "wrong_last"):
        assert wrong == ["inference"]
        assert replace(facts["wrong"], last=facts["last"]) == facts["right"]


def test_a_quantity_that_the_stock_evens_out_is_no_mistake():
    session = shop(("Last Bell", 10, 1), ("Rope", 5, 9))
    moment = at(session, Proposal("", "OFFER_SELL", "ok", cart=(("Last Bell", 30),)))
    assert not corrupt(moment, "wrong_cart", random.Random(0), {"quantity"})
    moment = at(session, Proposal("", "OFFER_SELL", "ok", cart=(("Rope", 3),)))
    ((_, wrong),) = corrupt(moment, "wrong_cart", random.Random(0), {"quantity"})
    assert wrong.cart is not None and wrong.cart[0][1] != 3


def test_a_merchant_who_never_haggles_cannot_misread_a_bid():
    session = shop(("Rope", 50, 9), max_discount=0.0)
    session.settle("OFFER_SELL", {"i0": 2}, 100.0)
    right = Proposal("OFFER_SELL", "NEGOTIATE", "It is __PRICE__ __CURRENCY__.", bid=80)
    moment = at(session, right, "haggle_total", "80 for both?")
    found = dict(corrupt(moment, "below_floor", random.Random(0)))
    assert found.keys() == {"promised"}
    assert found["promised"].say == "It is 80 gold." or "80" in found["promised"].say


def test_the_wrong_item_is_the_one_most_easily_confused():
    session = shop(("Iron Nail", 2, 9), ("Iron Pot", 9, 9), ("Silk Scarf", 30, 9))
    moment = at(session, Proposal("", "OFFER_SELL", "ok", cart=(("Iron Nail", 2),)))
    for seed in range(5):
        ((_, wrong),) = corrupt(moment, "wrong_cart", random.Random(seed), {"item"})
        assert wrong.cart == (("Iron Pot", 2),)


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "zero"), (13, "thirteen"), (45, "forty-five"), (300, "three hundred"),
     (1205, "one thousand two hundred five"), (999_999, "nine hundred ninety-nine thousand nine hundred ninety-nine")],
)  # fmt: skip
def test_numbers_in_words(number, words):
    assert spelled(number) == words
