"""The tasks that Haggle brings: each holds together and can be played to its end."""

from __future__ import annotations

import random

import pytest

from data_gen.language.phrasebook import Split
from data_gen.sop.users import TEMPERS, SimulatedUser, phrases_of, right_action
from haggle.core.agent import complete
from haggle.core.engine import Generation
from haggle.sop.definition import AGENT, USER
from haggle.sop.domain import SOP, Talk
from haggle.sop.evidence import read_evidence
from haggle.sop.task import QUESTION, TASKS, Task, load_task

NAMES = sorted(path.stem for path in TASKS.glob("*.yaml"))


@pytest.fixture(scope="module", params=NAMES)
def task(request) -> Task:
    return load_task(request.param)


def test_there_are_twenty_and_half_are_held_out():
    splits = [load_task(name).split for name in NAMES]
    assert len(splits) >= 20 and splits.count("test") == splits.count("train")
    assert {load_task(name).domain for name in NAMES} == {"game", "everyday"}


def test_it_is_of_the_size_of_a_real_procedure(task):
    assert 8 <= len(task.agent_action) <= 16 and 6 <= len(task.user_state) <= 12
    assert len(task.mandatory) >= 3 and len(task.conversation_profile.facts) >= 3
    assert any(
        vertex in task.graph.pred[vertex] or len(task.graph.pred[vertex]) > 1
        for vertex in task.graph
    )
    unexplained = {*task.agent_action, *task.user_state} - {"Start"} - set(task.briefs)
    assert not unexplained


def test_every_way_into_a_mandatory_step_needs_evidence(task):
    assert task.opening and set(task.opening) <= set(task.evidence)


def together(task: Task, state: str) -> set[str]:
    """The states that may be meant where this one may be: those behind the same steps."""
    steps = [v for v in task.graph if v.startswith(AGENT) and USER + state in task.graph[v]]
    beside = {v.removeprefix(USER) for step in steps for v in task.graph[step]}
    return beside if steps else set(task.user_state)


@pytest.mark.parametrize("split", ["train", "test"])
def test_what_people_say_is_evidence_of_what_they_mean(task, split):
    for meant, said in getattr(phrases_of(task), split).user.items():
        for line in said:
            spoken = line.format_map(task.user_profile)
            found = {
                state
                for state in together(task, meant) & set(task.evidence)
                if read_evidence(spoken, task.evidence[state], task.user_profile).holds
            }
            assert found == {meant} & set(task.evidence), (meant, spoken)


def test_train_and_test_say_nothing_alike(task):
    phrases = phrases_of(task)
    train, test = (
        {x for lines in p.user.values() for x in lines} for p in (phrases.train, phrases.test)
    )
    assert not train & test


@pytest.mark.parametrize("temper", TEMPERS)
def test_simulated_users_play_it_through_the_guard(task, temper):
    ended = reached = 0
    for seed in range(6):
        split: Split = "train" if seed % 2 else "test"
        rng = random.Random(seed)
        user, talk = SimulatedUser(task, rng, split, temper), Talk(task)
        while (line := user.speak(talk)) is not None:
            answer = right_action(talk, user.state, rng, split, line).text()
            turn = complete(SOP, talk, line, Generation(answer), "state")
            assert turn.failed == [] and turn.interventions == [], (line, turn.act)
        ended += talk.ended
        reached += talk.success
    assert ended >= 2 and (temper != "cooperative" or reached >= 5)


def test_a_question_is_answered_with_the_fact_it_asks_for():
    task = load_task("ferryman")
    rng, talk = random.Random(0), Talk(task)
    talk.last = "AskLanding"
    answer = right_action(talk, QUESTION, rng, "train", "How much is it?")
    assert answer.act == "Explain" and answer.say == "The fare is 3 silver a head."
    unknown = right_action(talk, QUESTION, rng, "train", "Why?").say
    assert unknown in (task.lines["Explain"], *task.variants["Explain"])
