"""The terminal chat: what a person sees while talking to a merchant."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from rich.console import Console

from haggle.grammar.json_text import to_json
from haggle.trade.merchant import Guard
from haggle.trade.said import merchant_lines
from haggle.trade.session import Session
from haggle.trade.world import Item, MerchantInfo, Situation, World
from serving.chat import chat, shop_table, spoken_pieces
from serving.engines.scripted import ScriptedEngine

AXE = Item(item_id="axe", item_name="Sharp Axe", price=130, quantity=3)
ROPE = Item(item_id="rope", item_name="Sturdy Rope (20m)", price=7.5, quantity=10)
WAND = Item(item_id="wand", item_name="Elemental Wand")
STALL = World(
    name="stall", merchant=MerchantInfo(name="Ada", persona="A calm trader."), currency="gold",
    situation=Situation(location="the old bridge"), items=[AXE, ROPE, WAND],
)  # fmt: skip


def say(state: str, text: str, last: str = "", **fields: Any) -> str:
    return to_json({"last": last, "state": state, **fields, "say": text})


OFFER = say("OFFER_SELL", "Fine: __CART__, for __PRICE__ __CURRENCY__.", cart=[["Sharp Axe", 2]])
REVIEW = say("FINAL_CHECK", "So __CART__ for __PRICE__ __CURRENCY__?", "OFFER_SELL")
SOLD = say("COMMIT_SALE", "Done. Mind the edge.", "FINAL_CHECK")
BYE = say("END", "Farewell, stranger.")
HELLO = say("CASUAL", "Good day to you.")


@dataclass
class Seen:
    """What came of a chat: the screen without and with its colours."""

    text: str
    styled: str
    session: Session
    engine: ScriptedEngine

    @property
    def lines(self) -> list[str]:
        """Lines without the prompt: what is piped in is not echoed, not even its line end."""
        return [line.strip().removeprefix("you > ") for line in self.text.splitlines()]


Talk = Callable[..., Seen]


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Talk:
    """Types lines into a chat whose model gives these answers."""

    def run(
        typed: Sequence[str], answers: Sequence[str] = (), *, world: World = STALL,
        guard: Guard = "state", width: int = 200, method: str = "astp-compact",
    ) -> Seen:  # fmt: skip
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(line + "\n" for line in typed)))
        screen, engine = io.StringIO(), ScriptedEngine(answers)
        console = Console(file=screen, force_terminal=True, width=width, color_system="standard")
        session = chat(world, engine, guard, method=method, console=console)
        styled = screen.getvalue()
        return Seen(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", styled), styled, session, engine)

    return run


def test_the_shop_is_shown_before_anything_is_said(talk):
    seen = talk([])
    assert "Ada: the old bridge" in seen.text and "price (gold)" in seen.text
    row = next(line for line in seen.lines if "Sharp Axe" in line)
    assert re.sub(r"\W+", " ", row).split() == ["Sharp", "Axe", "130", "3"]
    assert "7.5" in seen.text and "Elemental Wand" not in seen.text
    assert "scripted, scripted, guard state" in seen.text


def test_a_line_is_spoken_with_its_numbers_and_no_placeholder_is_ever_seen(talk):
    seen = talk(["two axes"], [OFFER])
    assert "Ada > Fine: 2 Sharp Axes, for 260 gold." in seen.lines
    assert "__" not in seen.text and "PRICE" not in seen.text


def test_state_cart_price_and_time_stand_under_the_line(talk):
    seen = talk(["hello", "two axes"], [HELLO, OFFER])
    told = [line for line in seen.lines if " -> " in line]
    assert re.fullmatch(r"start -> CASUAL  \|  cart: empty  \|  \d+\.\d\d s \d+ tokens", told[0])
    assert re.fullmatch(
        r"start -> OFFER_SELL  \|  cart: 2 x Sharp Axe = 260 gold  \|  \d+\.\d\d s \d+ tokens",
        told[1],
    )


def test_what_the_guard_repaired_is_said(talk):
    seen = talk(["sold!"], [say("COMMIT_SALE", "Sold.")])
    assert not seen.session.sales
    assert "[repaired: " in seen.text and "Ada > Hm. Say that again" in seen.text


def test_a_line_that_is_replaced_is_said_anew_on_its_own_line(talk):
    seen = talk(["five gold, then"], [say("CASUAL", "It is yours for 5 gold")])
    assert seen.lines.count("Ada > It is yours for 5 gold") == 1
    assert "Ada > Hm. Say that again, would you?" in seen.lines
    assert "safe_line" in seen.text


def test_a_sale_is_summed_up_at_the_end(talk):
    seen = talk(["two axes", "ok", "yes"], [OFFER, REVIEW, SOLD])
    assert seen.lines[-1] == "bought: 2 x Sharp Axe for 260 gold"
    assert [sale.price for sale in seen.session.sales] == [260]


def test_the_shop_is_shown_again_with_what_is_left(talk):
    seen = talk(["two axes", "ok", "yes", "/shop"], [OFFER, REVIEW, SOLD])
    rows = [line for line in seen.lines if "Sharp Axe " in line and "│" in line]
    assert [re.findall(r"\d+", row)[-1] for row in rows] == ["3", "1"]


EXPLICIT = STALL.model_copy(update={"confirmation": "explicit"})


@pytest.mark.parametrize("typed", ["/confirm", "  /confirm "])
@pytest.mark.parametrize("world", [STALL, EXPLICIT], ids=["any", "explicit"])
def test_confirm_buys_what_was_reviewed_without_asking_the_model(talk, world, typed):
    seen = talk(["two axes", "ok", typed], [OFFER, REVIEW], world=world)
    assert len(seen.engine.requests) == 2
    assert [(sale.items, sale.price) for sale in seen.session.sales] == [({"axe": 2}, 260)]
    told = next(line for line in seen.lines if "COMMIT_SALE" in line)
    assert told.startswith("FINAL_CHECK -> COMMIT_SALE")
    assert seen.lines[-1] == "bought: 2 x Sharp Axe for 260 gold"


def test_in_a_shop_that_demands_it_only_confirm_buys(talk):
    lines = ["two axes", "ok", "yes, deal"]
    asked = talk(lines, [OFFER, REVIEW, SOLD], world=EXPLICIT)
    assert asked.session.sales == [] and "bought:" not in asked.text
    assert len(talk([*lines, "/confirm"], [OFFER, REVIEW, SOLD], world=EXPLICIT).session.sales) == 1


@pytest.mark.parametrize(
    ("typed", "sales"),
    [(["/confirm"], 0), (["two axes", "/confirm"], 0), (["two axes", "ok", "no", "/confirm"], 0),
     (["two axes", "ok", "/confirm", "/confirm"], 1)],
)  # fmt: skip
def test_confirm_without_a_review_buys_nothing_and_says_why(talk, typed, sales):
    seen = talk(typed, [OFFER, REVIEW, HELLO])
    assert len(seen.session.sales) == sales
    assert "there is no review to confirm: " in seen.text and "review the order" in seen.text


@pytest.mark.parametrize("quit_", ["/quit", "/exit", "/q", "  /quit "])
def test_quitting_leaves_without_asking_the_model(talk, quit_):
    assert talk([quit_, "hello"]).engine.requests == []


def test_the_end_of_the_input_is_the_end_of_the_chat(talk):
    seen = talk(["hello"], [HELLO])
    assert seen.session.state == "CASUAL" and len(seen.engine.requests) == 1


def test_an_empty_line_costs_no_turn(talk):
    seen = talk(["", "   ", "hello"], [HELLO])
    assert len(seen.engine.requests) == 1 and "Good day to you." in seen.text


def test_the_merchant_may_end_the_talk(talk):
    seen = talk(["bye", "and another thing"], [BYE])
    assert "Farewell, stranger." in seen.text and len(seen.engine.requests) == 1


def test_an_interrupt_at_the_prompt_is_a_farewell(talk, monkeypatch):
    def interrupted(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(Console, "input", interrupted)
    assert talk([]).session.state == ""


@pytest.mark.parametrize("markup", ["[bold]", "[/]", "[red]x[/red]", "[/nothing]", ":smile:", "["])
def test_what_the_merchant_says_is_no_markup_even_where_it_quotes_the_player(talk, markup):
    answer = say("OFFER_SELL", "Hear me: __PRICE__.", cart=[["Sharp Axe", 1], [f"?{markup}", 1]])
    seen = talk([f"an axe and {markup}"], [answer])
    assert f"I do not sell {markup}." in seen.text
    quoted = talk([markup], [say("CASUAL", f"What is {markup} to me?")])
    assert f"Ada > What is {markup} to me?" in quoted.lines


@pytest.mark.parametrize("markup", ["[bold]", "[/]", ":smile:"])
def test_what_a_world_says_is_no_markup(talk, markup):
    odd = Item(item_id="odd", item_name=f"Odd {markup} Rug", price=5, quantity=9)
    world = World(
        name="odd", merchant=MerchantInfo(name=f"Ada {markup}", persona="Calm."),
        currency=f"{markup}s", situation=Situation(location=f"{markup} here"), items=[odd],
    )  # fmt: skip
    offer = say("OFFER_SELL", "__CART__.", cart=[[odd.item_name, 1]])
    seen = talk(["a rug", "ok", "yes"], [offer, REVIEW, SOLD], world=world)
    for shown in (
        f"Ada {markup}: {markup} here", f"price ({markup}s)", f"Ada {markup} > 1 Odd {markup} Rug.",
        f"cart: 1 x Odd {markup} Rug = 5 {markup}s", f"bought: 1 x Odd {markup} Rug for 5 {markup}s",
    ):  # fmt: skip
        assert shown in seen.text
    table = Console(file=io.StringIO(), width=200)
    table.print(shop_table(world))
    assert f"Odd {markup} Rug" in table.file.getvalue()  # type: ignore[attr-defined]


def test_what_is_said_has_no_style_of_its_own(talk):
    seen = talk(["hello"], [say("CASUAL", "It is [bold red]hot[/] 'today' in 1999.")])
    line = next(line for line in seen.styled.splitlines() if "hot" in line)
    assert "> It is [bold red]hot[/] 'today' in 1999." in line


def test_a_long_line_is_left_to_the_terminal_to_wrap(talk):
    text = "One word after the other, as long as a merchant can hold his breath and then some."
    assert f"Ada > {text}" in talk(["hello"], [say("CASUAL", text)], width=40).lines


def test_an_answer_that_cannot_be_read_is_no_crash(talk):
    seen = talk(["hello", "hello"], ["garbage", '{"say":"'], guard="off")
    assert seen.lines.count("Ada > Hm. Say that again, would you?") == 2


def test_quotes_and_line_ends_in_a_free_answer_come_out_as_meant(talk):
    seen = talk(["hello"], [say("CASUAL", 'He said "no", \\o/.')], guard="off")
    assert 'Ada > He said "no", \\o/.' in seen.lines


def test_the_full_format_is_shown_when_it_is_whole(talk):
    answer = to_json(
        {"last_trade_context": "", "context_reason": "", "context_type": "CASUAL",
         "npc_thoughts": "", "npc_action": "", "npc_dialogue": "Well met."}
    )  # fmt: skip
    assert "Ada > Well met." in talk(["hi"], [answer], method="astp").lines


def test_an_engine_that_can_warm_up_is_given_the_shop(monkeypatch):
    class Warm(ScriptedEngine):
        def warm(self, messages: Sequence[object]) -> None:
            warmed.extend(messages)

    warmed: list[Any] = []
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    chat(STALL, Warm([]), "state", console=Console(file=io.StringIO()))
    assert [m.role for m in warmed] == ["system"] and "Sharp Axe" in warmed[0].content


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Good day.", "Good day."),
        ("It is __PRICE__ gold.", "It is "),
        ("__CART__, then.", ""),
        ("It is _PRICE_ gold.", "It is "),
        ("It is PRICE__ gold.", "It is "),
        ("I am Ada.", "I am Ada."),
        ("So __ITEMS__ and __PRICES__", "So "),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_words_before_a_placeholder_are_shown_and_none_after(line, shown, size):
    text = say("CASUAL", line)
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert "".join(spoken_pieces(iter(pieces))) == shown


def test_words_are_shown_as_they_come():
    pieces = ['{"last":"","state":"CASUAL","sa', 'y":"Good', " day", " to", ' you"', "}"]
    assert list(spoken_pieces(iter(pieces))) == ["Good", " day", " to", " you"]


def test_nothing_is_shown_of_what_is_not_the_spoken_line():
    assert list(spoken_pieces(iter(["I think ", '{"state":"CASUAL"}']))) == []


def test_a_line_behind_the_outcome_is_spoken_at_once_even_at_a_review(talk):
    decisions = [
        '{"last":"","state":"OFFER_SELL","cart":[["Sharp Axe",1]]}',
        '{"last":"OFFER_SELL","state":"FINAL_CHECK"}',
        '{"last":"FINAL_CHECK","state":"COMMIT_SALE"}',
    ]
    seen = talk(["an axe", "ok", "yes"], decisions, method="astp-stepwise")
    sold = {f"Ada > {line}" for line in merchant_lines()["COMMIT_SALE"]["plain"]}
    assert sold & set(seen.lines) and len(seen.session.sales) == 1
