"""Task definitions in every form they come in, and what is wrong with those that do not hold."""

from __future__ import annotations

import json
import os
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from haggle.core.errors import HaggleError
from haggle.sop.definition import Definition, Sop, problems
from haggle.sop.drawing import layout, outline
from haggle.sop.mermaid import edges_of, following_of, mermaid_of
from haggle.sop.pca_d import read_definition, read_definitions, read_dialogue
from haggle.sop.task import load_task

# A made-up task in the form of the public files.
TEA: dict[str, Any] = {
    "user_profile": {"称呼": "先生", "口味": ["甜", "淡"]},
    "conversation_profile": {
        "代理身份": "茶馆店员",
        "代理目标": "卖一壶茶",
        "成功标记": "代理.上茶",
        "茶价": "12",
    },
    "agent_action": ["开始", "问茶", "上茶", "再会", "闲聊"],
    "user_state": ["点茶", "不点", "打招呼"],
    "sop": {
        "vertex": ["代理.开始", "代理.问茶", "用户.点茶", "代理.上茶", "用户.不点", "代理.再会"],
        "mermaid": "graph TD\n  代理.开始-->代理.问茶\n  代理.问茶 --> |用户.点茶|代理.上茶/n"
        "  代理.问茶 -->|用户.不点|代理.再会\n  代理.上茶 --> 代理.再会",
        "adjacency_list": {
            "代理.开始": ["代理.问茶"],
            "代理.问茶": ["用户.点茶", "用户.不点"],
            "用户.点茶": ["代理.上茶"],
            "用户.不点": ["代理.再会"],
            "代理.上茶": ["代理.再会"],
        },
    },
    "domain": "tea",
    "task": "pot",
}
SAID = [
    {"role": "Agent", "script_annotation": "喝茶吗？", "action_annotation": "问茶"},
    {"role": "User", "script_annotation": "不喝。", "action_annotation": "不点"},
]


def written(folder: Path, data: Any, name: str = "tea.json") -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def changed(**changes: Any) -> dict[str, Any]:
    data = deepcopy(TEA)
    for path, value in changes.items():
        *outer, key = path.split("__")
        inner = data
        for name in outer:
            inner = inner[name]
        inner[key] = value
    return data


def test_a_public_file_is_read_with_english_keys(tmp_path):
    task = read_definition(written(tmp_path, TEA))
    assert task.conversation_profile.agent_identity == "茶馆店员"
    assert task.conversation_profile.success_mark == ["Agent.上茶"] and task.success == ["上茶"]
    assert task.conversation_profile.facts == {"茶价": "12"}
    assert task.user_profile["口味"] == "甜, 淡" and task.agent_action[0] == "Start"
    assert task.sop.vertex[:2] == ["Agent.Start", "Agent.问茶"]
    assert task.mandatory == ["问茶", "上茶"] and task.proactive == ["闲聊"]
    assert list(problems(task)) == []


def test_its_english_form_reads_the_same(tmp_path):
    text = json.dumps(TEA, ensure_ascii=False)
    for chinese, english in (
        ("代理身份", "agent_identity"), ("代理目标", "agent_goal"), ("成功标记", "success_mark"),
        ("代理.", "Agent."), ("用户.", "User."), ("开始", "Start"),
    ):  # fmt: skip
        text = text.replace(chinese, english)
    assert read_definition(written(tmp_path, text)) == read_definition(
        written(tmp_path, TEA, "b.json")
    )


def test_a_dialogue_is_read_with_its_labels(tmp_path):
    found = read_dialogue(written(tmp_path, TEA | {"dialogue": {"dialogues": SAID}}))
    assert [u.label for u in found.utterances] == ["问茶", "不点"]
    assert found.utterances[1].role == "User" and found.definition.task == "pot"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("{", "not JSON"),
        ("[]", "no mapping"),
        ({}, "user_profile: must be a mapping"),
        (changed(agent_action="问茶"), "agent_action: must be a list"),
        (changed(user_state=[]), "user_state: List should have at least 1 item"),
        (changed(sop={"vertex": ["代理.开始"]}), "missing key 'sop.adjacency_list'"),
        (changed(sop__adjacency_list={"代理.开始": "代理.问茶"}), "sop.adjacency_list"),
        (changed(sop__vertex=[1]), "sop.vertex.0"),
        (changed(sop={"mermaid": "graph TD\n  a b\n"}), "mermaid, line 2: no edge: 'a b'"),
        (changed(mood="x"), "unknown key 'mood'"),
        (changed(conversation_profile={"代理身份": "x"}), "conversation_profile.agent_goal"),
    ],
)
def test_a_file_that_is_none_is_told_with_its_name_and_field(tmp_path, data, words):
    path = written(tmp_path, data)
    for read in (read_definition, read_dialogue) if data == "{" else (read_definition,):
        with pytest.raises(HaggleError) as error:
            read(path)
        assert words in str(error.value) and "tea.json" in str(error.value)


@pytest.mark.parametrize(
    "dialogue",
    [None, {}, {"dialogues": "x"}, {"dialogues": [1]}, {"dialogues": [{"role": "Cat"}]}],
)
def test_a_dialogue_that_is_none_is_told(tmp_path, dialogue):
    with pytest.raises(HaggleError, match="utterances"):
        read_dialogue(written(tmp_path, TEA | {"dialogue": dialogue}))


def test_a_folder_without_tasks_is_told(tmp_path):
    with pytest.raises(HaggleError, match="holds no task definition"):
        read_definitions(tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"conversation_profile__成功标记": []}, "success_mark: names no vertex"),
        ({"conversation_profile__成功标记": "代理.飞"}, "'Agent.飞' is no vertex"),
        ({"sop__vertex": [*TEA["sop"]["vertex"], "代理.问茶"]}, "'Agent.问茶' stands twice"),
        ({"sop__vertex": [*TEA["sop"]["vertex"], "代理.闲聊"]}, "'Agent.闲聊' cannot be reached"),
        ({"sop__vertex": TEA["sop"]["vertex"][1:]}, "Agent.Start is missing"),
        ({"sop__mermaid": "graph TD\n 代理.开始 --> 代理.再会"}, "stands in the mermaid alone"),
        ({"sop__adjacency_list__用户.点茶": ["代理.飞"]}, "User.点茶 -> Agent.飞: unknown vertex"),
        (
            {"sop__adjacency_list__代理.再会": ["代理.上茶"]},
            "'Agent.再会' lies on a cycle without exit",
        ),
    ],
)
def test_what_is_wrong_with_a_graph_names_vertex_and_edge(tmp_path, changes, words):
    found = [
        message for message, _ in problems(read_definition(written(tmp_path, changed(**changes))))
    ]
    assert any(words in message for message in found), found


def test_mermaid_and_adjacency_list_are_one_graph():
    sop = load_task("gatekeeper").sop
    text = mermaid_of(sop.adjacency_list)
    assert set(edges_of(text, strict=True)) == set(sop.edges)
    assert Sop.model_validate({"mermaid": text}).adjacency_list.keys() == set(sop.vertex)
    assert following_of([("a", "b"), ("a", "c")]) == {"a": ["b", "c"], "b": [], "c": []}


def test_two_vertices_of_one_name_are_told_in_mermaid():
    text = "graph TD\n  A -->|User.x| B\n  B -->|User.x| C\n"
    with pytest.raises(ValueError, match=r"two vertices are named 'User\.x': behind A and B"):
        edges_of(text, strict=True)
    assert edges_of("flowchart LR; %% nothing\n\n  a-->b;\n", strict=False) == [("a", "b")]


def diamond(**following: list[str]) -> Definition:
    """A task of two ways to the same end."""
    graph = {
        "Agent.Start": ["Agent.Ask"],
        "Agent.Ask": ["User.Yes", "User.No"],
        "User.Yes": ["Agent.Give"],
        "User.No": ["Agent.Urge"],
        "Agent.Urge": ["Agent.Give"],
        "Agent.Give": ["Agent.End"],
    } | {key.replace("_", "."): value for key, value in following.items()}
    return Definition.model_validate({
        "task": "t",
        "conversation_profile": {
            "agent_identity": "i", "agent_goal": "g", "success_mark": ["Agent.Give"],
        },
        "agent_action": ["Start", "Ask", "Urge", "Give", "End"],
        "user_state": ["Yes", "No"],
        "sop": {"adjacency_list": graph},
    })  # fmt: skip


def test_a_step_is_mandatory_where_every_path_to_success_passes_it():
    assert set(diamond().mandatory) == {"Ask", "Give"}
    assert set(diamond(User_Yes=["Agent.Urge"]).mandatory) == {"Ask", "Urge", "Give"}
    assert set(diamond(Agent_Ask=["User.No"]).mandatory) == {"Ask", "Urge", "Give"}


def test_an_outline_and_a_drawing_have_every_vertex():
    task = load_task("gatekeeper")
    text = outline(task, ascii_only=True)
    assert all(vertex in text for vertex in task.sop.vertex) and text.isascii()
    assert "Agent.Admit (mandatory, success)" in text and "User.ShowsPass (evidence)" in text
    places, _, layers = layout(task.graph)
    assert set(places) == set(task.sop.vertex) and len(set(places.values())) == len(places)
    assert places["Agent.Start"][1] == 0 and places["Agent.Farewell"][1] == 1 - layers
    assert places["Agent.AskName"][1] > places["User.HidesName"][1], "a loop leads back up"


PUBLIC = os.environ.get("HAGGLE_PCA_D", "")


@pytest.mark.skipif(not PUBLIC, reason="HAGGLE_PCA_D names no copy of the public data")
def test_the_public_tasks_can_be_read():
    tasks = read_definitions(Path(PUBLIC) / "task")
    assert len(tasks) == 53 and sum(task.graph.number_of_edges() for task in tasks) == 1058
    for task in tasks:
        text = mermaid_of(task.sop.adjacency_list)
        assert set(edges_of(text, strict=True)) == set(task.sop.edges)
