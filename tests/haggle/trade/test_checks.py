"""The checks that guard, validator and metrics share: each catches its one fault."""

from __future__ import annotations

import pytest

from haggle.language.english.numbers import numbers_in
from haggle.trade.checks import contradicts_terms, failures, numbers_true
from haggle.trade.procedure import load_procedure
from haggle.trade.response import ContextDetails, ItemLine, MerchantResponse

PROCEDURE = load_procedure()


def offer(
    say: str = "130 gold for the Sharp Axe.",
    *,
    state: str = "OFFER_SELL",
    last: str = "",
    item: str = "axe",
    number: int = 1,
    price: float | None = 130,
    original: float | None = 130,
    sale: float | None = 130,
) -> MerchantResponse:
    names = {"axe": "Sharp Axe", "rope": "Sturdy Rope (20m)"}
    line = ItemLine(item_id=item, item_name=names.get(item, item), quantity=number, price=price)
    return MerchantResponse(
        last_trade_context=last,
        context_type="TRADE",
        context_details=ContextDetails(
            context_subtype=state, items=[line], original_price=original, sale_price=sale
        ),
        npc_dialogue=say,
    )


def chat(say: str) -> MerchantResponse:
    return MerchantResponse(context_type="CASUAL", npc_dialogue=say)


def test_a_true_offer_fails_nothing(stall):
    assert failures(stall, PROCEDURE, "", offer()) == []


@pytest.mark.parametrize(
    ("response", "last", "failed"),
    [
        (offer(state="NEGOTIATE"), "", ["transition"]),
        (offer(state="COMMIT_SALE", last="OFFER_SELL"), "OFFER_SELL", ["transition", "critical"]),
        (offer(last="NEGOTIATE"), "", ["inference"]),
        (offer("Well.", item="wand"), "", ["sellable", "stock"]),
        (offer("Well.", item="moon"), "", ["sellable"]),
        (offer("Well.", price=None), "", ["sellable", "price"]),
        (offer("Well.", price=129), "", ["sellable", "price"]),
        (offer("Well.", number=4, original=520, sale=520), "", ["stock"]),
        (offer("Well.", number=0, original=0, sale=0), "", ["stock"]),
        (offer("Well.", number=2), "", ["price", "floor"]),
        (offer("Well.", sale=103.9), "", ["floor"]),
        (offer("99 gold."), "", ["numbers"]),
    ],
)
def test_each_fault_is_named(stall, response, last, failed):
    assert failures(stall, PROCEDURE, last, response) == failed


def test_the_floor_itself_is_allowed(stall):
    assert failures(stall, PROCEDURE, "", offer("Well.", sale=104)) == []


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,200 gold", [1200]), ("1.5 or 1,5", [1.5, 1.5]), ("10% off", [10]), ("none", []),
        ("4x20m", [4, 20]), ("1,000,000", [1_000_000]), ("v1.2.3", [1, 2, 3]),
    ],
)  # fmt: skip
def test_numbers_are_found_however_written(text, numbers):
    assert numbers_in(text) == numbers


@pytest.mark.parametrize(
    "say",
    [
        "Two axes, 260 gold for 2.", "130 each, that is 260.", "I could do 230 gold.",
        "260.00 gold", "No numbers at all.", "The other one is 20m long.",
    ],
)  # fmt: skip
def test_in_a_priced_state_the_numbers_of_the_cart_are_true(stall, say):
    assert numbers_true(stall, offer(say, number=2, original=260, sale=230))


@pytest.mark.parametrize(
    "say", ["250 gold", "3 for 260", "261", "ten gold", "26 gold", "260 gold now, 5 tomorrow"]
)
def test_in_a_priced_state_any_other_number_is_untrue(stall, say):
    assert not numbers_true(stall, offer(say, number=2, original=260, sale=230))


def test_further_numbers_may_be_true_such_as_the_stock_left(stall):
    response = offer("I have only 3.", number=2, original=260, sale=260)
    assert not numbers_true(stall, response)
    assert numbers_true(stall, response, [3.0])


@pytest.mark.parametrize(
    ("say", "true"),
    [
        ("I have stood here for 40 years.", True),
        ("The Sharp Axe is 130 gold.", True),
        ("It costs 130 gold.", False),
        ("The Sharp Axe is 99 gold.", False),
        ("I paid five gold for it.", False),
        ("Twenty-ONE  Gold and no less.", False),
        ("Seventeen\ngold.", False),
        ("A stone gold as the sun, of some gold.", True),
        ("Gold 5, no less.", False),
        ("A golden age, 3 times over.", True),
    ],
)
def test_in_talk_only_sums_of_money_are_held_to_the_truth(stall, say, true):
    assert numbers_true(stall, chat(say)) is true


@pytest.mark.parametrize(
    ("player", "contradicts"),
    [
        ("yes", False), ("yes, 230 it is", False), ("2 axes, deal", False), ("deal at 200", True),
        ("yes for 12", True), ("here are 250", False), ("100% sure", False), ("200% yes", False), ("1,000 times yes", False),
        ("half now: 115", True), ("yes, my coach is at 7 o'clock", False), ("yes, it's 6:30", False),
        ("sure, closing at 5pm", False), ("yes at 7", True),
    ],
)  # fmt: skip
def test_a_yes_contradicts_the_terms_when_it_names_a_lower_number(player, contradicts):
    assert contradicts_terms(player, {"axe": 2}, 230) is contradicts
