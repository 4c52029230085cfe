"""What a store promises: sessions that go on, one sale for a review, one stock for all."""

from __future__ import annotations

from itertools import count

import pytest

from haggle.core.errors import HaggleError
from haggle.grammar.json_text import to_json
from haggle.sop.domain import SOP, Action
from haggle.sop.task import load_task
from haggle.trade.merchant import Merchant
from haggle.trade.methods import get_method
from serving.engines.scripted import ScriptedEngine
from serving.store.episodes import Episodes
from serving.store.repository import Conflict, NotSold, Order, Store

METHOD = get_method("astp-compact")


class Customer:
    """One session of a store, whose merchant says what a test puts in its mouth."""

    def __init__(self, episodes: Episodes, shop_id: int, player: str | None = None) -> None:
        self.episodes = episodes
        self.number, _ = episodes.visit(shop_id, METHOD, player)

    @property
    def session(self):
        held = self.episodes.load(self.number)
        assert held
        return held.episode

    def answer(self, line: str, state: str, guard="state", **fields):
        """A turn that is made and not yet stored."""
        held = self.episodes.begin(self.number)
        assert held
        text = to_json({"last": held.episode.last, "state": state, **fields, "say": "__CART__."})
        return held, Merchant(ScriptedEngine([text]), guard).reply(held.episode, line)

    def say(self, line: str, state: str, guard="state", **fields):
        held, turn = self.answer(line, state, guard, **fields)
        return self.episodes.settle(held, turn)[1]

    def order(self, name: str, number: int):
        self.say(f"{number} {name}", "OFFER_SELL", cart=[[name, number]])
        self.say("deal", "FINAL_CHECK")
        return self

    def agree(self):
        return self.say("yes", "COMMIT_SALE")


@pytest.fixture
def store(database):
    store = Store(database, migrate=True)
    yield store
    store.close()


@pytest.fixture
def episodes(store):
    return Episodes(store)


@pytest.fixture
def shop(episodes, stall) -> int:
    return episodes.put_shop(stall, shared=True)


def test_a_session_goes_on_in_another_server(database, store, episodes, shop, stall):
    customer = Customer(episodes, shop).order("Sturdy Rope", 2)
    review = customer.session.review
    with_others = Store(database)
    again = Episodes(with_others)
    held = again.load(customer.number)
    assert held and held.episode.review == review and held.episode.cart == {"rope": 2}
    assert held.episode.messages("x") == customer.session.messages("x")
    customer.episodes = again
    assert customer.agree().state == "COMMIT_SALE"
    assert again.shop(again.put_shop(stall, shared=True)).by_id["rope"].quantity == 4998
    with_others.close()
    assert [(s.items, s.price, s.turn) for s in store.sales(shop)] == [({"rope": 2}, 40, 3)]


def test_a_talk_is_stored_like_a_trade(store, episodes):
    number, _ = episodes.talk(load_task("gatekeeper"))
    from haggle.core.agent import Agent

    text = Action(user="Other", act="AskName", say="Who goes there?").text()
    held = episodes.begin(number)
    turn = Agent(SOP, ScriptedEngine([text])).reply(held.episode, "let me in")
    episodes.settle(held, turn)
    again = episodes.load(number)
    assert again and again.episode.last == "AskName" and again.row.version == 1
    assert store.turns(number) == [turn.model_dump(mode="json")]


def test_the_last_piece_is_sold_once_and_the_other_is_told(store, episodes, shop):
    one, two = (Customer(episodes, shop).order("Local Map", 1) for _ in range(2))
    first, second = one.answer("yes", "COMMIT_SALE"), two.answer("yes", "COMMIT_SALE")
    assert first[1].state == second[1].state == "COMMIT_SALE"  # neither knows of the other yet
    episodes.settle(*first)
    session, turn, _ = episodes.settle(*second)
    assert turn.withheld == "stock" and "Local Map is sold out" in turn.says
    assert turn.player == "yes" and turn.raw == second[1].raw
    assert session.cart == {} and not session.sales and session.review is None
    assert len(store.sales()) == 1 and store.stock(shop)["map"] == 0
    assert [t["state"] for t in store.turns(two.number)][-1] == turn.state == "CASUAL"


def test_what_others_bought_is_told_at_the_next_turn(episodes, shop):
    one, two = (Customer(episodes, shop).order("Local Map", 1) for _ in range(2))
    one.agree()
    assert two.session.cart == {"map": 1}  # as it was told
    turn = two.agree()
    assert "Local Map is sold out" in turn.says and two.session.cart == {}


def test_two_turns_at_once_are_one_turn_and_a_conflict(store, episodes, shop):
    customer = Customer(episodes, shop).order("Sturdy Rope", 1)
    first, second = customer.answer("yes", "COMMIT_SALE"), customer.answer("yes", "COMMIT_SALE")
    episodes.settle(*first)
    with pytest.raises(Conflict, match="another turn"):
        episodes.settle(*second)
    assert len(store.sales()) == 1 and len(store.turns(customer.number)) == 3


def test_a_review_closes_one_sale(store, shop, episodes):
    customer = Customer(episodes, shop)
    order = Order("review", {"rope": 1}, 20.0)
    row = store.find(customer.number)
    store.commit(row, row.document, {}, order)
    with pytest.raises(Conflict, match="sold already"):
        store.commit(store.find(customer.number), row.document, {}, order)
    assert store.stock(shop)["rope"] == 4999 and len(store.turns(customer.number)) == 1


def test_a_key_makes_one_turn(store, episodes, shop):
    customer = Customer(episodes, shop)
    held, turn = customer.answer("hm", "CASUAL")
    clock = count(1)

    def tell(_, turn):
        return turn.model_copy(update={"latency_s": float(next(clock))})

    _, _, answer = episodes.settle(held, turn, "k1", tell)
    assert answer == tell(None, turn).model_copy(update={"latency_s": 1.0})
    assert store.answer(customer.number, key="k1") == ("hm", answer.model_dump(mode="json"))
    held, turn = customer.answer("hm", "CASUAL")
    with pytest.raises(Conflict, match="this key"):
        episodes.settle(held, turn, "k1", lambda _, turn: turn)
    assert len(store.turns(customer.number)) == 1 == store.find(customer.number).version
    for strange in ("k2", "nul\x00", "é"):
        assert store.answer(customer.number, key=strange) is None
        assert store.answer(strange, review="k1") is None


def test_a_sale_without_its_review_is_refused_whatever_the_guard(store, episodes, shop):
    customer = Customer(episodes, shop)
    customer.say("two ropes", "OFFER_SELL", cart=[["Sturdy Rope", 2]])
    turn = customer.say("hm", "COMMIT_SALE", guard="schema")
    assert turn.withheld == "unreviewed" and turn.state == "OFFER_SELL"
    assert not store.sales() and customer.session.cart == {"rope": 2}


def test_a_purse_pays_or_the_merchant_says_so(store, episodes, shop):
    store.put_player("ann", 30.5)
    store.put_player("bob")
    ann, bob = Customer(episodes, shop, "ann"), Customer(episodes, shop, "bob")
    turn = ann.order("Sturdy Rope", 2).agree()
    assert turn.withheld == "purse" and "purse" in turn.says and store.purse("ann") == 30.5
    assert store.stock(shop)["rope"] == 5000 and ann.session.cart == {"rope": 2}
    assert ann.order("Sturdy Rope", 1).agree().state == "COMMIT_SALE"
    assert store.purse("ann") == 10.5 and store.stock(shop)["rope"] == 4999
    assert bob.order("Sturdy Rope", 9).agree().state == "COMMIT_SALE" and store.purse("bob") is None
    assert [sale.player_id for sale in store.sales()] == ["ann", "bob"]


def test_nothing_of_a_turn_stays_when_its_sale_breaks_off(store, episodes, shop):
    customer = Customer(episodes, shop)
    row = store.find(customer.number)
    with pytest.raises(NotSold):
        store.commit(row, {"lost": True}, {}, Order("r", {"rope": 1, "map": 2}, 140.0))
    assert store.find(customer.number) == row and store.turns(customer.number) == []
    assert store.stock(shop) == {"rope": 5000, "map": 1} and store.sales() == []


def test_a_shop_keeps_what_it_has_left_until_its_file_says_another_number(episodes, stall, shop):
    store = episodes.store
    Customer(episodes, shop).order("Sturdy Rope", 10).agree()
    assert episodes.put_shop(stall, shared=True) == shop and store.stock(shop)["rope"] == 4990
    rope, map_, wand = stall.items
    dearer = stall.model_copy(update={"items": [
        rope.model_copy(update={"price": 25}), map_.model_copy(update={"quantity": 7}), wand,
    ]})  # fmt: skip
    before = Customer(episodes, shop).order("Sturdy Rope", 1)
    assert episodes.put_shop(dearer, shared=True) == shop
    assert store.stock(shop) == {"rope": 4990, "map": 7}
    assert episodes.shop(shop).by_id["rope"].price == 25
    assert before.agree().state == "COMMIT_SALE" and before.session.sales[0].price == 20
    gone = stall.model_copy(update={"items": [rope, wand]})
    customer = Customer(episodes, shop).order("Local Map", 1)
    episodes.put_shop(gone, shared=True)
    assert "Local Map is sold out" in customer.agree().says
    episodes.put_shop(gone, shared=True, restock=True)
    assert store.stock(shop) == {"rope": 5000}


def test_a_shop_of_the_games_own_is_that_of_one_session(episodes, stall):
    one, two = (Customer(episodes, episodes.put_shop(stall, shared=False)) for _ in range(2))
    for customer in (one, two):
        assert customer.order("Local Map", 1).agree().state == "COMMIT_SALE"
    store = episodes.store
    assert store.forget([one.number, "nobody"]) == 1
    assert store.count() == 1 and len(store.sales()) == 2 and store.turns(one.number) == []
    assert two.order("Sturdy Rope", 1).agree().state == "COMMIT_SALE"


def test_any_words_of_a_player_are_kept(store, episodes, shop):
    customer = Customer(episodes, shop)
    line = "nul \x00, quote ' \" \\, half \ud800, bell \x07, ünïcode ☃ 🪢"
    customer.say(line, "CASUAL")
    assert store.turns(customer.number)[0]["player"] == line.replace("\ud800", "?")
    assert customer.session.exchanges and customer.say("and now?", "CASUAL").state == "CASUAL"
    for strange in ("no\x00body", "é", "x" * 5000, "a' OR '1'='1"):
        assert store.find(strange) is None


def test_a_session_of_another_version_is_told(store, episodes, shop):
    customer = Customer(episodes, shop)
    row = store.find(customer.number)
    store.commit(row, row.document | {"version": 9}, {})
    with pytest.raises(HaggleError, match="stored in version 9"):
        episodes.load(customer.number)
