"""Decisions asked for in the domain's own format, which a trained character knows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from data_gen.sop.users import draw_person
from haggle.core.agent import Agent
from haggle.core.codec import matches, to_lark
from haggle.core.config import load_config, named_config
from haggle.core.engine import Generation, GenerationRequest
from haggle.grammar.json_text import to_json
from haggle.planning.config import PlanConfig
from haggle.planning.planner import METHODS, Plan
from haggle.planning.problem import Position
from haggle.planning.reading import Form
from haggle.sop.domain import SOP, Legal, Talk
from haggle.sop.planning import SopProblem, planning_character
from haggle.sop.task import load_task

OWN = PlanConfig(asks="own")
GATE = load_task("gatekeeper")


class TrainedEngine:
    """Answers a request of the domain's format by what it says, and the paper's by chance.

    What is asked at temperature 0 is answered alike every time.
    """

    name = model = "trained"

    def __init__(self) -> None:
        self.own: list[GenerationRequest] = []
        self.papers: list[GenerationRequest] = []

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        return [self._answer(request) for request in requests]

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        yield self.generate([request])[0]

    def close(self) -> None: ...

    def _answer(self, request: GenerationRequest) -> Generation:
        form = request.constraint
        rng = random.Random(f"{request.messages}{request.seed if request.temperature else ''}")
        if isinstance(form, Form):
            self.papers.append(request)
            row = rng.choice(form.rows)
            said = {label: rng.choice(values) for label, values in row}
        else:
            self.own.append(request)
            assert isinstance(form, Legal)
            user, acts = rng.choice(form.answers)
            said = {"user": user, "act": rng.choice(acts)}
            if form.spoken:
                said["say"] = f"As you say, {rng.randint(0, 9)}."
        assert to_lark(form) and matches(form, to_json(said)), "a grammar of it holds the answer"
        return Generation(to_json(said), prompt_tokens=10, completion_tokens=2)


def legal(request: GenerationRequest) -> Legal:
    assert isinstance(request.constraint, Legal)
    return request.constraint


def form(request: GenerationRequest) -> Form:
    assert isinstance(request.constraint, Form)
    return request.constraint


@pytest.mark.parametrize("seed", range(4))
def test_cot_in_its_own_format_is_the_character_without_a_planner(seed):
    """The same requests, and so the same decisions, lines and interventions of the guard."""
    task = load_task(("gatekeeper", "bank_clerk", "lost_property", "healer")[seed])
    engines = TrainedEngine(), TrainedEngine()
    plain = Agent(SOP, engines[0], "state")
    planned = planning_character(engines[1], "state", "cot+sop", OWN)
    user = draw_person(task, random.Random(seed), task.split)
    talks = Talk(user.task), Talk(user.task)
    while (line := user.speak(talks[0])) is not None:
        one, two = plain.reply(talks[0], line), planned.reply(talks[1], line)
        for field in ("user_state", "act", "line", "interventions", "withheld", "failed"):
            assert getattr(one, field) == getattr(two, field)
    asked = [
        [(r.messages, r.constraint, r.max_tokens, r.temperature) for r in engine.own]
        for engine in engines
    ]
    assert asked[0] == asked[1] and asked[0] and not engines[1].papers


@pytest.mark.parametrize("method", METHODS)
def test_every_method_asks_for_decisions_in_the_own_format(method):
    plans: list[Plan] = []
    engine = TrainedEngine()
    agent = planning_character(engine, "schema", method, OWN, plans.append)
    turn = agent.reply(Talk(GATE), "I am Mirela Voss.")
    assert turn.act and turn.line.startswith("As you say, ") and plans[0].found
    assert all(r.messages[0].content.startswith("You are Odo") for r in engine.own)
    labels = {label for r in engine.papers for label in form(r).labels}
    assert labels <= {"Answer", "Best Path", "User State"}, "votes, and what users will do"
    assert any(legal(r).spoken for r in engine.own)


def test_candidates_are_drawn_behind_the_user_state_that_was_read():
    engine = TrainedEngine()
    agent = planning_character(engine, "state", "mcts+sop", PlanConfig(asks="own", temperature=0.7))
    agent.reply(Talk(GATE), "Good evening.")
    first, *drawn, words = engine.own
    assert first.temperature == 0.0 and len(legal(first).answers) > 1
    assert drawn and all(r.temperature == 0.7 for r in drawn)
    heard = legal(drawn[0]).answers[0][0]
    assert [state for state, _ in legal(words).answers] == [heard]
    assert len(legal(words).answers[0][1]) == 1 and legal(words).spoken
    assert len({r.seed for r in drawn}) == len(drawn)


def test_what_is_no_decision_is_no_choice():
    problem = SopProblem()
    at = Position(Talk(GATE), "Hm.")
    for text in ("no JSON", '{"user":"Nobody","act":"AskName"}', '{"user":"Other"}'):
        assert problem.read(at, text) is None
    found = problem.read(at, '{"user":"Other","act":"AskName"}')
    assert found is not None and (found.heard, found.act, found.say) == ("Other", "AskName", "")


def test_the_shipped_model_has_settings_of_its_own():
    config = load_config(named_config("plan", "character"), PlanConfig)
    assert config.asks == "own" and PlanConfig().asks == "paper"
