"""Others buy at the same counter: what is left in an order, what is said, what is not sold."""

from __future__ import annotations

import pytest

from haggle.trade.session import Sale, with_stock
from haggle.trade.shared_stock import refused, sale_problem, take_notice


@pytest.fixture
def reviewed(visit):
    """A customer with two axes and a map under review."""
    customer = visit()
    customer.offer(["Sharp Axe", 2], ["Local Map", 1])
    customer.review()
    return customer


def others_leave(customer, **left: int) -> None:
    customer.session.world = with_stock(customer.session.world, left)
    take_notice(customer.session)


def test_a_yes_to_goods_that_are_gone_is_answered_in_character_and_sells_nothing(reviewed):
    others_leave(reviewed, axe=1, map=0)
    turn = reviewed.turn("COMMIT_SALE", "Done.", "yes")
    assert turn.state == "FINAL_CHECK" and turn.withheld == "renewed" and not reviewed.session.sales
    assert "only 1 of the Sharp Axe" in turn.says and "Local Map is sold out" in turn.says
    assert turn.cart == {"axe": 1} and reviewed.session.sale_price == 130
    assert "Sharp Axe for 130 gold" in turn.says and not turn.failed
    told = reviewed.turn("COMMIT_SALE", "Done.", "yes")
    assert told.state == "COMMIT_SALE" and reviewed.session.sales[0].items == {"axe": 1}
    assert "sold out" not in told.says


def test_where_nothing_is_left_the_order_is_empty(reviewed):
    others_leave(reviewed, axe=0, map=0)
    turn = reviewed.turn("COMMIT_SALE", "Done.", "yes")
    assert turn.cart == {} and turn.state == "CASUAL" and reviewed.session.review is None
    assert "Sharp Axe is sold out" in turn.says and "Local Map is sold out" in turn.says


def test_the_game_own_call_is_answered_the_same_way(reviewed):
    review = reviewed.session.review
    others_leave(reviewed, axe=1)
    turn = reviewed.session.confirm(review.id)
    assert turn.withheld == "stock" and "only 1 of the Sharp Axe" in turn.says
    assert not reviewed.session.sales and reviewed.session.review.id != review.id
    assert reviewed.session.confirm(reviewed.session.review.id).state == "COMMIT_SALE"


def test_what_is_missing_is_told_once_and_with_any_answer(visit):
    customer = visit()
    customer.offer(["Sharp Axe", 2])
    others_leave(customer, axe=1)
    assert "only 1 of the Sharp Axe" in customer.turn("CASUAL", "Fine day.").says
    assert "only 1" not in customer.turn("CASUAL", "Fine day.").says


def test_asking_for_what_is_gone_tells_it_once(visit):
    customer = visit()
    customer.offer(["Sharp Axe", 2])
    others_leave(customer, axe=1)
    turn = customer.turn("OFFER_SELL", "So __CART__.", "three axes", cart=[["Sharp Axe", 3]])
    assert turn.says.count("only 1 of the Sharp Axe") == 1


def test_a_discount_holds_for_what_is_left(visit):
    customer = visit()
    customer.offer(["Sharp Axe", 2])
    customer.turn("NEGOTIATE", "__PRICE__.", "240?", bid=240)
    agreed = customer.session.sale_price
    assert agreed is not None and agreed < 260
    others_leave(customer, axe=1)
    assert customer.session.sale_price == -(-agreed // 2)


def test_only_a_reviewed_order_at_its_price_may_be_sold(reviewed):
    session, review = reviewed.session, reviewed.session.review
    good = Sale(dict(review.items), review.price, review.id)
    assert sale_problem(session, good) == ""
    assert sale_problem(session, Sale(good.items, good.price, "other")) == "unreviewed"
    assert sale_problem(session, Sale(good.items, good.price - 1, review.id)) == "unreviewed"
    assert sale_problem(session, Sale({"axe": 3}, good.price, review.id)) == "unreviewed"
    session.review = type(review)(review.id, review.items, 1.0)
    assert sale_problem(session, Sale(good.items, 1.0, review.id)) == "floor"


def test_a_purse_that_does_not_suffice_is_told(reviewed):
    before = reviewed.session.branch()
    sold = reviewed.turn("COMMIT_SALE", "Done.", "yes")
    turn = refused(before, sold, "purse")
    assert turn.withheld == "purse" and "purse does not hold" in turn.says
    assert before.cart == {"axe": 2, "map": 1} and not before.sales and turn.player == "yes"
