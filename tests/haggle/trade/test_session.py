"""A session: what the ledger holds, and what a model is shown of the dialogue."""

from __future__ import annotations

import json

import pytest

from haggle.trade.session import MAX_EXCHANGES, Session, without_stock


def test_a_new_session_is_a_blank_page(stall):
    session = Session(stall)
    assert (session.last, session.cart, session.sale_price, session.note) == (
        "",
        {},
        None,
        "cart []",
    )
    assert session.legal_states() == ["CASUAL", "END", "SHOW_ITEMS", "OFFER_SELL"]


def test_the_ledger_note_stands_before_the_players_line(visit):
    customer = visit()
    customer.offer(["Sharp Axe", 2])
    line = customer.session.messages("is that all?")[-1]
    assert line.role == "user"
    assert line.content == 'cart [["Sharp Axe",2]] price 260\nplayer: is that all?'


def test_messages_alternate_and_end_with_the_player(visit):
    customer = visit()
    for _ in range(3):
        customer.turn("CASUAL", "Hm.")
    roles = [m.role for m in customer.session.messages("and?")]
    assert roles == ["system", *["user", "assistant"] * 3, "user"]


@pytest.mark.parametrize("method", ["astp-compact", "astp"])
def test_a_long_dialogue_loses_its_oldest_rounds_but_never_the_system_message(visit, method):
    customer = visit(method=method)
    system = customer.session.messages("x")[0]
    for number in range(MAX_EXCHANGES + 5):
        customer.text("unreadable", player=f"line {number} said")
    messages = customer.session.messages("last")
    assert messages[0] == system and messages[0].role == "system"
    text = "\n".join(m.content for m in messages)
    assert "line 5 said" not in text and "line 6 said" in text and "line 16 said" in text
    assert "line 0 said" in "\n".join(m.content for m in customer.session.messages("x", limit=None))


def test_what_is_left_out_of_a_long_dialogue_changes_seldom(visit):
    customer = visit()
    begins = []
    for number in range(3 * MAX_EXCHANGES):
        messages = customer.session.messages("x")
        assert len(messages) <= 2 * MAX_EXCHANGES + 2
        begins.append(messages[1].content)
        customer.text("unreadable", player=f"line {number} said")
    assert MAX_EXCHANGES == 12 and len(set(begins[1:])) == 5, "a prefix holds"


def test_history_shows_the_model_its_own_decisions_not_the_filled_line(visit):
    customer = visit()
    customer.offer(["sharp axe", 1])
    answer = json.loads(customer.session.messages("ok")[2].content)
    assert answer["say"] == "__CART__ for __PRICE__ __CURRENCY__."
    assert list(answer) == ["last", "state", "cart", "say"]


def test_a_sale_clears_the_counter_and_takes_the_stock(visit):
    customer = visit()
    customer.offer(["Sharp Axe", 2])
    customer.review()
    customer.turn("COMMIT_SALE")
    session = customer.session
    assert (session.cart, session.sale_price, session.last) == ({}, None, "COMMIT_SALE")
    assert [(s.items, s.price) for s in session.sales] == [({"axe": 2}, 260)]
    assert session.world.by_id["axe"].quantity == 1


def test_a_goodbye_starts_anew_without_a_sale(visit):
    customer = visit()
    customer.offer(["Sharp Axe", 2])
    customer.turn("END", "Bye.")
    session = customer.session
    assert (session.last, session.cart, session.sales) == ("", {}, [])
    assert session.world.by_id["axe"].quantity == 3


def test_the_shop_a_session_was_opened_with_is_not_changed(visit, stall):
    customer = visit()
    customer.offer(["Local Map", 1])
    customer.review()
    customer.turn("COMMIT_SALE")
    assert stall.by_id["map"].quantity == 1 and customer.session.world.by_id["map"].quantity == 0


def test_the_compact_system_message_stays_so_that_prefix_caches_hold(visit):
    customer = visit()
    before = customer.session.system
    customer.offer(["Local Map", 1])
    customer.review()
    customer.turn("COMMIT_SALE")
    assert customer.session.system == before


def test_selling_more_than_there_is_leaves_none_not_less(stall):
    world = without_stock(stall, {"axe": 5})
    assert world.by_id["axe"].quantity == 0
    assert "Sharp Axe" not in world.sellable_names and "Mana Potion" in world.sellable_names


def test_settling_drops_what_this_world_does_not_know(stall):
    session = Session(stall)
    session.settle("OFFER_SELL", {"axe": 1, "moon": 2}, None)
    assert session.cart == {"axe": 1} and session.sale_price == 130
