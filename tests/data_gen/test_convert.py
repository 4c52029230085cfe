"""What a teacher's full answer says, in the compact format; what cannot be said is given up."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from data_gen.language.mentions import Names
from data_gen.teachers.asking import Rejected
from data_gen.teachers.config import TeacherConfig
from data_gen.teachers.convert import Truth, read_bid, to_placeholders
from data_gen.teachers.llm import LlmTeacher, write
from data_gen.teachers.reading import Reader
from data_gen.worlds import shop_of
from haggle.core.engine import Generation
from haggle.trade.ledger import total as total_price
from haggle.trade.resolve import resolve
from haggle.trade.session import Session
from haggle.trade.wire import Proposal, encode_compact
from haggle.trade.world_io import named_world
from serving.engines.scripted import ScriptedEngine


@pytest.fixture
def frontier() -> Session:
    return Session(named_world("frontier_shop"))


def reader_of(session: Session) -> Reader:
    shop = shop_of(session.world)
    return Reader(shop, Names(shop))


def offer(*lines: tuple[str, int]) -> Proposal:
    return Proposal("", "OFFER_SELL", "", cart=lines)


def spoken(session: Session, proposal: Proposal, say: str, stated: float | None = None) -> str:
    resolved = resolve(session, proposal, guarded=True)
    return to_placeholders(session, resolved, stated, say, reader_of(session))


AXES = (("Sharp Axe", 4), ("Sturdy Shield", 4))


@pytest.mark.parametrize(
    ("say", "kept"),
    [
        (
            "4 Sharp Axes and 4 Sturdy Shields. That is 1,720 gold.",
            "__CART__. That is __PRICE__ gold.",
        ),
        ("Four sharp axes, plus four Sturdy Shields: 1720 gold", "__CART__: __PRICE__ gold"),
        (
            "Axes are 130 gold each, shields 300. All of it is __PRICE__ gold.",
            "All of it is __PRICE__ gold.",
        ),
        (
            "You'd pay __PRICE__ gold for the lot, friend.",
            "You'd pay __PRICE__ gold for the lot, friend.",
        ),
    ],
)
def test_numbers_of_an_offer_become_placeholders_again(frontier, say, kept):
    assert spoken(frontier, offer(*AXES), say) == kept


@pytest.mark.parametrize(
    ("say", "kept"),
    [
        ("The Simple Lantern is 80 gold, and the Local Map is 60 gold.", "__PRICES__."),
        (
            "I have the Simple Lantern for 80 gold and the Local Map for 60 gold!",
            "I have __PRICES__!",
        ),
        ("Here: Simple Lantern and Local Map. Both are good.", "Here: __ITEMS__. Both are good."),
        ("Only the Simple Lantern burns all night.", "Only the Simple Lantern burns all night."),
    ],
)
def test_goods_on_show_become_placeholders_again(frontier, say, kept):
    shown = Proposal("", "SHOW_ITEMS", "", show=("Simple Lantern", "Local Map"))
    assert spoken(frontier, shown, say) == kept


@pytest.mark.parametrize(
    ("state", "say", "reason"),
    [
        ("OFFER_SELL", "4 Sharp Axes at 130 gold and 4 Sturdy Shields at 300.", "numbers_left"),
        ("OFFER_SELL", "A fine choice, friend.", "no_price"),
        ("OFFER_SELL", "__PRICE__ gold, but I do not sell wands.", "remark"),
        ("OFFER_SELL", "__PRICES__ and so __PRICE__ gold.", "placeholder"),
        ("OFFER_SELL", "__PRICE__ gold <|im_end|>", "markup"),
        ("FINAL_CHECK", "Good, __CART__ for __PRICE__ gold it is.", "no_question"),
        ("COMMIT_SALE", "__PRICE__ gold. Do you confirm?", "question"),
        ("CASUAL", "x" * 400, "long"),
    ],
)
def test_lines_that_cannot_be_stored_are_given_up(frontier, state, say, reason):
    write(frontier, "axes", replace(offer(*AXES), say="__PRICE__"))
    proposal = Proposal(frontier.last, state, "", cart=AXES if state == "OFFER_SELL" else None)
    with pytest.raises(Rejected) as caught:
        spoken(frontier, proposal, say)
    assert caught.value.reason == reason


def test_what_code_says_itself_is_left_out_of_the_teachers_line(frontier):
    asked = offer(("Sharp Axe", 2), ("?elven wand", 1))
    said = "I don't carry elven wands. Two Sharp Axes come to __PRICE__ gold."
    assert spoken(frontier, asked, said) == "__CART__ come to __PRICE__ gold."


@pytest.mark.parametrize(
    ("line", "bid"),
    [
        ("can you do 600?", 600), ("knock off 20 gold", "-20"), ("20 gold less, please", "-20"),
        ("10% off?", "10%"), ("ten percent and it's a deal", "10%"), ("30 gold each", "30 each"),
        ("drop it to 50", 50), ("I'd pay 1,200", 1200), ("that is too much for me", None),
        ("2 Sharp Axes for 200", 200), ("how about a hundred and fifty?", 150),
    ],
)  # fmt: skip
def test_a_bid_is_read_from_the_players_words(frontier, line, bid):
    assert read_bid(line, frontier, reader_of(frontier)) == bid


@pytest.mark.parametrize(
    "line", ["half price?", "500 or 600", "maybe 12.5", "cut 50 here, 60 there"]
)
def test_a_bid_that_may_mean_two_things_is_not_guessed(frontier, line):
    with pytest.raises(Rejected, match="cannot be told"):
        read_bid(line, frontier, reader_of(frontier))


def full(session: Session, state: str, say: str, cart: dict[str, int], sale: float) -> str:
    known = session.world.by_id
    items = [
        {"item_id": i, "item_name": known[i].item_name, "quantity": n, "price": known[i].price}
        for i, n in cart.items()
    ]
    total = total_price(session.world, cart)
    details = {
        "context_subtype": state,
        "items": items,
        "original_price": total,
        "sale_price": sale,
    }
    return json.dumps({
        "last_trade_context": session.last, "context_reason": "", "context_type": "TRADE",
        "context_details": details, "npc_dialogue": say,
    })  # fmt: skip


def accepted(session: Session, answer: str, player: str) -> Proposal:
    teacher = LlmTeacher(TeacherConfig(engine="model", method="astp"), ScriptedEngine(["{}"]))
    view = teacher.view(session)
    view.last, view.state, view.cart = session.last, session.state, dict(session.cart)
    view.sale_price = session.sale_price
    return teacher.accept(session, view, player, Generation(answer), reader_of(session))


def test_a_price_haggled_by_a_teacher_must_be_the_one_code_comes_to(frontier):
    write(frontier, "axes", replace(offer(("Sharp Axe", 4)), say="__PRICE__"))
    cart, line = dict(frontier.cart), "would you take 200?"
    floor = resolve(
        frontier, Proposal("OFFER_SELL", "NEGOTIATE", "", bid=200), guarded=True
    ).sale_price
    assert floor is not None and floor < 520
    lowered = full(
        frontier, "NEGOTIATE", f"I can let you have it for {floor:.0f} gold.", cart, floor
    )
    proposal = accepted(frontier, lowered, line)
    assert (proposal.bid, proposal.say) == (200, "I can let you have it for __PRICE__ gold.")
    held = full(frontier, "NEGOTIATE", "It is 520 gold and stays 520 gold.", cart, 520)
    with pytest.raises(Rejected) as caught:
        accepted(frontier, held, line)
    assert caught.value.reason == "outcome"


@pytest.mark.parametrize(
    ("state", "say", "changes", "sale", "reason"),
    [
        ("FINAL_CHECK", "So 520 gold, yes?", {}, 500, "ledger"),
        ("FINAL_CHECK", "So 390 gold, yes?", {"weapon_05": 3}, 390, "ledger"),
        ("OFFER_SELL", "That is 100 gold.", {}, 100, "floor"),
        ("COMMIT_SALE", "Sold for 520 gold.", {}, 520, "critical"),
        ("OFFER_SELL", "That is 77 gold, or __PRICE__.", {}, 520, "numbers"),
    ],
)
def test_a_full_answer_is_taken_at_its_word_and_checked(
    frontier, state, say, changes, sale, reason
):
    write(frontier, "axes", replace(offer(("Sharp Axe", 4)), say="__PRICE__"))
    (axe,) = frontier.cart
    cart = {axe: next(iter(changes.values()), 4)}
    with pytest.raises(Rejected) as caught:
        accepted(frontier, full(frontier, state, say, cart, sale), "all right")
    assert caught.value.reason == reason


# The oracle's label, before a scripted player


def held_to(session: Session, oracle: Proposal, answer: Proposal) -> str:
    """Why a compact answer is refused where the oracle would give another; `ok` when it is not."""
    teacher = LlmTeacher(
        TeacherConfig(engine="model", method="astp-compact"), ScriptedEngine(["{}"])
    )
    view = teacher.view(session)
    view.last, view.state, view.cart = session.last, session.state, dict(session.cart)
    view.sale_price = session.sale_price
    truth = Truth(oracle, resolve(session, oracle, guarded=True))
    text = encode_compact(answer, session.procedure)
    try:
        teacher.accept(session, view, "well", Generation(text), reader_of(session), truth)
    except Rejected as rejected:
        return rejected.reason
    return "ok"


ASKED = Proposal("", "OFFER_SELL", "__PRICE__ gold.", cart=(("Sharp Axe", 2), ("?elven wand", 1)))
SHOWN = Proposal("", "SHOW_ITEMS", "It is __PRICES__.", show=("Local Map",))


@pytest.mark.parametrize(
    ("oracle", "changes", "reason"),
    [
        (ASKED, {"say": "So __CART__ for __PRICE__ gold."}, "ok"),
        (ASKED, {"cart": (("Sharp Axe", 2), ("?elvish wand", 1))}, "ok"),
        (ASKED, {"cart": (("Sharp Axe", 3), ("?elven wand", 1))}, "label_cart"),
        (ASKED, {"cart": (("Sharp Axe", 2),)}, "label_notes"),
        (ASKED, {"cart": (("Sharp Axe", 2), ("elven wand", 1))}, "unlisted"),
        (ASKED, {"cart": (("?Sharp Axe", 2), ("?elven wand", 1))}, "unlisted"),
        (ASKED, {"state": "CASUAL", "cart": None}, "label_state"),
        (ASKED, {"last": "NEGOTIATE"}, "inference"),
        (SHOWN, {"say": "Finest paper: __PRICES__."}, "ok"),
        (SHOWN, {"show": ("Local Map", "Simple Lantern")}, "ok"),
        (SHOWN, {"show": ("Simple Lantern",)}, "label_show"),
        (SHOWN, {"show": ("Local Map", "Moon Map")}, "sellable"),
        (SHOWN, {"say": "Here is __ITEMS__."}, "no_price"),
    ],
)
def test_an_answer_is_held_to_all_that_goes_into_the_data(frontier, oracle, changes, reason):
    assert held_to(frontier, oracle, replace(oracle, **changes)) == reason


@pytest.mark.parametrize(
    ("bid", "reason"),
    [(100, "ok"), (101, "label_bid"), (None, "label_price"), ("10%", "label_price")],
)
def test_a_bid_is_held_to_the_players_even_where_it_makes_no_difference(frontier, bid, reason):
    write(frontier, "axes", replace(offer(("Sharp Axe", 4)), say="__PRICE__"))
    oracle = Proposal("OFFER_SELL", "NEGOTIATE", "__PRICE__ gold.", bid=100)
    assert held_to(frontier, oracle, replace(oracle, bid=bid)) == reason
