"""What becomes of nicknames: the outcomes are told apart, and so is what the lexicon changes."""

from __future__ import annotations

import re

import pytest

from data_gen import recognised
from data_gen.recognised import WAYS, Asked, asked, outcome
from haggle.language.english.linker import English
from haggle.trade.world import World

SHOP = World.model_validate(
    {
        "name": "stall",
        "merchant": {"name": "Ada", "persona": "A calm trader."},
        "currency": "gold",
        "items": [
            {"item_id": "boots", "item_name": "Marsh Boots", "price": 5, "quantity": 3},
            {"item_id": "lamp", "item_name": "Brass Lamp", "price": 5, "quantity": 3},
            {"item_id": "oil", "item_name": "Tin Lamp", "price": 5, "quantity": 3},
        ],
    }
)


@pytest.mark.parametrize(
    ("line", "name", "found"),
    [
        ("the marsh boots please", "Marsh Boots", "right"),
        ("a lamp please", "Brass Lamp", "first"),
        ("a lamp please", "Tin Lamp", "among"),
        ("a lamp please", "Marsh Boots", "wrong"),
        ("the dohickey please", "Marsh Boots", "bare"),
    ],
)
def test_the_outcome_of_a_nickname(line: str, name: str, found: str):
    assert outcome(Asked(line, SHOP.view(), name), English(lexicon=False)) == found


def test_nicknames_of_a_shop_and_of_what_it_has_not_are_asked_for():
    lines = list(asked("test", WAYS["usual"], 2))
    assert any(line.name for line in lines) and any(not line.name for line in lines)
    again = asked("test", WAYS["usual"], 2)
    assert [line[::2] for line in lines] == [line[::2] for line in again], "drawn by a seed"


def test_what_the_lexicon_changes_is_told_in_pairs_of_the_same_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(recognised, "said", lambda split: [])  # the corpus takes minutes
    recognised.main(["train", "--shops", "6"])
    told = capsys.readouterr().out
    shares = [float(s) for s in re.findall(r"usual .*, first candidate right: ([\d.]+)%", told)]
    (change,) = re.findall(r"usual .* lexicon alone: first candidate right (\S+) \(", told)
    assert float(change) == pytest.approx(shares[1] - shares[0], abs=0.11) and float(change) > 0
    assert "beside embeddings" not in told
