"""Engines that answer nonsense, run out of time or die: the turn holds, the talk stays whole."""

from __future__ import annotations

import pytest

from haggle.core.engine import Generation
from haggle.planning.config import PlanConfig
from haggle.planning.planner import METHODS, Plan
from haggle.planning.reading import ACTION, read_name, read_vote
from haggle.sop.domain import SopTurn, Talk
from haggle.sop.planning import planning_character
from haggle.sop.task import load_task

from .conftest import RuledEngine, drawn, first

GATE = load_task("gatekeeper")
WITH_SOP = [name for name in METHODS if name.endswith("+sop")]


class Says(RuledEngine):
    """Says one thing, whatever it is asked."""

    def __init__(self, text: str) -> None:
        super().__init__(first)
        self.text = text

    def _answer(self, request):
        return Generation(self.text)


def planned(engine: RuledEngine, method: str, **config: float) -> tuple[Plan, SopTurn, Talk]:
    plans: list[Plan] = []
    talk = Talk(GATE)
    agent = planning_character(
        engine, "state", method, PlanConfig.model_validate(config), told=plans.append
    )
    turn = agent.reply(talk, "I am Mirela Voss.")
    return plans[0], turn, talk


@pytest.mark.parametrize(
    "text",
    ['{"User State":"Greeting","Agent Action":"OpenSesame","Agent Response":"Hm."}', "", "{}",
     "I would rather tell you of my youth. It was long ago: a fine time."],
    ids=["unknown", "none", "empty", "prose"],
)  # fmt: skip
@pytest.mark.parametrize("method", METHODS)
def test_nonsense_makes_a_safe_turn(method, text):
    plan, turn, talk = planned(Says(text), method)
    assert turn.failed == [] and turn.line
    assert len(talk.exchanges) == 1 and talk.last in {"", "AskName"}
    assert method.startswith("mcts") or not plan.found


def test_prose_that_names_an_action_counts():
    names = ("AskName", "AskPass", "Greet")
    assert read_name("Analysis: who is it?\nAgent Action: AskName", ACTION, names) == "AskName"
    said = "Therefore, the best agent action is: Agent.Greet."
    assert read_name(said, ACTION, names) == "Greet"
    assert read_name("I think AskPass is due now", ACTION, names) == "AskPass"
    assert read_name("AskPass or Greet", ACTION, names) == ""
    assert read_name('{"Agent Action":"Fly"}', ACTION, names) == ""


@pytest.mark.parametrize(
    ("text", "vote"),
    [('{"Answer":"1"}', True), ('{"Answer":"0"}', False), ("Therefore, the answer is: 1", True),
     ("There are 10 reasons", None), ("yes", None), ('{"Answer":1}', True)],
)  # fmt: skip
def test_votes_are_read(text, vote):
    assert read_vote(text) is vote


@pytest.mark.parametrize("method", WITH_SOP)
def test_without_time_the_procedure_goes_on(method):
    engine = RuledEngine(first)
    plan, turn, _ = planned(engine, method, seconds=0)
    assert engine.batches == 0 and plan.ended == "time"
    assert turn.act == "AskName" and turn.line == GATE.lines["AskName"]


def test_without_roll_outs_the_procedure_goes_on():
    engine = RuledEngine(drawn)
    plan, turn, _ = planned(engine, "mcts+sop", iterations=0)
    assert engine.batches == 0 and turn.act == "AskName" and not plan.found


def test_when_the_time_is_up_the_best_so_far_is_done(monkeypatch):
    engine = RuledEngine(drawn)
    seen = iter(range(1000))
    monkeypatch.setattr("haggle.planning.asking.time.perf_counter", lambda: float(next(seen)))
    plan, turn, talk = planned(engine, "mcts+sop", seconds=6)
    assert plan.ended == "time" and plan.found and 0 < engine.batches < 10
    assert turn.failed == [] and len(talk.exchanges) == 1
    assert turn.line == GATE.lines[turn.act], "code speaks where there is no time to"


@pytest.mark.parametrize(
    ("method", "batch"),
    [("tot+sop", 2), ("tot+sop", 3), ("tot+sop", 4), ("best-of-k+sop", 2), ("best-of-k+sop", 3),
     ("mcts+sop", 2), ("mcts+sop", 3), ("mcts+sop", 4), ("mcts+sop", 6)],
)  # fmt: skip
def test_an_engine_that_dies_leaves_the_best_so_far(method, batch):
    plan, turn, talk = planned(RuledEngine(drawn, dies_at=batch), method)
    assert (plan.ended, plan.trouble) == ("engine", "the engine is dead")
    assert turn.failed == [] and turn.line and len(talk.exchanges) == 1


@pytest.mark.parametrize("method", METHODS)
def test_an_engine_that_is_dead_from_the_start_fails_and_the_talk_stays(method):
    talk = Talk(GATE)
    before = dict(vars(talk))
    agent = planning_character(RuledEngine(first, dies_at=1), "state", method)
    with pytest.raises(RuntimeError, match="the engine is dead"):
        agent.reply(talk, "Hello.")
    assert vars(talk) == before
