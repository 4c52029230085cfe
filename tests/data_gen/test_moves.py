"""Each move of a scripted player says what its act means, and the act's cart is right."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from data_gen.acts import Spoken
from data_gen.players import changes, dealing, orders, social
from data_gen.players.speaker import Move, Moves, Speaker, pick
from data_gen.teachers.oracle import propose
from data_gen.worlds import shop_of
from haggle.trade.formula import Formula
from haggle.trade.ledger import resolve_cart
from haggle.trade.session import Session
from haggle.trade.world import Haggling, Item, MerchantInfo, World

NAMES = {"Small Lamp": 20, "Grand Lamp": 90, "Hemp Rope": 15, "Tin Kettle": 30, "Wool Cloak": 60}
STOCK = 9


def session(
    cart: dict[str, int] | None = None, state: str = "OFFER_SELL", **more: object
) -> Session:
    items = [
        Item(item_id=f"i{n}", item_name=name, price=price, quantity=STOCK)
        for n, (name, price) in enumerate(NAMES.items())
    ]
    items.append(Item(item_id="x", item_name="Glass Harp"))
    merchant = MerchantInfo(name="Ash", persona="A merchant.", haggling=Haggling())
    world = World(name="w", merchant=merchant, currency="gold", items=items)
    made = Session(world)
    if cart:
        ids = {world.find(name).item_id: n for name, n in cart.items()}  # type: ignore[union-attr]
        made.settle("OFFER_SELL", ids, None)
        if state != "OFFER_SELL":
            made.settle(state, ids, made.sale_price)
    elif state == "SHOW_ITEMS":
        made.settle("SHOW_ITEMS", {}, None)
    for key, value in more.items():
        setattr(made, key, value)
    return made


def speaker(made: Session, seed: int, noise: float = 0.0) -> Speaker:
    return Speaker(shop_of(made.world), random.Random(seed), noise=noise, sellable=1.0)


def spoken(move: Move, make: Callable[[], Session], tries: int = 40) -> list[Spoken]:
    """What a move says with many dice; at least once it applies."""
    found = []
    for seed in range(tries):
        made = make()
        said = move(speaker(made, seed), made)
        if said is not None:
            found.append(said)
    assert found
    return found


def cart_after(move: Move, cart: dict[str, int], **more: object) -> list[dict[str, int]]:
    """The carts a move can ask for, in names."""
    carts = []
    for act, _ in spoken(move, lambda: session(cart, **more)):  # type: ignore[arg-type]
        carts.append({name: number for name, number in act.cart if isinstance(number, int)})
    return carts


ROPES = {"Hemp Rope": 4}
PAIR = {"Hemp Rope": 4, "Tin Kettle": 1}


@pytest.mark.parametrize(
    ("move", "cart", "expected"),
    [
        (changes.set_number("one_more"), ROPES, {"Hemp Rope": 5}),
        (changes.set_number("confirm_one_more"), ROPES, {"Hemp Rope": 5}),
        (changes.set_number("double_item"), ROPES, {"Hemp Rope": 8}),
        (changes.set_number("halve_item", 2), {"Hemp Rope": 5}, {"Hemp Rope": 3}),
        (changes.halve, {"Hemp Rope": 5}, {"Hemp Rope": 3}),
        (changes.double, PAIR, {"Hemp Rope": 8, "Tin Kettle": 2}),
    ],
)
def test_a_number_changes_as_said(move, cart, expected):
    assert all(asked == expected for asked in cart_after(move, cart))


@pytest.mark.parametrize(
    ("move", "allowed"),
    [
        (changes.remove("remove"), [{"Hemp Rope": 4}, {"Tin Kettle": 1}]),
        (changes.remove("confirm_remove"), [{"Hemp Rope": 4}, {"Tin Kettle": 1}]),
        (changes.remove_ordinal, [{"Hemp Rope": 4}, {"Tin Kettle": 1}]),
        (changes.keep_only, [{"Hemp Rope": 4}, {"Tin Kettle": 1}]),
    ],
)
def test_what_goes_and_what_stays_is_one_of_the_lines(move, allowed):
    carts = cart_after(move, PAIR)
    assert all(cart in allowed for cart in carts) and all(cart in carts for cart in allowed)


def test_the_first_in_the_cart_is_the_first_the_ledger_names():
    for act, text in spoken(changes.remove_ordinal, lambda: session(PAIR)):
        first = "first" in text.casefold()
        assert (dict(act.cart) == {"Tin Kettle": 1}) == first, text


def test_some_put_back_leaves_some():
    for cart in cart_after(changes.set_number("put_back_some", 2), ROPES):
        assert 1 <= cart["Hemp Rope"] <= 3


def test_additions_keep_what_lay_there():
    for name in ("add", "accept_add", "add_haggle", "bundle_haggle"):
        for cart in cart_after(changes.add(name), PAIR):
            assert cart.items() >= PAIR.items() and len(cart) > len(PAIR)


def test_a_swap_takes_the_place_of_what_goes():
    for cart in cart_after(changes.swap("swap"), PAIR):
        assert len(cart) == 2 and len(cart.keys() & PAIR.keys()) == 1


def test_so_many_for_each_of_so_many_is_their_product_and_told_as_one():
    told = 0
    for act, text in spoken(orders.order_apiece, session):
        for _, number in act.cart:
            assert isinstance(number, int) and number >= min(orders.HEADS), text
            if isinstance(number, Formula):
                told += 1
                each, heads = sorted(map(int, number.told.split("*")))
                assert each >= 2 and heads in orders.HEADS and number == each * heads
    assert told


def test_shares_of_several_people_are_their_sum_and_told_as_one():
    acts = [act for act, _ in spoken(orders.order_shares, session)]
    assert acts
    for act in acts:
        ((_, number),) = act.cart
        assert isinstance(number, Formula)
        one, other = map(int, number.told.split("+"))
        assert one <= other and number == one + other


@pytest.mark.parametrize("move", [orders.order_apiece, orders.order_shares])
def test_what_each_gets_comes_on_top_of_what_lies_there(move):
    for act, _ in spoken(move, lambda: session(PAIR)):
        assert dict(act.cart).items() >= PAIR.items()
        assert dict(act.change).keys() == dict(act.cart).keys() - PAIR.keys()


def test_of_two_shown_the_cheaper_is_the_cheaper():
    for act, _ in spoken(orders.shown_two, lambda: shown_session("Small Lamp", "Grand Lamp")):
        names = [name for name, _ in act.cart]
        wanted = {"order_cheaper": ["Small Lamp"], "order_pricier": ["Grand Lamp"]}
        assert names == wanted.get(act.name, ["Small Lamp", "Grand Lamp"])


def shown_session(*names: str) -> Session:
    made = session(None, "SHOW_ITEMS")
    made.shown = names
    return made


def test_the_last_shown_is_the_last_and_the_second_the_second():
    three = ("Tin Kettle", "Hemp Rope", "Wool Cloak")
    places = {"first": 0, "second": 1, "third": 2, "last": 2}
    for act, text in spoken(orders.shown_some, lambda: shown_session(*three)):
        if act.name == "order_ordinal":
            said = [o for o in places if o in text.casefold()]
            assert any(act.cart[0][0] == three[places[o]] for o in said), text
        else:
            assert [name for name, _ in act.cart] == list(three)


def test_shares_of_the_stock_are_left_to_code():
    for move, share in ((orders.order_all, "all"), (orders.order_half, "half")):
        for act, _ in spoken(move, session):
            assert [number for _, number in act.cart] == [share]
            cart, _ = resolve_cart(session().world, act.cart)
            assert list(cart.values()) == [STOCK if share == "all" else 5]


def test_the_same_again_is_the_last_sale():
    def sold() -> Session:
        made = session(PAIR, "FINAL_CHECK")
        made.settle("COMMIT_SALE", made.cart, made.sale_price)
        return made

    for act, text in spoken(orders.same_again, sold):
        if act.name == "same_again":
            assert dict(act.cart) == PAIR
        else:
            assert len(act.cart) == 1 and dict(act.cart).items() < PAIR.items(), text


def test_a_name_two_items_share_is_asked_back():
    for act, text in spoken(orders.ambiguous, session):
        assert act.items == ("Small Lamp", "Grand Lamp") and "lamp" in text.casefold()
        answer = propose(session(), act, random.Random(0))
        assert answer.state == "SHOW_ITEMS" and answer.show == ("Small Lamp", "Grand Lamp")


def test_a_bid_is_what_was_said_and_less_than_the_price():
    for move in (dealing.haggle_sum("haggle_total"), dealing.haggle_sum("haggle_if")):
        for act, text in spoken(move, lambda: session(PAIR)):
            assert isinstance(act.bid, int) and str(act.bid) in text
            assert act.bid < dealing.price_of(session(PAIR))
    for act, text in spoken(dealing.haggle_percent, lambda: session(PAIR)):
        assert str(act.bid).rstrip("%") in text
    for act, text in spoken(dealing.haggle_each, lambda: session(ROPES)):
        assert str(act.bid).removesuffix(" each") in text


def test_a_tip_is_more_than_the_price():
    for _, text in spoken(dealing.tip, lambda: session(PAIR, "FINAL_CHECK")):
        numbers = [int(word) for word in text.split() if word.isdigit()]
        assert all(number > dealing.price_of(session(PAIR)) for number in numbers)


def test_a_budget_shows_only_what_it_buys():
    for act, text in spoken(social.browse_budget, session):
        limit = max(NAMES[name] for name in act.items)
        cheaper = [name for name, price in NAMES.items() if price <= limit]
        assert list(act.items) == cheaper, text


def test_something_better_costs_at_least_as_much():
    made = session()
    made_speaker = speaker(made, 0)
    tagged = made_speaker.shop.model_copy(update={"tags": {n: ["light"] for n in NAMES}})
    for seed in range(30):
        said = social.ask_better(Speaker(tagged, random.Random(seed)), made)
        assert said is not None and said[0].items


@pytest.mark.parametrize(
    "table", [orders.FRESH, changes.CHANGES, changes.REVIEW_CHANGES, dealing.HAGGLE,
              dealing.ACCEPT, dealing.CONFIRM, dealing.DOUBTS, social.LOOK, social.LOOK_MIDWAY,
              social.CHAT, social.CHAT_MIDWAY, social.ATTACK, social.LEAVE, social.AFTER_SALE]
)  # fmt: skip
def test_every_table_of_moves_speaks_in_every_voice_of_both_splits(table: Moves):
    from data_gen.language.voices import voices_of

    for split in ("train", "test"):
        for voice in voices_of(split):  # type: ignore[arg-type]
            for seed in range(12):
                made = session(PAIR, "FINAL_CHECK")
                player = Speaker(
                    shop_of(made.world),
                    random.Random(seed),
                    split,
                    voice,
                    noise=1.0,  # type: ignore[arg-type]
                )
                said = pick(table, player, made)
                assert said is not None and said[1].strip()


def test_a_move_that_does_not_apply_gives_way():
    made = session(ROPES)
    table: Moves = ((1000, changes.remove("remove")), (0.001, changes.double))
    said = pick(table, speaker(made, 0), made)
    assert said is not None and said[0].name == "double"
    assert pick(((1, changes.remove("remove")),), speaker(made, 0), made) is None
