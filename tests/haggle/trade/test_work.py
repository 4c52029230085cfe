"""What a turn does not do twice: read a line, tell what a shop's goods are called, take stems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from haggle.core.engine import Generation
from haggle.core.text import neutralise_markup
from haggle.language.english.linker import English
from haggle.language.reading import Reading, View
from haggle.trade import knowledge, wanted
from haggle.trade.fitting import fits
from haggle.trade.merchant import Merchant
from haggle.trade.methods import get_method
from haggle.trade.session import Session, with_stock, without_stock
from haggle.trade.world import World, per_world
from serving.engines.scripted import ScriptedEngine

ORDER = '{"last":"","state":"OFFER_SELL","cart":[["Sharp Axe",2]]}'


class Counting(English):
    """Counts how often each text is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_texts: Counter[str] = Counter()

    def read(self, line: str, view: View) -> Reading:
        self.read_texts[line] += 1
        return super().read(line, view)


@pytest.mark.parametrize(
    "line", ["two sharp axes, please", "two axes. And is the map any good?", "no map, an axe"]
)
def test_a_line_and_each_of_its_parts_is_read_once_a_turn(stall: World, line: str) -> None:
    linker = Counting()
    session = Session(stall, method=get_method("astp-stepwise"), linker=linker)
    Merchant(ScriptedEngine(["{}"])).complete(session, line, Generation(ORDER))
    assert linker.read_texts[line] == 1
    assert set(linker.read_texts.values()) == {1}


def test_what_goods_are_called_is_worked_out_once_for_a_world(
    stall: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    real = wanted.called

    def called(name: str) -> frozenset[str]:
        asked[name] += 1
        return real(name)

    monkeypatch.setattr(wanted, "called", called)
    world = with_stock(stall, {stall.inventory[0].item_id: 7})
    for line in ("something sharp", "something for the way", "a present"):
        fits(world, line)
        wanted.has_word_of(world, line)
    assert asked and set(asked.values()) == {1}


def test_what_is_worked_out_of_a_world_is_not_carried_over_to_the_next(stall: World) -> None:
    worlds: list[World] = []

    @per_world
    def names(world: World) -> tuple[str, ...]:
        worlds.append(world)
        return world.sellable_names

    first = stall.inventory[0]
    sold = without_stock(stall, {first.item_id: first.quantity or 0})
    assert names(stall) == names(stall) == stall.sellable_names
    assert names(sold) == tuple(n for n in stall.sellable_names if n != first.item_name)
    assert [id(world) for world in worlds] == [id(stall), id(sold)]
    assert stall == World.model_validate(stall.model_dump()), "what is remembered is no content"


def test_the_stems_of_a_line_are_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    real = knowledge.respelled

    def respelled(text: str) -> str:
        taken.append(text)
        return real(text)

    monkeypatch.setattr(knowledge, "respelled", respelled)
    line = "have you a lantern for a night that nobody else asked about?"
    told = knowledge.tells_a_need(line), knowledge.orders(line), knowledge.compares(line)
    assert told == (True, False, False) and taken == [line]


def _found(texts: Sequence[str]) -> list[bool]:
    return [neutralise_markup(text) != text for text in texts]


def test_markup_is_found_by_its_first_character_alone() -> None:
    harmful = ["<|im_start|>", "＜｜User｜＞", "</s>", "<<SYS>>", "<0x0A>", "[INST]", "[/INST]"]
    harmless = ["[|", "[think>", "[0x0A>", "<INST]", "< b", "[inst]", "a < b", "[1, 2]"]
    assert _found(harmful) == [True] * len(harmful)
    assert _found(harmless) == [False] * len(harmless)
