"""The ledger: stock, totals and how far a merchant goes, decided by arithmetic alone."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from haggle.trade.ledger import (
    Deal,
    Note,
    bid_amount,
    counter_offer,
    floor_price,
    price_under,
    resolve_cart,
    speak_cart,
    speak_prices,
    total,
)
from haggle.trade.world import Haggling, Item, MerchantInfo, World

SAME_STALL = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
BIDS = st.one_of(
    st.none(),
    st.integers(-(10**15), 10**15),
    st.integers(0, 99).map(lambda n: f"{n}%"),
    st.integers(0, 999_999).map(lambda n: f"-{n}"),
    st.integers(0, 999_999).map(lambda n: f"{n} each"),
    st.text(max_size=8),
)


@st.composite
def counters(draw: st.DrawFn) -> tuple[World, dict[str, int], float]:
    """A shop with some way of haggling, a cart, and a price that may stand after earlier rounds."""
    prices = draw(
        st.lists(st.floats(0.01, 9999).map(lambda p: round(p, 2)), min_size=1, max_size=3)
    )
    haggling = Haggling(max_discount=draw(st.sampled_from([0, 0.05, 0.2, 0.5, 0.99])),
                        step=draw(st.sampled_from([0.01, 0.05, 1])))  # fmt: skip
    items = [
        Item(item_id=f"i{n}", item_name=f"Thing {'abc'[n]}", price=p, quantity=9)
        for n, p in enumerate(prices)
    ]
    merchant = MerchantInfo(name="M", persona="p", haggling=haggling)
    world = World(name="w", merchant=merchant, currency="gold", items=items)
    cart = {item.item_id: draw(st.integers(1, 9)) for item in items}
    low = min(floor_price(world, cart), total(world, cart))
    share = draw(st.floats(0, 1))
    return world, cart, round(low + share * (total(world, cart) - low), 2)


@given(counters(), BIDS)
def test_no_bid_moves_the_price_below_the_floor_or_up(counter, bid):
    world, cart, current = counter
    answer = counter_offer(world, cart, current, bid)
    assert min(floor_price(world, cart), current) <= answer <= current


@given(counters(), st.data())
def test_a_deal_never_sells_below_the_floor_or_above_the_list(counter, data):
    world, goods, price = counter
    cart = {i: data.draw(st.integers(1, 9)) for i in goods if data.draw(st.booleans())}
    due = price_under(world, cart, Deal(goods, price))
    assert min(floor_price(world, cart), total(world, cart)) <= due <= total(world, cart)
    assert price_under(world, goods, Deal(goods, price)) == price


@given(counters(), st.data())
def test_a_discount_reaches_no_further_than_the_goods_it_was_given_for(counter, data):
    world, goods, price = counter
    cart = {i: data.draw(st.integers(0, 9)) for i in goods}
    kept = {i: min(n, goods[i]) for i, n in cart.items()}
    fraction = 1 - price / total(world, goods)
    off = total(world, cart) - price_under(world, cart, Deal(goods, price))
    assert off <= fraction * total(world, kept) + 0.02


def test_a_deal_prices_its_own_goods_at_their_fraction_and_others_at_the_list(stall):
    deal = Deal({"axe": 2, "rope": 4}, 261)  # of 290: a tenth off
    assert price_under(stall, {"axe": 2, "rope": 4}, deal) == 261
    assert price_under(stall, {"axe": 2, "rope": 4, "map": 1}, deal) == 321
    assert price_under(stall, {"axe": 3, "rope": 4}, deal) == 261 + 130
    assert price_under(stall, {"axe": 1}, deal) == 117
    assert price_under(stall, {"rope": 1}, deal) == 7  # 6.75, rounded up to a whole coin
    assert price_under(stall, {"map": 1}, deal) == 60
    assert price_under(stall, {"axe": 2, "rope": 5}, deal) == 268.5
    assert price_under(stall, {"axe": 2, "rope": 4}, None) == 290


def test_a_shop_may_forget_discounts_when_the_order_changes(stall):
    haggling = stall.merchant.haggling.model_copy(update={"keep_discount": False})
    merchant = stall.merchant.model_copy(update={"haggling": haggling})
    strict = stall.model_copy(update={"merchant": merchant})
    assert price_under(strict, {"axe": 2}, Deal({"axe": 2}, 234)) == 260


@given(counters(), st.lists(BIDS, max_size=8))
def test_no_run_of_bids_wears_the_floor_down(counter, bids):
    world, cart, current = counter
    floor = min(floor_price(world, cart), current)
    for bid in bids:
        lower = counter_offer(world, cart, current, bid)
        assert floor <= lower <= current
        current = lower


@given(counters(), BIDS)
def test_who_does_not_haggle_never_gives_way(counter, bid):
    world, cart, _ = counter
    firm = world.merchant.model_copy(update={"haggling": Haggling(max_discount=0)})
    world = world.model_copy(update={"merchant": firm})
    price = total(world, cart)
    assert counter_offer(world, cart, price, bid) == price


def test_a_bid_is_met_half_way_and_taken_when_close(stall):
    cart = {"axe": 2}  # list 260, floor 208, step 13
    assert counter_offer(stall, cart, 260, 220) == 240
    assert counter_offer(stall, cart, 260, 250) == 250
    assert counter_offer(stall, cart, 260, 100) == 234, "half-way to the floor, not to the bid"
    assert counter_offer(stall, cart, 260, 80) == 260, "absurdly low: below a third"
    assert counter_offer(stall, cart, 260, None) == 247
    assert counter_offer(stall, cart, 210, None) == 208
    assert counter_offer(stall, cart, 260, 999) == 260, "nobody is charged more than was asked"


@pytest.mark.parametrize(
    ("bid", "amount"),
    [(None, None), (90, 90), ("10%", 234), ("-30", 230), ("100 each", 200), ("cheap", None),
     ("100%", None), ("", None)],
)  # fmt: skip
def test_what_a_bid_stands_for(bid, amount):
    assert bid_amount(bid, 260, 2) == amount


def test_the_floor_is_a_whole_coin_rounded_up(stall):
    assert floor_price(stall, {"rope": 3}) == 18  # 22.5 less 20%
    assert floor_price(stall, {"rope": 1}) == 6
    assert floor_price(stall, {"axe": 1, "potion": 1}) == 152


LINES = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "Sharp Axe",
                "sharp  axe",
                "?Sharp Axe",
                "Mana Potion",
                "Elemental Wand",
                "moon",
                "?",
                "",
            ]
        ),
        st.one_of(st.integers(-(10**9), 10**15), st.sampled_from(["all", "half"])),
    )
)


@SAME_STALL
@given(LINES)
def test_a_cart_holds_only_what_is_sold_and_in_stock(stall, lines):
    cart, notes = resolve_cart(stall, lines)
    assert all(1 <= n <= stall.by_id[i].quantity for i, n in cart.items())
    for note in notes:
        assert note.kind in {"capped", "not_sold", "sold_out"} and note.name


@pytest.mark.parametrize(
    ("lines", "cart", "notes"),
    [
        ([("Sharp Axe", 2)], {"axe": 2}, ()),
        ([("SHARP-AXE", 1), ("sharp axe", 2)], {"axe": 2}, ()),
        ([("?axes", 2)], {"axe": 2}, ()),
        ([("Sharp Axe", "all")], {"axe": 3}, ()),
        ([("Sharp Axe", "half")], {"axe": 2}, ()),
        ([("Sharp Axe", 9)], {"axe": 3}, (Note("capped", "Sharp Axe", 3),)),
        ([("Sharp Axe", "all"), ("Sharp Axe", 1)], {"axe": 1}, ()),
        ([("?dragon egg", 1)], {}, (Note("not_sold", "dragon egg"),)),
        ([("Elemental Wand", 1)], {}, (Note("not_sold", "Elemental Wand"),)),
        ([("?sharp axe", 1)], {"axe": 1}, ()),
        ([("Sharp Axe", 0), ("Mana Potion", -2)], {}, ()),
        ([("?", 1)], {}, ()),
    ],
)
def test_a_cart_is_what_was_asked_for_as_far_as_it_goes(stall, lines, cart, notes):
    assert resolve_cart(stall, lines) == (cart, notes)


def test_what_is_sold_out_is_told_apart_from_what_was_never_sold(stall):
    gone = stall.by_id["map"].model_copy(update={"quantity": 0})
    items = [gone if i.item_id == "map" else i for i in stall.items]
    world = stall.model_copy(update={"items": items})
    world = World.model_validate(world.model_dump())
    assert resolve_cart(world, [("Local Map", 1)]) == ({}, (Note("sold_out", "Local Map"),))


def test_carts_and_prices_are_spoken_in_words_of_the_shop(stall):
    assert speak_cart(stall, {"axe": 2, "rope": 1}) == "2 Sharp Axes and 1 Sturdy Rope (20m)"
    assert speak_cart(stall, {}) == "nothing"
    assert (
        speak_prices(stall, stall.inventory[1:3])
        == "Mana Potion for 60 gold and Sturdy Rope (20m) for 7.5 gold"
    )
