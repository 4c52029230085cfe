"""From a proposal to an answer: the ledger decides, and says what it changed."""

from __future__ import annotations

import pytest

from haggle.trade.lines import lines
from haggle.trade.procedure import load_procedure
from haggle.trade.world import Item, World


def test_every_state_has_a_safe_line_without_a_number():
    procedure = load_procedure()
    assert set(lines().safe) == set(procedure.states)
    assert not any(c.isdigit() for line in lines().safe.values() for c in line)


def test_more_than_the_stock_is_capped_and_said(visit):
    customer = visit()
    turn = customer.offer(["Sharp Axe", 50])
    assert customer.session.cart == {"axe": 3} and customer.session.sale_price == 390
    assert (
        turn.response.npc_dialogue == "3 Sharp Axes for 390 gold. I have only 3 of the Sharp Axe."
    )
    assert turn.failed == []


def test_what_is_not_sold_is_left_out_and_said(visit):
    customer = visit()
    turn = customer.offer(["Local Map", 1], ["?moon cheese", 2], ["Elemental Wand", 1])
    assert customer.session.cart == {"map": 1}
    said = turn.response.npc_dialogue
    assert "I do not sell moon cheese." in said and "I do not sell Elemental Wand." in said


def test_an_order_of_nothing_that_is_sold_is_no_offer(visit):
    customer = visit()
    turn = customer.offer(["?moon cheese", 2])
    assert turn.state == "CASUAL" and turn.response.npc_dialogue == "I do not sell moon cheese."
    assert turn.interventions == ["empty_cart"] and customer.session.cart == {}


def test_asking_for_what_is_not_sold_keeps_the_cart(visit):
    customer = visit()
    customer.offer(["Sharp Axe", 1])
    turn = customer.offer(["?moon cheese", 2])
    assert turn.state == "OFFER_SELL" and customer.session.cart == {"axe": 1}


def test_cancelling_everything_empties_the_counter(visit):
    for fields in ({"state": "CASUAL", "cart": []}, {"state": "OFFER_SELL", "cart": []}):
        customer = visit()
        customer.offer(["Sharp Axe", 1])
        turn = customer.turn(**fields)
        assert turn.state == "CASUAL" and turn.cart == {} == customer.session.cart
        assert customer.session.sale_price is None


def test_sold_goods_are_gone_and_what_is_left_is_still_sold(visit):
    customer = visit()
    customer.offer(["Sharp Axe", "all"], ["Mana Potion", 2])
    customer.review()
    customer.turn("COMMIT_SALE", "Sold for __PRICE__.")
    turn = customer.offer(["Sharp Axe", 1], ["Mana Potion", 9])
    assert customer.session.cart == {"potion": 3}
    assert "The Sharp Axe is sold out." in turn.response.npc_dialogue
    assert "I have only 3 of the Mana Potion." in turn.response.npc_dialogue


def test_an_empty_shop_says_so(visit):
    world = visit().session.world
    bare = World(
        name="bare", merchant=world.merchant, currency="gold",
        items=[Item(item_id="map", item_name="Local Map", price=60, quantity=1)],
    )  # fmt: skip
    customer = visit(world=bare)
    customer.offer(["Local Map", 1])
    customer.review()
    customer.turn("COMMIT_SALE")
    turn = customer.turn("SHOW_ITEMS", "Look: __ITEMS__", show=["Local Map"])
    assert turn.state == "CASUAL" and turn.failed == []
    assert turn.response.npc_dialogue == lines().notes["nothing"]


def test_showing_only_what_is_not_sold_shows_the_shelves_instead(visit):
    turn = visit().turn("SHOW_ITEMS", "See: __PRICES__.", show=["Elemental Wand", "?moon"])
    assert turn.interventions == ["nothing_shown"]
    assert turn.response.npc_dialogue.startswith(
        "See: Sharp Axe for 130 gold, Mana Potion for 60 gold"
    )


def haggled(visit, *lines: list, bid: int, world=None):
    """A customer who has bid for these lines."""
    customer = visit() if world is None else visit(world=world)
    customer.offer(*lines)
    customer.turn("NEGOTIATE", "__PRICE__.", bid=bid)
    return customer


def test_the_haggled_price_stays_through_the_review_and_the_sale(visit):
    customer = haggled(visit, ["Sharp Axe", 2], bid=230)
    assert customer.session.sale_price == 245
    assert customer.review().response.context_details.sale_price == 245
    customer.turn("COMMIT_SALE", "Sold.", player="yes")
    assert customer.session.sales[0].price == 245
    customer.offer(["Sharp Axe", 1])
    assert customer.session.sale_price == 130, "the deal went with the sale"


def test_a_discount_holds_for_its_goods_when_the_order_changes(visit):
    customer = haggled(visit, ["Sharp Axe", 2], bid=230)  # 245 of 260
    said = customer.offer(["Sharp Axe", 2], ["Local Map", 1]).response
    assert customer.session.sale_price == 305 and "305 gold" in said.npc_dialogue
    assert said.context_details and said.context_details.original_price == 320
    customer.offer(["Sharp Axe", 3])
    assert customer.session.sale_price == 375
    customer.offer(["Sharp Axe", 1])
    assert customer.session.sale_price == 123  # 122.5, rounded up
    customer.offer(["Local Map", 1])
    assert customer.session.sale_price == 60
    customer.offer(["Sharp Axe", 2])
    assert customer.session.sale_price == 245, "in and out again it is the same, and no less"


def test_a_later_bid_makes_a_deal_for_all_that_is_in_the_cart(visit):
    customer = haggled(visit, ["Sharp Axe", 2], bid=230)
    customer.offer(["Sharp Axe", 2], ["Local Map", 1])
    customer.turn("NEGOTIATE", "__PRICE__.", bid=295)
    assert customer.session.sale_price == 295
    customer.offer(["Local Map", 1])
    assert customer.session.sale_price == 56  # 295 / 320 of 60, rounded up


def test_a_bid_that_moves_nothing_leaves_the_deal_as_it_was(visit):
    customer = haggled(visit, ["Sharp Axe", 2], bid=230)
    customer.offer(["Sharp Axe", 1])
    customer.turn("NEGOTIATE", "__PRICE__.", bid=1)
    customer.offer(["Sharp Axe", 2])
    assert customer.session.sale_price == 245


def test_an_order_called_off_takes_its_discount_along(visit):
    customer = haggled(visit, ["Sharp Axe", 2], bid=230)
    customer.turn("CASUAL", "All put back.", cart=[])
    customer.offer(["Sharp Axe", 2])
    assert customer.session.sale_price == 260


def test_a_shop_that_keeps_no_discount_starts_anew_from_the_list(visit, stall):
    haggling = stall.merchant.haggling.model_copy(update={"keep_discount": False})
    merchant = stall.merchant.model_copy(update={"haggling": haggling})
    strict = stall.model_copy(update={"merchant": merchant})
    customer = haggled(visit, ["Sharp Axe", 2], bid=230, world=strict)
    assert customer.session.sale_price == 245
    customer.offer(["Sharp Axe", 1])
    assert customer.session.sale_price == 130


def test_a_bid_to_an_empty_counter_moves_nothing(visit):
    turn = visit("off").turn("NEGOTIATE", "Hm, __PRICE__?", bid=1)
    assert "transition" in turn.failed and turn.cart == {}


@pytest.mark.parametrize("guard", ["off", "state"])
def test_compact_answers_get_their_numbers_from_code_whatever_the_guard(visit, guard):
    details = visit(guard).offer(["Sturdy Rope (20m)", 3]).response.context_details
    assert (details.original_price, details.items[0].price) == (22.5, 7.5)


def full(state: str, items: list[dict], say: str = "Well.", **totals: object) -> dict:
    return {
        "last_trade_context": "",
        "context_type": "TRADE",
        "context_details": {"context_subtype": state, "items": items, **totals},
        "npc_dialogue": say,
    }


AXES = [{"item_id": "axe", "item_name": "Sharp Axe", "quantity": 2, "price": 130}]


def tell(customer, record):
    from haggle.grammar.json_text import to_json

    return customer.text(to_json(record), "two sharp axes, please")


def test_without_guard_a_full_answer_is_taken_at_its_word_and_judged(visit):
    customer = visit("off", "astp")
    turn = tell(customer, full("OFFER_SELL", AXES, "250!", original_price=250, sale_price=250))
    assert turn.response.context_details.original_price == 250
    assert {"price"} <= set(turn.failed)
    fake = [{"item_id": "egg", "item_name": "Dragon Egg", "quantity": 1, "price": 9}]
    turn = tell(visit("off", "astp"), full("OFFER_SELL", fake, original_price=9, sale_price=9))
    assert "sellable" in turn.failed and turn.cart == {}


def test_under_guard_a_full_answer_gets_its_items_and_totals_from_the_ledger(visit):
    customer = visit("state", "astp")
    turn = tell(customer, full("OFFER_SELL", AXES, "250!", original_price=250, sale_price=250))
    details = turn.response.context_details
    assert (details.original_price, details.sale_price) == (260, 260)
    assert turn.failed == [] and "260" in turn.response.npc_dialogue


def test_the_papers_placeholder_is_filled_in_offers_only(visit):
    record = full(
        "OFFER_SELL", AXES, "__PRICE__ gold.", original_price="__PRICE__", sale_price="__PRICE__"
    )
    customer = visit("off", "astp")
    turn = tell(customer, record)
    assert turn.response.npc_dialogue == "260 gold." and turn.failed == []
    record = full("FINAL_CHECK", AXES, "__PRICE__?", original_price=260, sale_price=260)
    assert tell(customer, record).response.npc_dialogue == "__PRICE__?"
    ablated = tell(visit("off", "astp-ppp"), full("OFFER_SELL", AXES, "__PRICE__ gold."))
    assert ablated.response.npc_dialogue == "__PRICE__ gold."


@pytest.mark.parametrize("state", ["SHOW_ITEMS", "OFFER_SELL", "FINAL_CHECK"])
@pytest.mark.parametrize("guard", ["off", "state"])
def test_a_full_answer_without_items_is_still_a_turn(visit, guard, state):
    turn = tell(visit(guard, "astp"), full(state, []))
    assert turn.state in load_procedure().states and turn.response.npc_dialogue
    if guard == "off":
        assert turn.state == state
