"""What people say in free talk, and what becomes of it whatever the model makes of it."""

from __future__ import annotations

import pytest

from haggle.trade.world import Haggling, Item, MerchantInfo, Situation, World


@pytest.fixture
def world() -> World:
    return World(
        name="paper_lane",
        merchant=MerchantInfo(name="Tibalt", persona="A patient man.", haggling=HAGGLING),
        situation=Situation(location="a stall", time="noon", background="Rain."),
        currency="pence",
        items=[
            Item(
                item_id="pocket_diary", item_name="Pocket Diary", price=20, quantity=5,
                description="A small diary bound in calf. It closes with a clasp.",
                facts=["It has two hundred pages.", "It was bound by a monk in Sarn.",
                       "It weighs three hundred grams."],
            ),
            Item(
                item_id="wall_diary", item_name="Wall Diary", price=30, quantity=5,
                description="A large diary that hangs on a nail by its cord.",
                facts=["It weighs two kilograms."],
            ),
            Item(item_id="cord", item_name="Diary Cord", price=2, quantity=9,
                 description="A cord of red silk."),
            Item(item_id="stamp", item_name="Brass Stamp", price=40, quantity=3,
                 description="A stamp with a handle of bone. It is screwed together."),
            Item(item_id="globe", item_name="Star Globe"),
        ],
    )  # fmt: skip


HAGGLING = Haggling(max_discount=0.2, step=0.1)


@pytest.fixture
def customer(visit, world):
    return visit(method="astp-stepwise", world=world)


def order(customer, **goods):
    names = {
        "pocket": "Pocket Diary",
        "wall": "Wall Diary",
        "cord": "Diary Cord",
        "stamp": "Brass Stamp",
    }
    cart = [[names[name], number] for name, number in goods.items()]
    customer.turn("OFFER_SELL", "", "", cart=cart)
    assert len(customer.session.cart) == len(goods)


def test_goods_that_a_line_orders_are_not_taken_out(customer):
    order(customer, pocket=1)
    line = "I will take the pocket diary for my niece, and a cord to tie it."
    turn = customer.turn("OFFER_SELL", "", line, change=[["Pocket Diary", 0], ["Diary Cord", 1]])
    assert turn.cart == {"pocket_diary": 1, "cord": 1}


@pytest.mark.parametrize(
    "line", ["no pocket diary for me", "the pocket diary can go", "bin the pocket diary"]
)
def test_goods_that_a_line_does_not_order_may_go(customer, line):
    order(customer, pocket=1, stamp=1)
    turn = customer.turn("OFFER_SELL", "", line, change=[["Pocket Diary", 0]])
    assert turn.cart == {"stamp": 1}


def test_a_no_to_goods_that_share_a_word_with_others_is_a_no(customer):
    order(customer, pocket=1, cord=1)
    line = "One pocket diary, and no cord at all."
    turn = customer.turn("OFFER_SELL", "", line, change=[["Pocket Diary", 1]])
    assert turn.cart == {"pocket_diary": 1}


def test_what_was_not_said_rules_nothing_out(customer):
    order(customer, stamp=1)
    line = "you didn't say how heavy the stamp is"
    assert customer.turn("CASUAL", "Well.", line).cart == {"stamp": 1}


def test_goods_take_the_place_of_their_like(customer):
    order(customer, pocket=2)
    turn = customer.turn("OFFER_SELL", "", "Two wall diaries instead.", change=[["Wall Diary", 2]])
    assert turn.cart == {"wall_diary": 2}


def test_other_goods_take_no_place(customer):
    order(customer, pocket=2)
    turn = customer.turn(
        "OFFER_SELL", "", "A stamp instead of a letter.", change=[["Brass Stamp", 1]]
    )
    assert turn.cart == {"pocket_diary": 2, "stamp": 1}


def test_what_somebody_has_at_home_is_not_asked_about(customer):
    line = "Just the pocket diary, please, I still have my old stamp at home."
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Pocket Diary", 1]])
    assert turn.cart == {"pocket_diary": 1} and "Stamp" not in turn.says


def test_a_number_that_was_told_is_no_number_of_pieces(customer):
    order(customer, pocket=1)
    customer.turn("SHOW_ITEMS", "Well.", "how many pages has the diary?", show=["Pocket Diary"])
    line = "Two hundred, that's plenty. Good, then both of those."
    turn = customer.turn("OFFER_SELL", "", line, change=[["Pocket Diary", 200]])
    assert turn.cart == {"pocket_diary": 1}


@pytest.mark.parametrize(
    ("line", "price"),
    [
        ("Forty for that stamp? Robbery! I'd give you thirty-two.", 36),
        ("36 for the brass stamp, yes or no?", 36),
    ],
)
def test_a_bid_for_goods_that_nobody_has_ordered_yet_is_answered(customer, line, price):
    turn = customer.turn("CASUAL", "You have asked the wrong person.", line)
    assert turn.state == "OFFER_SELL" and turn.cart == {"stamp": 1}
    assert customer.session.sale_price == price


@pytest.mark.parametrize(
    "line", ["I'm not wearing a stamp at thirty-six.", "what could I have for 36 pence?"]
)
def test_a_number_in_a_remark_orders_nothing(customer, line):
    assert customer.turn("CASUAL", "Well.", line).cart == {}


def test_a_bid_is_not_taken_for_agreement(customer):
    order(customer, stamp=1)
    line = "Still too dear. I've only thirty-six pence in my purse."
    turn = customer.turn("FINAL_CHECK", "Agreed?", line)
    assert turn.state == "NEGOTIATE" and customer.session.sale_price == 36


@pytest.mark.parametrize(
    "line",
    [
        "Hast thou perchance a star globe?",
        "I seek a star globe.",
        "have you a star globe for sale?",
    ],
)
def test_goods_that_are_known_and_not_sold_are_said_to_be_so(customer, line):
    turn = customer.turn("CASUAL", "The trade feeds me.", line)
    assert turn.state == "CASUAL" and "I do not sell Star Globe." in turn.says


def test_a_brief_question_beside_an_order_is_answered(customer):
    turn = customer.turn("OFFER_SELL", "", "Good. Two cords. Got ink?", cart=[["Diary Cord", 2]])
    assert turn.cart == {"cord": 2} and turn.says.endswith("I have nothing called ink.")


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("Before we settle this bargain, tell me, who bound the pocket diary?", "bound by a monk"),
        ("k, n hw heavy is the pocket diary", "three hundred grams"),
        ("whence cometh the pocket diary?", "a monk in Sarn"),
    ],
)
def test_questions_are_answered_behind_what_leads_to_them(customer, line, fact):
    turn = customer.turn("SHOW_ITEMS", "Well.", line, show=["Pocket Diary"])
    assert fact in turn.says


def test_a_second_question_without_an_answer_gets_no_description(customer):
    line = "who made the pocket diary, and may I burn it?"
    turn = customer.turn("SHOW_ITEMS", "Well.", line, show=["Pocket Diary"])
    assert "monk" in turn.says and "calf" not in turn.says


def test_which_of_a_kind_is_chosen_by_what_is_known_of_it(customer):
    turn = customer.turn(
        "SHOW_ITEMS", "__ITEMS__.", "Which diary hangs on a nail?", show=["Pocket Diary"]
    )
    assert turn.response.context_details.items[0].item_id == "wall_diary"


def test_the_other_one_is_not_the_one_in_view(customer):
    customer.turn("SHOW_ITEMS", "__ITEMS__.", "a diary?", show=["Pocket Diary"])
    line = "And the other diary? Is there one to hang up?"
    turn = customer.turn("SHOW_ITEMS", "__ITEMS__.", line, show=["Pocket Diary"])
    assert "wall_diary" in {item.item_id for item in turn.response.context_details.items}
    assert "pocket_diary" not in {item.item_id for item in turn.response.context_details.items}


def test_goods_that_a_line_only_asks_about_are_not_ordered_for_what_it_repeats(customer):
    customer.turn("SHOW_ITEMS", "Well.", "how many pages has the diary?", show=["Pocket Diary"])
    line = "Two hundred pages! And who bound the wall diary?"
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Wall Diary", 1]])
    assert turn.state == "SHOW_ITEMS" and turn.cart == {}


def test_who_asks_what_else_there_is_sees_other_goods(customer):
    customer.turn("SHOW_ITEMS", "__ITEMS__.", "a stamp?", show=["Brass Stamp"])
    turn = customer.turn(
        "SHOW_ITEMS", "__ITEMS__.", "and what else have you got?", show=["Brass Stamp"]
    )
    shown = {item.item_id for item in turn.response.context_details.items}
    assert shown and "stamp" not in shown


def test_a_farewell_after_a_sale_orders_nothing(customer):
    order(customer, stamp=1)
    customer.turn("FINAL_CHECK", "Agreed?", "ok")
    assert customer.turn("COMMIT_SALE", "Sold.", "yes").state == "COMMIT_SALE"
    line = "Good day, then. Robbed, but with a stamp."
    turn = customer.turn("OFFER_SELL", "", line, cart=[["Brass Stamp", 1]])
    assert turn.state == "END" and turn.cart == {}


def test_what_is_skipped_takes_nothing_else_with_it(customer):
    order(customer, pocket=2, cord=1)
    line = "deal on the pocket diaries, only skip the cord"
    turn = customer.turn("OFFER_SELL", "", line, change=[["Diary Cord", 0]])
    assert turn.cart == {"pocket_diary": 2}
