"""The real small model plans on llama.cpp: held to forms, and free."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from haggle.planning.config import PlanConfig
from haggle.planning.planner import Plan
from haggle.sop.domain import Talk
from haggle.sop.planning import planning_character
from haggle.sop.task import load_task
from haggle.weights.models import resolve_base
from serving.engines import EngineConfig, load_engine

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed"),
]
SMALL = PlanConfig(candidates=2, votes=1, iterations=1, depth=2, best_of=2)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    try:
        base = resolve_base()
    except (HaggleError, ImportError) as error:
        pytest.skip(f"no base model here: {error}")
    if base.gguf_path is None:
        pytest.skip("the base model came without a GGUF")
    loaded = load_engine(EngineConfig(engine="llamacpp", gguf=base.gguf_path, context=4096))
    yield loaded
    loaded.close()


@pytest.mark.parametrize("method", ["cot+sop", "tot+sop", "mcts+sop"])
def test_it_keeps_to_the_procedure(engine, method):
    plans: list[Plan] = []
    talk = Talk(load_task("gatekeeper"))
    agent = planning_character(engine, "schema", method, SMALL, plans.append)
    turn = agent.reply(talk, "Good evening!")
    assert plans[0].found and plans[0].ended in {"", "early"}
    assert turn.failed == turn.interventions == [] and turn.line
    assert turn.usage.completion_tokens == plans[0].cost.completion_tokens > 0


def test_without_a_grammar_whatever_it_writes_is_a_whole_turn(engine):
    talk = Talk(load_task("gatekeeper"))
    turn = planning_character(engine, "off", "cot", SMALL).reply(talk, "Good evening!")
    assert turn.line and len(talk.exchanges) == 1
