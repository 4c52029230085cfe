"""The core knows no trade, and nobody outside a format asks which one it is."""

from __future__ import annotations

import re

import pytest

from haggle.core.config import ROOT

TRADE = re.compile(r"cart|price|sell|\bsale|shop|merchant|stock|\bbid", re.IGNORECASE)
SOURCES = sorted((ROOT / "haggle" / "core").glob("*.py"))
ROOMS = ("haggle", "serving", "data_gen", "training", "eval", "pipeline")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_core_has_no_word_of_trade(path):
    told = [line for line in path.read_text(encoding="utf-8").splitlines() if TRADE.search(line)]
    assert told == []


def test_the_core_is_small():
    lines = [line for path in SOURCES for line in path.read_text(encoding="utf-8").splitlines()]
    assert sum(bool(line.strip()) for line in lines) <= 1500


def test_only_the_formats_know_their_names():
    asking = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\bwire\s*(==|!=)", line) and path.name != "wire.py"
    ]
    assert asking == []


def test_files_can_be_read_at_a_sitting():
    long = [
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        if len(path.read_text(encoding="utf-8").splitlines()) > 400
    ]
    assert long == []
