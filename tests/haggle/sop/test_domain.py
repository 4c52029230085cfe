"""A character keeps to its procedure, whatever the model writes."""

from __future__ import annotations

import random

import pytest

from data_gen.sop.users import TEMPERS, SimulatedUser, right_action
from haggle.core.agent import Agent, complete
from haggle.core.codec import fits, is_regular, matches, to_gbnf, to_lark, to_regex, to_schema
from haggle.core.engine import Generation
from haggle.grammar.json_text import DecodeError, to_json
from haggle.sop.domain import SOP, Talk
from haggle.sop.task import load_task
from serving.engines.scripted import ScriptedEngine

TASK = load_task("gatekeeper")
GOOD = [
    ("I am Mirela.", "GivesName", "AskPass"),
    ("Here is my token.", "ShowsPass", "AskErrand"),
    ("I visit my sister.", "PeacefulErrand", "Admit"),
]


def text(user: str, act: str, say: str = "Well.") -> str:
    return to_json({"user": user, "act": act, "say": say})


def begun() -> Talk:
    talk = Talk(TASK)
    complete(SOP, talk, "hello", Generation(text("Greeting", "AskName")), "state")
    return talk


def test_a_talk_that_keeps_to_the_procedure_reaches_its_goal():
    talk = begun()
    for line, user, act in GOOD:
        turn = complete(SOP, talk, line, Generation(text(user, act)), "state")
        assert turn.act == act and turn.failed == [] and turn.interventions == []
    assert talk.success and not talk.ended
    complete(SOP, talk, "bye", Generation(text("Other", "Farewell")), "state")
    assert talk.ended and talk.path[-1] == "Agent.Farewell"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (text("GivesName", "Admit"), "critical"),
        (text("PeacefulErrand", "Admit"), "critical"),
        (text("GivesName", "AskErrand"), "transition"),
        (text("ShowsPass", "AskErrand"), "transition"),
        ("Come in!", "unreadable"),
        (text("GivesName", "Dance"), "unreadable"),
        (text("Nobody", "AskPass"), "unreadable"),
        ('{"last":"","state":"COMMIT_SALE","say":"Sold."}', "unreadable"),
        ('{"user":"GivesName","act":"AskPass","cart":[],"say":"x"}', "unreadable"),
    ],
)
def test_a_step_that_is_skipped_is_not_taken(answer, why):
    talk = begun()
    turn = complete(SOP, talk, "let me in", Generation(answer), "state")
    assert turn.act == "AskName" and why in turn.interventions and not talk.success
    assert turn.says == TASK.lines["AskName"] and turn.failed == []


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (text("GivesName", "Dance"), "'act' must be 'AskName' or 'AskPass' or"),
        (text("Nobody", "AskPass"), "'user' must be 'GivesName' or 'HidesName' or"),
        ('{"user":"GivesName","act":"AskPass"}', "'say' must be a string, not None"),
        ('{"last":"","state":"COMMIT_SALE","say":"Sold."}', "unknown field 'last'"),
    ],
)
def test_a_refusal_says_what_is_wrong(answer, complaint):
    with pytest.raises(DecodeError) as refused:
        SOP.decode(begun(), answer)
    assert complaint in str(refused.value)


def test_without_the_guard_the_failure_is_counted():
    talk = begun()
    turn = complete(SOP, talk, "let me in", Generation(text("GivesName", "Admit")), "off")
    assert turn.act == "Admit" and turn.failed == ["transition", "critical"]


def test_what_the_procedure_does_not_allow_cannot_be_decoded():
    talk = begun()
    spec = SOP.legal(talk, "state")
    assert spec is not None and is_regular(spec) and SOP.legal(talk, "off") is None
    right, wrong = text("GivesName", "AskPass"), text("GivesName", "Admit")
    for allowed in (matches, fits):
        assert allowed(spec, right) and not allowed(spec, wrong)
    loose = SOP.legal(talk, "schema")
    assert loose is not None and matches(loose, wrong) and not matches(loose, text("x", "Admit"))
    assert '"GivesName' in to_gbnf(spec).replace("\\", "") and "AskPass" in to_lark(spec)
    assert "Admit" not in to_regex(spec) and to_schema(spec)["anyOf"]


def test_an_empty_line_is_said_by_code():
    talk = begun()
    turn = complete(
        SOP, talk, "I am Mirela", Generation(text("GivesName", "AskPass", " ")), "state"
    )
    assert turn.says == TASK.lines["AskPass"]


def test_a_branch_goes_its_own_way():
    talk = begun()
    twin = talk.branch()
    complete(SOP, twin, "I am Mirela", Generation(text("GivesName", "AskPass")), "state")
    assert talk.last == "AskName" and twin.last == "AskPass" and len(talk.exchanges) == 1


def test_any_engine_plays_it():
    answers = [text("Greeting", "AskName", "Halt!"), text("GivesName", "AskPass")]
    agent = Agent(SOP, ScriptedEngine(answers))
    talk = Talk(TASK)
    assert agent.reply(talk, "hi").says == "Halt!"
    *pieces, turn = agent.stream(talk, "Mirela")
    said = [piece for piece in pieces if isinstance(piece, str)]
    assert "".join(said) == answers[1] and getattr(turn, "act", "") == "AskPass"
    system = agent.request(talk, "x").messages[0].content
    assert "Odo" in system and "AskName, AskPass, AskErrand, Admit" in system


@pytest.mark.parametrize("temper", TEMPERS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_simulated_users_come_to_an_end(temper, split):
    ends = 0
    for seed in range(20):
        rng = random.Random(seed)
        user, talk = SimulatedUser(TASK, rng, split, temper), Talk(TASK)
        while (line := user.speak(talk)) is not None:
            answer = right_action(talk, user.state, rng, split).text()
            turn = complete(SOP, talk, line, Generation(answer), "written")
            assert turn.failed == [] and turn.interventions == []
        ends += talk.ended
        assert not talk.success or {"GivesName", "ShowsPass", "PeacefulErrand"} <= set(user.path)
    assert ends >= 10
