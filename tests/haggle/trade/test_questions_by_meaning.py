"""Questions about goods in twelve shops, answered without a model: the right sentence is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haggle.language.embeddings import load_embedder
from haggle.language.english.linker import English
from haggle.trade.guard import Ruling
from haggle.trade.merchant import TRADE
from haggle.trade.methods import get_method
from haggle.trade.session import Session
from haggle.trade.wire import Proposal
from haggle.trade.world import World
from haggle.trade.world_io import load_world

BENCHMARKS = Path(__file__).parents[3] / "eval" / "benchmarks"


def told(world: World, linker: English, view: tuple[str, ...], line: str) -> str:
    """What is told where the model shows the goods that a line names, else those in view."""
    session = Session(world, method=get_method("astp-stepwise"), linker=linker)
    session.shown = view
    named = tuple(world.by_id[i].item_name for i in sorted(session.named(line)))
    shown = named[:3] or view or (world.inventory[0].item_name,)
    resolved = TRADE.apply(
        session, line, Ruling(Proposal("", "SHOW_ITEMS", "", show=shown)), "state"
    )
    return " ".join(note.name for note in resolved.notes if note.kind == "told")


def answered(linker: English, folder: Path) -> tuple[int, int]:
    """How many of the questions that a shop's file answers are answered; their number."""
    worlds = {path.stem: load_world(path) for path in sorted(folder.glob("*.yaml"))}
    rows = [json.loads(row) for row in (folder / "questions.jsonl").read_text().splitlines()]
    known = [row for row in rows if not row["unknown"]]
    right = 0
    for row in known:
        world = worlds[row["shop"]]
        view = tuple(world.by_id[i].item_name for i in row["view"])
        said = told(world, linker, view, row["line"])
        right += any(answer.rstrip(".!?") in said for answer in row["answers"])
    return right, len(known)


@pytest.mark.parametrize(("by_meaning", "least"), [(False, 0.3), (True, 0.7)])
@pytest.mark.parametrize("name", ["questions-dev", "questions-held"])
def test_questions_are_answered(name: str, by_meaning: bool, least: float):
    embedder = load_embedder("auto") if by_meaning else None
    if by_meaning and embedder is None:
        pytest.skip("the extra `embeddings` is not installed")
    right, n = answered(English(embedder), BENCHMARKS / name)
    print(f"{name}, {'by meaning' if by_meaning else 'by words'}: {right} of {n} answered")
    assert right >= least * n


@pytest.fixture
def stall_by_meaning(stall):
    embedder = load_embedder("auto")
    if embedder is None:
        pytest.skip("the extra `embeddings` is not installed")
    return Session(stall, method=get_method("astp-stepwise"), linker=English(embedder))


def test_small_talk_is_not_answered_with_goods(stall_by_meaning):
    session = stall_by_meaning
    session.shown = ("Sharp Axe",)
    resolved = TRADE.apply(
        session, "And how is your wife today?", Ruling(Proposal("", "CASUAL", "")), "state"
    )
    assert not resolved.notes
