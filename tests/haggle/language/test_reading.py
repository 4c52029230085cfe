"""One reading of a line a turn, and what it says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from haggle.language.english import names
from haggle.language.english.cues import Cues
from haggle.language.english.line import Line
from haggle.language.english.linker import English
from haggle.language.reading import Linker, NoLinker, Reading, View
from haggle.trade.prompting import linked_line
from haggle.trade.world import World


class Counting:
    """A linker that counts its readings."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def read(self, line: str, view: View) -> Reading:
        self.lines.append(line)
        return English().read(line, view)

    def nearness(self, line: str, texts: Sequence[str]) -> list[float]:
        return []


def linked_by(visit, linker: Linker):
    visit.session.linker = linker
    return visit


def test_a_reading_holds_mentions_quantities_and_numbers(stall: World) -> None:
    line = "two dozen axes for fifty, and minus three maps"
    reading = English().read(line, stall.view())
    axes, _ = reading.mentions
    assert line[axes.start : axes.end] == "axes" and axes.quantity == 24
    assert [thing.name for thing in axes.candidates] == ["Sharp Axe"]
    assert [(number.value, number.digits) for number in reading.numbers] == [(50, "50")]
    assert reading.named() == {"axe", "map"} and reading.uncountable() == {"map"}


@pytest.mark.parametrize(
    "line", ["axes, twenty, two maps", "axes (twenty), two maps", "twenty axes. Two maps"]
)
def test_a_number_ends_where_its_part_of_a_line_ends(stall: World, line: str) -> None:
    mentions = English().read(line, stall.view()).mentions
    assert [mention.quantity for mention in mentions] == [20, 2]


def test_a_line_is_read_once_a_turn(visit) -> None:
    linker = Counting()
    visit = linked_by(visit(), linker)
    visit.session.messages("an axe, please")
    visit.turn("OFFER_SELL", "__CART__?", player="an axe, please", cart=[["Sharp Axe", 1]])
    assert linker.lines == ["an axe, please"]
    visit.session.messages("an axe, please")
    assert len(linker.lines) == 2  # the cart is another one now


def test_without_a_linker_nothing_is_marked(stall: World) -> None:
    reading = NoLinker().read("two {axes}", stall.view())
    assert linked_line(reading) == "two (axes)" and not reading.named(sure=False)


def test_without_a_linker_a_sale_closes_by_the_games_own_call_alone(visit) -> None:
    visit = linked_by(visit(), NoLinker())
    visit.turn("OFFER_SELL", "__CART__?", player="un hacha", cart=[["Sharp Axe", 1]])
    visit.review()
    turn = visit.turn("COMMIT_SALE", "Sold!", player="yes")
    assert turn.withheld == "confirmation" and not visit.session.sales
    visit.session.confirm(visit.session.review.id)
    assert [list(sale.items.values()) for sale in visit.session.sales] == [[1]]


def test_a_misspelt_list_of_words_is_an_error() -> None:
    with pytest.raises(ValueError, match="holow"):
        Cues.model_validate({"holow": "a an"})


def test_a_shop_does_not_remember_every_word_that_was_ever_typed(monkeypatch):
    monkeypatch.setattr(names, "KEPT", 20)
    known = names.Names("coins", [("rope", "Hemp Rope", True)])
    for number in range(100):
        known.is_idle(Line.of(f"wrd{number}").words[0])
    assert len(known._idle) <= 20 and len(known._scores) <= 20
    assert known.scores(Line.of("rope").words[0])
