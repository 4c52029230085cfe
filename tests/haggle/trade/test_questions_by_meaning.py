"""Questions about goods in twelve shops, answered without a model: the right sentence is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from haggle.language.embeddings import load_embedder
from haggle.language.english.linker import English
from haggle.trade.merchant import TRADE, Merchant
from haggle.trade.methods import get_method
from haggle.trade.records import TurnRecord
from haggle.trade.ruling import Ruling
from haggle.trade.session import Session
from haggle.trade.wire import Proposal
from haggle.trade.world import World
from haggle.trade.world_io import load_world
from serving.engines.scripted import ScriptedEngine

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
def tack() -> Session:
    """A customer who was just shown one good, with a merchant who reads by meaning."""
    embedder = load_embedder("auto")
    if embedder is None:
        pytest.skip("the extra `embeddings` is not installed")
    world = load_world(BENCHMARKS / "questions-dev" / "griffin_tack.yaml")
    session = Session(world, method=get_method("astp-stepwise"), linker=English(embedder))
    session.shown = ("Talon Caps",)
    return session


def decided(session: Session, line: str, decision: str) -> TurnRecord:
    """The turn that comes of a model's decision."""
    return Merchant(ScriptedEngine([decision])).reply(session, line)


def test_small_talk_is_not_answered_with_goods(tack: Session):
    line, proposal = "And how is your wife today?", Proposal("", "CASUAL", "")
    assert not TRADE.apply(tack, line, Ruling(proposal), "state").notes


def test_who_asks_about_goods_in_view_orders_none(tack: Session):
    order = '{"last":"","state":"OFFER_SELL","cart":[["Talon Caps",1]]}'
    turn = decided(tack, "Will the bird land on rock with those on?", order)
    assert turn.state == "SHOW_ITEMS" and not turn.cart and "Take them off before" in turn.says


def test_who_wants_goods_in_view_still_gets_them(tack: Session):
    order = '{"last":"","state":"OFFER_SELL","cart":[["Talon Caps",2]]}'
    assert decided(tack, "Could I have two of them?", order).cart == {"talon_caps": 2}


def test_goods_that_nobody_named_are_named_where_they_are_told_of(tack: Session):
    show = '{"last":"","state":"SHOW_ITEMS","show":["Moult Balm"]}'
    turn = decided(tack, "Her feathers itch. What is it that soothes the roots?", show)
    assert "Moult Balm" in turn.says
