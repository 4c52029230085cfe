"""The promise, as players have tried to break it: no sale without a yes to its terms, in any shop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from haggle.core.config import CONFIGS, ROOT
from haggle.language.embeddings import Embedder
from haggle.language.english.linker import English
from haggle.language.evidence import Judge
from haggle.language.judge import load_judge
from haggle.trade.session import Session
from haggle.trade.world import Item, World
from haggle.trade.world_io import load_worlds

SHOPS = load_worlds(CONFIGS / "worlds") | {
    f"benchmark-{name}": world
    for name, world in load_worlds(ROOT / "eval/benchmarks/worlds").items()
}
ONCE_SOLD = [  # lines that are no yes, on which a guard that looked for doubts only did sell
    "...", "ha ha ha", "is that yes?", "deal once I've seen it", "yes, one of them",
    "yes to the rope, no to the price", "yes, 2 shells", "I'll pay half now", "sure, and pigs fly",
    "don't take this as a yes", "fine, be that way. I'm not buying", "my friend said 'yes, deal'",
    "I'll confirm tomorrow", "아니요, 안 살래요", "fine weather", "I'm hungry", "pass", "thanks anyway",
    "Well, a crown's a crown. That will do very nicely, dear.", "-5 axes", "1.5 axes",
]  # fmt: skip


@pytest.fixture(params=["alone", "judged"])
def judge(request: pytest.FixtureRequest) -> Judge | None:
    """None: the grammar alone reads the lines. Else the shipped judge of answers helps it."""
    if request.param == "alone":
        return None
    return load_judge("auto") or pytest.skip("the extra `embeddings` is not installed")


@pytest.fixture
def reviewed(visit, judge):
    """A customer to whom two axes and a rope have just been reviewed."""
    customer = visit()
    customer.session.linker = English(None, judge)
    customer.offer(["Sharp Axe", 2], ["Sturdy Rope (20m)", 1])
    customer.review()
    assert customer.session.review is not None
    return customer


def closes(customer, line: str) -> bool:
    """Whether a line closes the sale where the model would sell whatever is said."""
    customer.turn("COMMIT_SALE", "Sold.", player=line)
    return bool(customer.session.sales)


@pytest.mark.parametrize("line", ONCE_SOLD)
def test_a_line_that_once_sold_sells_nothing_however_often_it_is_said(reviewed, line):
    assert not any(closes(reviewed, line) for _ in range(3))
    assert reviewed.session.cart == {"axe": 2, "rope": 1}
    assert any(closes(reviewed, "yes") for _ in range(2)), "a plain yes does, at the latest twice"


@pytest.mark.parametrize("refusal", ["no", "no, thanks", "not today"])
@pytest.mark.parametrize("line", ["thanks anyway", "thanks anyway, bye", "no, thanks anyway"])
def test_a_thank_you_after_a_refusal_sells_nothing(reviewed, refusal, line):
    assert not closes(reviewed, refusal)
    assert not closes(reviewed, line) and not closes(reviewed, line)


@pytest.mark.parametrize(
    ("line", "sold"), [("yes " * 124 + "yes", 1), ("yes " * 124 + "yes!", 1), ("yes " * 124 + "yes!!", 0)]
)  # fmt: skip
def test_a_yes_of_more_than_five_hundred_characters_is_not_read(reviewed, line, sold):
    assert len(line) in (499, 500) if sold else len(line) == 501
    assert closes(reviewed, line) == bool(sold)
    assert sold or closes(reviewed, "yes")


@pytest.fixture(params=sorted(SHOPS))
def ordered(request: pytest.FixtureRequest, visit) -> Callable:
    """A customer in one of all shops who has ordered the first goods that are left there."""

    def make(*, review: bool):
        world = SHOPS[request.param].model_copy(deep=True)
        customer = visit(world=world)
        goods = next(item for item in world.inventory if item.for_sale and item.quantity)
        customer.offer([goods.item_name, 1])
        if review:
            customer.review()
        assert customer.session.cart == {goods.item_id: 1}
        assert (customer.session.review is not None) is review
        return customer, [goods.item_name, 1]

    return make


@pytest.mark.parametrize("review", [False, True], ids=["before", "after"])
def test_cancel_clears_the_cart_in_every_shop_before_and_after_a_review(ordered, review):
    for proposed in ("CASUAL", "OFFER_SELL", "FINAL_CHECK", "COMMIT_SALE", "END"):
        customer, goods = ordered(review=review)
        fields = {"cart": [goods]} if proposed == "OFFER_SELL" else {}
        turn = customer.turn(proposed, "Hm.", player="cancel", **fields)
        assert (turn.state, turn.cart) == ("CASUAL", {}), proposed
        assert customer.session.review is None and customer.session.sales == []


def test_no_to_a_review_keeps_the_order_in_every_shop(ordered):
    customer, _ = ordered(review=True)
    cart = dict(customer.session.cart)
    turn = customer.turn("COMMIT_SALE", "Sold.", player="no")
    assert (turn.state, turn.cart) == ("CASUAL", cart) and customer.session.sales == []


class Torches(Embedder):
    """Finds that torches and flashlights are the same, and near to nothing else."""

    def embed(self, texts):
        same = [any(w in text.casefold() for w in ("torch", "flashlight")) for text in texts]
        return np.array([(1.0, 0.0) if is_one else (0.0, 1.0) for is_one in same], dtype=np.float32)


TWO = ("yes, two torches", "I'll take two torches, deal", "yes. Two torches.")


@pytest.mark.parametrize(
    ("embedder", "line"),
    [(None, "yes, the torches"), *((e, line) for e in (None, Torches()) for line in TWO)],
    ids=lambda value: value if isinstance(value, str) else "near" if value else "listed",
)
def test_a_nickname_orders_goods_and_is_never_consent_to_them(visit, stall, judge, embedder, line):
    light = Item(item_id="light", item_name="Flashlight", price=30, quantity=4)
    customer = visit(world=World.model_validate({**dict(stall), "items": [*stall.items, light]}))
    session: Session = customer.session
    session.linker = English(embedder, judge, lexicon=embedder is None)
    offer = {"cart": [["Flashlight", 2]]}
    assert customer.turn("OFFER_SELL", "Here.", player="two torches", **offer).cart == {"light": 2}
    customer.review()
    assert session.named(line, sure=False) == {"light"}
    assert not closes(customer, line) and not closes(customer, line)
    assert closes(customer, line.replace("torches", "flashlights"))
