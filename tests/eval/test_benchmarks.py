"""The turn cases that the project measures by."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval.cases import load_cases
from haggle.grammar.json_text import to_json
from haggle.trade.procedure import load_procedure
from haggle.trade.replay import replay
from haggle.trade.session import Session
from haggle.trade.world_io import load_worlds


@pytest.mark.parametrize(("name", "count"), [("dev", 110), ("held", 160)])
def test_the_sets_of_the_project_load(name, count):
    folder = Path(__file__).parents[2] / "eval" / "benchmarks"
    cases = load_cases(folder / f"{name}.jsonl", load_worlds(folder / "worlds"))
    assert len(cases) == count and len({c.world for c in cases}) == 2


def test_labelled_talk_loads_with_the_shops_of_the_corpus():
    folder = Path(__file__).parents[2]
    worlds = load_worlds(folder / "data_gen" / "corpus" / "worlds")
    cases = load_cases(folder / "eval" / "benchmarks" / "talked.jsonl", worlds, "astp-stepwise")
    assert len(cases) == 778 and len({c.world for c in cases}) == 6
    assert all(c.session is not None and c.gold.left is not None for c in cases)


@pytest.mark.parametrize(("name", "count", "shops"), [("talked-2", 587, 5), ("talked-3", 457, 4)])
def test_later_labelled_talk_loads_with_its_shops(name, count, shops):
    folder = Path(__file__).parents[2] / "eval" / "benchmarks" / name
    cases = load_cases(folder / "cases.jsonl", load_worlds(folder / "worlds"), "astp-stepwise")
    assert len(cases) == count and len({c.world for c in cases}) == shops
    assert all(c.session is not None and c.gold.left is not None for c in cases)


def test_the_sets_of_the_project_share_no_shop_and_no_line():
    folder = Path(__file__).parents[2] / "eval" / "benchmarks"
    worlds = load_worlds(folder / "worlds")
    dev, held = (load_cases(folder / f"{name}.jsonl", worlds) for name in ("dev", "held"))
    assert not {c.world for c in dev} & {c.world for c in held}
    assert not {c.player.casefold() for c in dev} & {c.player.casefold() for c in held}


def test_the_answers_to_reviews_are_many_of_many_carts_and_shops():
    """At least 400 that must not close and 400 that must, to 20 carts in 8 shops; of the held-out
    half nothing is told but numbers."""
    folder = Path(__file__).parents[2] / "eval" / "benchmarks"
    worlds, procedure = load_worlds(folder / "worlds"), load_procedure()
    cases = [load_cases(folder / f"{name}.jsonl", worlds) for name in ("review-dev", "review-held")]
    shops = [{case.world for case in half} for half in cases]
    carts, must, must_not = set[tuple[str, str]](), 0, 0
    for case in (*cases[0], *cases[1]):
        last = case.history[-1].npc
        carts.add((case.world, to_json([item.model_dump() for item in last.items])))
        reviewed = procedure.is_review(last.state)
        must += reviewed and case.gold.states == ["COMMIT_SALE"]
        must_not += reviewed and "COMMIT_SALE" in case.gold.forbidden_states
    enough = must >= 400 and must_not >= 400 and len(carts) >= 20
    assert enough and must + must_not == sum(map(len, cases)), (must, must_not, len(carts))
    assert len(shops[0] | shops[1]) >= 8 and not shops[0] & shops[1]


def test_what_a_benchmark_says_happened_stands_whatever_the_guard_would_make_of_it():
    folder = Path(__file__).parents[2] / "eval" / "benchmarks"
    worlds, procedure = load_worlds(folder / "worlds"), load_procedure()
    sold = 0
    for case in load_cases(folder / "dev.jsonl", worlds):
        session = Session(worlds[case.world])
        for exchange in case.history:
            replay(session, exchange)
            assert session.state == exchange.npc.state, case.id
        sales = sum(procedure.is_critical(exchange.npc.state) for exchange in case.history)
        assert len(session.sales) == sales, case.id
        sold += sales
    assert sold > 0
