"""Carts as changes: what a change comes to, and when and how one is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haggle.trade.edits import changed, numbers_in_line, shortened, whole, with_whole_cart
from haggle.trade.methods import get_method
from haggle.trade.resolve import resolve
from haggle.trade.session import Session
from haggle.trade.wire import Proposal
from haggle.trade.world_io import named_world

CART = {"Sharp Axe": 4, "Local Map": 1}


def proposal(**given: object) -> Proposal:
    return Proposal("OFFER_SELL", "OFFER_SELL", "__CART__, __PRICE__", **given)  # type: ignore[arg-type]


def at_the_counter(method: str = "astp-compact", **cart: int) -> Session:
    session = Session(named_world("frontier_shop"), method=get_method(method))
    names = {n.replace("_", " "): q for n, q in cart.items()} or CART
    items = {i.item_name: i.item_id for i in session.world.items}
    session.cart = {items[name]: number for name, number in names.items()}
    return session


@pytest.mark.parametrize(
    ("change", "cart"),
    [
        ((), {"Sharp Axe": 4, "Local Map": 1}),
        ((("Sharp Axe", 7),), {"Sharp Axe": 7, "Local Map": 1}),
        ((("Sharp Axe", "+2"),), {"Sharp Axe": 6, "Local Map": 1}),
        ((("Sharp Axe", "-3"),), {"Sharp Axe": 1, "Local Map": 1}),
        ((("Sharp Axe", "-9"),), {"Local Map": 1}),
        ((("Sharp Axe", 0),), {"Local Map": 1}),
        ((("sharp  axe", 0),), {"Local Map": 1}),
        ((("Sharp Axe", "x2"), ("Local Map", "x3")), {"Sharp Axe": 8, "Local Map": 3}),
        ((("Sharp Axe", "half"), ("Local Map", "half")), {"Sharp Axe": 2, "Local Map": 1}),
        ((("Sharp Axe", "all"),), {"Sharp Axe": "all", "Local Map": 1}),
        ((("Sturdy Shield", "half"),), CART | {"Sturdy Shield": "half"}),
        ((("Sturdy Shield", "+2"),), CART | {"Sturdy Shield": 2}),
        ((("Sturdy Shield", 0),), CART),
        ((("?unicorn", 2), ("Local Map", 0)), {"Sharp Axe": 4, "?unicorn": 2}),
    ],
)
def test_what_is_not_named_stays(change: tuple, cart: dict) -> None:
    assert dict(whole(CART, proposal(change=change))) == cart


def test_a_cart_is_the_whole_cart() -> None:
    lines = (("Sturdy Shield", 2),)
    assert whole(CART, proposal(cart=lines)) == lines


AXE, MAP, SHIELD = "Sharp Axe", "Local Map", "Sturdy Shield"


@pytest.mark.parametrize(
    ("line", "target", "change"),
    [
        # The number said is the one written down, and code does the sum.
        ("make it 6 axes", {AXE: 6, MAP: 1}, ((AXE, 6),)),
        ("two more axes", {AXE: 6, MAP: 1}, ((AXE, "+2"),)),
        ("put 2 axes back", {AXE: 2, MAP: 1}, ((AXE, "-2"),)),
        ("another axe", {AXE: 5, MAP: 1}, ((AXE, "+1"),)),
        ("a brace of axes more", {AXE: 6, MAP: 1}, ((AXE, "+2"),)),
        ("double the axes", {AXE: 8, MAP: 1}, ((AXE, "x2"),)),
        ("twice of everything", {AXE: 8, MAP: 2}, ((AXE, "x2"), (MAP, "x2"))),
        ("only half the axes", {AXE: 2, MAP: 1}, ((AXE, "half"),)),
        # Lines of their own.
        ("and 2 shields", {AXE: 4, MAP: 1, SHIELD: 2}, ((SHIELD, 2),)),
        ("and a unicorn", {AXE: 4, MAP: 1, "?unicorn": 1}, (("?unicorn", 1),)),
        ("drop the map", {AXE: 4}, ((MAP, 0),)),
        ("the parchment thing can go", {AXE: 4}, ((MAP, 0),)),
        (
            "swap the axes for a shield",
            {MAP: 1, SHIELD: 1},
            ((AXE, 0), (SHIELD, 1)),
        ),
        ("what was my order", {AXE: 4, MAP: 1}, ()),
        # A cart in the place of the last one.
        ("just the map", {MAP: 1}, None),
        ("only the parchment thing", {MAP: 1}, None),
        ("scrap that, 3 shields", {SHIELD: 3}, None),
    ],
)
def test_how_a_change_is_told_goes_by_the_words(line: str, target: dict, change: object) -> None:
    given = proposal(cart=tuple(target.items()))
    short = shortened(at_the_counter(), line, given)
    assert short.change == change
    assert short.cart == (given.cart if change is None else None)


LINES = st.dictionaries(
    st.sampled_from([AXE, MAP, SHIELD, "Healing Potion"]), st.integers(1, 40), max_size=4
)
WORDS = st.lists(st.sampled_from("two 2 7 x3 double half only more back keep less dozen".split()))
NAMED = st.sets(st.sampled_from([AXE, MAP, SHIELD]))


@given(LINES, LINES, NAMED, WORDS)
def test_a_change_leads_to_the_cart_it_was_made_from(
    before: dict, after: dict, named: set, words: list
) -> None:
    change = changed(before, tuple(after.items()), named, " ".join(words))
    if change is not None:
        assert dict(whole(before, proposal(change=change))) == after


def test_numbers_are_heard_in_digits_marks_and_words() -> None:
    assert numbers_in_line("Three of 12 {Sharp Axe x40}, x2") == {3, 12, 40, 2}


def test_only_a_session_with_a_cart_and_a_method_with_changes_has_them() -> None:
    whole_cart = proposal(cart=((AXE, 4), (MAP, 1), (SHIELD, 2)))
    line = "2 sturdy shields too"
    assert shortened(at_the_counter(), line, whole_cart).change == ((SHIELD, 2),)
    assert shortened(at_the_counter("astp-bare"), line, whole_cart) == whole_cart
    empty = at_the_counter()
    empty.cart = {}
    assert shortened(empty, line, whole_cart) == whole_cart
    review = Proposal("OFFER_SELL", "FINAL_CHECK", "so __CART__ for __PRICE__?")
    assert shortened(at_the_counter(), line, review) == review


def test_a_change_spelled_out_is_the_cart_again() -> None:
    session = at_the_counter()
    cart = proposal(cart=((AXE, 6), (SHIELD, 2)))
    short = shortened(session, "2 more axes and 2 shields, no map", cart)
    assert short.change == ((MAP, 0), (AXE, "+2"), (SHIELD, 2))
    assert with_whole_cart(session, short) == cart


def test_a_change_is_resolved_like_the_cart_it_leads_to() -> None:
    session = at_the_counter()
    by_change = resolve(session, proposal(change=((AXE, "+2"), ("local maps", 0))), guarded=True)
    by_cart = resolve(session, proposal(cart=((AXE, 6),)), guarded=True)
    assert by_change.cart == by_cart.cart and by_change.sale_price == by_cart.sale_price
    unchanged = resolve(session, proposal(change=()), guarded=True)
    assert unchanged.cart == session.cart and unchanged.response.state == "OFFER_SELL"


def test_what_is_not_sold_leaves_the_cart_and_is_said() -> None:
    session = at_the_counter()
    resolved = resolve(session, proposal(change=(("?unicorn", 1),)), guarded=True)
    assert resolved.cart == session.cart and resolved.response.state == "OFFER_SELL"
    assert "unicorn" in resolved.response.npc_dialogue


def test_taking_everything_out_empties_the_cart() -> None:
    resolved = resolve(at_the_counter(), proposal(change=((AXE, 0), (MAP, 0))), guarded=True)
    assert resolved.cart == {} and resolved.response.state == "CASUAL"
