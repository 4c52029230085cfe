"""A task holds together, or its mistake is told with file, vertex and edge."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from haggle.core.errors import HaggleError
from haggle.sop.task import TASKS, load_task

GATE: dict[str, Any] = yaml.safe_load((TASKS / "gatekeeper.yaml").read_text(encoding="utf-8"))


def load(tmp_path: Path, **changes: Any) -> Any:
    """The gatekeeper's task with keys changed, read from a file."""
    data = deepcopy(GATE)
    for path, value in changes.items():
        *outer, key = path.split("__")
        inner = data
        for name in outer:
            inner = inner[name]
        inner[key] = value
    file = tmp_path / f"{len(list(tmp_path.iterdir()))}.yaml"
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    return load_task(str(file))


def test_the_gatekeeper_knows_its_mandatory_steps():
    task = load_task("gatekeeper")
    assert task.mandatory == ["AskName", "AskPass", "AskErrand", "Admit"]
    assert task.proactive == ["Greet", "Explain", "Persuade", "Calm"]
    assert task.success == ["Admit"]


def test_what_may_answer_follows_the_graph():
    task = load_task("gatekeeper")
    assert task.answers("AskPass")["ShowsPass"] == ["AskErrand"]
    assert task.answers("AskPass")["Question"][0] == "AskPass"
    assert "ShowsPass" not in task.answers("")
    assert all("Admit" not in acts for acts in task.answers("AskPass").values())
    assert task.answers("Admit")["Other"][0] == "Farewell"


def test_the_procedure_has_the_transitions_of_the_graph():
    procedure = load_task("gatekeeper").procedure
    assert procedure.is_valid("AskErrand", "Admit") and procedure.is_critical("Admit")
    assert procedure.breaks_critical("AskPass", "Admit")
    assert procedure.is_valid("", "AskName") and not procedure.is_valid("", "AskPass")
    assert procedure.state("Farewell").resets and procedure.state("Calm").transparent


def adjacency(**changes: list[str]) -> dict[str, list[str]]:
    return {**GATE["sop"]["adjacency_list"], **{k.replace("_", "."): v for k, v in changes.items()}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"sop__adjacency_list": adjacency(Agent_AskName=["User.GivesNam"])},
            "Agent.AskName -> User.GivesNam: unknown vertex 'User.GivesNam'",
        ),
        (
            {"sop__vertex": [*GATE["sop"]["vertex"], "Agent.Dance"]},
            "'Agent.Dance' is neither agent_action nor user_state",
        ),
        ({"sop__vertex": [*GATE["sop"]["vertex"], "Agent.Admit"]}, "'Agent.Admit' stands twice"),
        (
            {"sop__adjacency_list": adjacency(User_GivesName=["Agent.AskErrand"])},
            "'Agent.AskPass' cannot be reached from Agent.Start",
        ),
        (
            {"sop__adjacency_list": adjacency(Agent_Farewell=["Agent.TurnAway"])},
            "lies on a cycle without exit",
        ),
        ({"sop__adjacency_list": adjacency(User_ShowsPass=[])}, "no action answers"),
        ({"conversation_profile__success_mark": []}, "success_mark: names no vertex"),
        (
            {"conversation_profile__success_mark": ["Agent.Fly"]},
            "success_mark: 'Agent.Fly' is no vertex of the sop",
        ),
        ({"conversation_profile": {"agent_goal": "g"}}, "missing key"),
        ({"lines__Dance": "La."}, "lines and briefs: unknown name 'Dance'"),
        ({"lines": {"Admit": "In."}}, "lines: 'AskName' has none"),
        ({"replies__Greeting": "Wave"}, "replies: Greeting -> Wave"),
        ({"mood": "grim"}, "unknown key 'mood'"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path, changes, words):
    with pytest.raises(HaggleError) as error:
        load(tmp_path, **changes)
    assert words in str(error.value) and ".yaml" in str(error.value)


def test_an_unknown_character_is_told_with_the_known_ones():
    with pytest.raises(HaggleError, match="did you mean 'gatekeeper'"):
        load_task("gatekeper")
    with pytest.raises(HaggleError, match="no such file"):
        load_task("nowhere.yaml")
