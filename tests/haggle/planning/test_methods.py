"""Every method chooses, and each by its own rule; a search looks ahead and asks in batches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haggle.core.errors import HaggleError
from haggle.planning.config import PlanConfig
from haggle.planning.planner import METHODS, Plan
from haggle.planning.problem import Position
from haggle.sop.domain import Talk
from haggle.sop.planning import SopProblem, planning_character
from haggle.sop.task import TASKS, Task, load_task

from .conftest import RuledEngine, drawn, first, liking

GATE = load_task("gatekeeper")
NAMES = sorted(path.stem for path in TASKS.glob("*.yaml"))


def asked(task: Task, *path: str) -> Talk:
    """A talk after `Ask`, or after other steps of the procedure."""
    talk = Talk(task)
    talk.path, talk.last, talk.state = path, path[-1].removeprefix("Agent."), path[-1][6:]
    return talk


@pytest.mark.parametrize("method", METHODS)
def test_each_method_answers_a_turn_and_says_what_it_took(method):
    plans: list[Plan] = []
    engine = RuledEngine(first)
    agent = planning_character(engine, "schema", method, told=plans.append)
    talk = Talk(GATE)
    turn = agent.reply(talk, "I am Mirela Voss.")
    assert turn.act and turn.line == "As you say." and turn.valid_json
    assert len(talk.exchanges) == 1
    cost = plans[0].cost
    assert (cost.calls, cost.batches) == (engine.requests, engine.batches)
    assert turn.usage.prompt_tokens == cost.prompt_tokens == 10 * cost.calls
    assert turn.latency_s == cost.seconds > 0


def test_mcts_finds_the_path_that_only_pays_later(trap):
    """The votes like every step, so only the future tells the two apart."""
    engine = RuledEngine(first)
    plan: list[Plan] = []
    agent = planning_character(engine, "state", "mcts+sop", told=plan.append)
    turn = agent.reply(asked(trap, "Agent.Ask"), "Go on.")
    assert turn.act == "Right" and plan[0].rounds == 3
    hasty = planning_character(RuledEngine(first), "state", "cot+sop")
    assert hasty.reply(asked(trap, "Agent.Ask"), "Go on.").act == "Left"


@pytest.mark.parametrize("method", ["mcts", "mcts+sop", "best-of-k+sop"])
def test_with_perfect_votes_the_right_step_is_found(method):
    config = PlanConfig(candidates=40, best_of=40)
    engine = RuledEngine(liking("AskName"))
    agent = planning_character(engine, "state", method, config)
    assert agent.reply(Talk(GATE), "Hm.").act == "AskName"


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(NAMES), seed=st.integers(0, 10_000))
def test_mcts_with_the_procedure_never_does_what_the_graph_forbids(name, seed):
    """Whatever the model says, and with the guard off."""
    config = PlanConfig(iterations=2, depth=4, votes=1, candidates=2)
    engine = RuledEngine(drawn)
    agent = planning_character(engine, "schema", "mcts+sop", config)
    talk = Talk(load_task(name))
    for _ in range(5):
        if not talk.ended:
            turn = agent.reply(talk, "Well.", seed=seed)
            assert turn.failed == turn.interventions == []


def test_a_search_waits_for_a_third_of_the_answers_at_most():
    plans: list[Plan] = []
    agent = planning_character(RuledEngine(drawn), "state", "mcts+sop", told=plans.append)
    talk = Talk(GATE)
    for line in ("Good day.", "Why?", "I am Mirela Voss."):
        agent.reply(talk, line)
    cost = [plan.cost for plan in plans if plan.rounds]
    assert cost, "no turn was searched"
    assert 3 * sum(one.batches for one in cost) <= sum(one.calls + one.saved for one in cost)
    assert sum(one.saved for one in cost) > 0, "no position was seen twice"


def test_words_are_written_for_the_chosen_action_alone():
    engine = RuledEngine(drawn)
    planning_character(engine, "state", "mcts+sop").reply(Talk(GATE), "Good day.")
    spoken = [one for one in engine.asked if getattr(one.constraint, "spoken", False)]
    assert len(spoken) == 1 and spoken[0] is engine.asked[-1]


def test_where_there_is_one_action_nothing_is_searched(trap):
    plans: list[Plan] = []
    engine = RuledEngine(liking("Chat"))
    agent = planning_character(engine, "state", "mcts+sop", told=plans.append)
    only = trap.model_copy(update={"agent_action": [n for n in trap.agent_action if n != "Chat"],
                                   "user_state": ["Ready", "Fell", "Walks"]})  # fmt: skip
    turn = agent.reply(asked(only, "Agent.Ask", "User.Ready", "Agent.Right"), "I walk.")
    assert turn.act == "Tower" and plans[0].ended == "early" and engine.requests == 1


def test_the_nearest_sub_path_tells_the_model_what_comes_next():
    engine = RuledEngine(first)
    planning_character(engine, "schema", "cot+sop").reply(Talk(GATE), "Good day.")
    told = engine.asked[0].messages[1].content
    assert "goes on with these, so prefer them: AskName" in told
    planning_character(engine, "schema", "cot").reply(Talk(GATE), "Good day.")
    assert "prefer them" not in engine.asked[1].messages[1].content


def test_a_search_changes_no_talk():
    talk = Talk(GATE)
    before = dict(vars(talk))
    planning_character(RuledEngine(drawn), "state", "mcts").planner.plan(talk, "Hello.")
    assert vars(talk) == before


def test_the_same_seed_plans_the_same():
    def acts(seed: int) -> list[str]:
        agent = planning_character(RuledEngine(drawn), "state", "mcts+sop")
        talk = Talk(GATE)
        return [agent.reply(talk, line, seed=seed).act for line in ("Hm.", "So?", "Well.")]

    assert acts(1) == acts(1)
    assert len({tuple(acts(seed)) for seed in range(3)}) > 1


def test_an_unknown_method_is_named():
    with pytest.raises(HaggleError, match=r"unknown planner 'mcts\+sops'"):
        planning_character(RuledEngine(first), "state", "mcts+sops")


def test_a_step_that_the_graph_forbids_is_applied_without_the_procedure():
    problem = SopProblem(sop=False)
    after = problem.step(Position(Talk(GATE), "Hm.", "Other"), "Admit")
    assert after.path == ("User.Other", "Agent.Admit") and after.success


def test_a_user_state_without_its_evidence_is_not_considered():
    here = asked(GATE, "Agent.AskName")
    problem = planning_character(RuledEngine(first), "state", "mcts+sop").planner.problem
    assert "GivesName" in problem.states(Position(here, "I am Mirela Voss."))
    assert "GivesName" not in problem.states(Position(here, "Guess who I am."))
    assert "GivesName" in problem.states(Position(here)), "the future is not known"
    free = planning_character(RuledEngine(first), "schema", "mcts+sop").planner.problem
    assert "GivesName" in free.states(Position(here, "Guess who I am."))
