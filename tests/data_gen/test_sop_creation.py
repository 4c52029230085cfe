"""Dialogues written in the steps of the PCA paper, by code and by a model; rows to plan from."""

from __future__ import annotations

import json
import random

import pytest

from data_gen.config import DataConfig, PlansConfig, SopConfig, check
from data_gen.generate import generate
from data_gen.sop.creation import WrittenSource
from data_gen.sop.plans import PlanSource, split_tasks
from data_gen.sop.scenes import check_scene, in_rounds, livelier, read_scene, sample_path
from eval.sop.planners import open_planner
from haggle.core.codec import matches
from haggle.core.errors import HaggleError
from haggle.dataset import iter_rows
from haggle.sop.folds import load_definitions, three_ways
from haggle.sop.task import TASKS, load_task
from haggle.sop.vertexwise import Followers, lesson, may_follow, predict, vertices_of
from serving.engines.scripted import ScriptedEngine

GATE = load_task("gatekeeper")
NAMES = sorted(path.stem for path in TASKS.glob("*.yaml"))
MODEL = DataConfig(character="gatekeeper", sop=SopConfig(engine="scripted", max_attempts=2))
SAID = {
    "GivesName": "I am Una Field.", "ShowsPass": "Here is my pass.",
    "PeacefulErrand": "I sell bread at the market.", "SuspiciousErrand": "Guess.",
    "HidesName": "Never mind that.", "HasNoPass": "Nothing in my bag.",
}  # fmt: skip
LINES = {*SAID.values(), "Well."}
PROFILE = {"Name": "Una Field", "Trade": "baker", "Pass": "a green pass"}


@pytest.mark.parametrize("name", NAMES)
def test_every_path_of_every_task_becomes_a_scene_that_the_procedure_allows(name):
    task = load_task(name)
    for seed in range(5):
        rng = random.Random(seed)
        path = sample_path(task, rng)
        assert path[0] == "Agent.Start" and not task.sop.adjacency_list[path[-1]]
        rounds = in_rounds(task, path, rng)
        scene = livelier(task, rounds, rng)
        check_scene(task, path, scene)
        assert len(scene) >= len(rounds)


@pytest.mark.parametrize(
    ("scene", "words"),
    [
        ([("Greeting", "AskPass")], "after User.Greeting may come"),
        ([("GivesName", "AskName")], "User.GivesName cannot come after Start"),
        ([("Greeting", "AskName"), ("HidesName", "TurnAway")], "of the main path is missing"),
        ([("Greeting", "AskName"), *[("Doubt", "Persuade")] * 9], "of the main path is missing"),
    ],
)
def test_a_scene_against_the_procedure_is_refused(scene, words):
    path = ["Agent.Start", "Agent.AskName", "User.GivesName", "Agent.AskPass"]
    with pytest.raises(HaggleError, match=words):
        check_scene(GATE, path, scene)


def test_one_speaker_twice_in_a_row_is_refused():
    with pytest.raises(HaggleError, match="take turns"):
        read_scene(["Agent.AskName", "User.GivesName"])
    assert read_scene(["User.Doubt", "-", "Agent.Persuade"]) == [("Doubt", "Persuade")]


def test_code_writes_scenes_of_all_tasks():
    source = WrittenSource(DataConfig(character="all", sop=SopConfig()))
    rows = [*source.rows("train", range(10)), *source.rows("test", range(10))]
    assert {row["world"] for row in rows} == set(NAMES)
    assert rows == [*source.rows("train", range(10)), *source.rows("test", range(10))]
    assert not source.report()


def answers(seed: int = 0) -> list[str]:
    """What a good model says to profile, scene and script of the path that code draws."""
    rng = random.Random(f"gatekeeper/0/train/{seed}/scene")
    rng.randrange(2**31)
    path = sample_path(GATE, rng)
    scene = in_rounds(GATE, path, random.Random(1))
    nodes = [n for user, act in scene for n in (f"User.{user}", f"Agent.{act}")]
    script = [f"{n}|{SAID.get(n.partition('.')[2], 'Well.')}" for n in nodes]
    return [json.dumps(PROFILE), json.dumps({"path": nodes}), json.dumps({"script": script})]


def test_a_model_writes_through_the_same_steps_and_is_checked():
    engine = ScriptedEngine(answers())
    source = WrittenSource(MODEL, engine)
    (row,) = source.rows("train", [0])
    assert row["turns"] and all(turn["player"] in LINES for turn in row["turns"])
    assert source.report()["written"] == {
        "profile accepted": 1, "scene accepted": 1, "script accepted": 1
    }  # fmt: skip
    profile, scene, script = (request.messages[0].content for request in engine.requests)
    assert "Mirela Voss" in profile and "Name, Trade, Pass" in profile
    for field in ("Task information", "User information", "Agent actions", "User states",
                  "Standard operating procedure", "Main dialogue path"):  # fmt: skip
        assert field in scene
    assert '"Agent.AskName"' in script and "ask for the traveller's name" in script


def test_what_is_refused_is_asked_again_and_then_written_by_code():
    profile, scene, _ = answers()
    lie = json.dumps({"script": ["User.Greeting|hello"]})
    engine = ScriptedEngine(["no", profile, scene, lie, lie])
    source = WrittenSource(MODEL, engine)
    (row,) = source.rows("train", [0])
    written = source.report()["written"]
    assert written["profile refused: format"] == 1 and written["script refused: nodes"] == 2
    assert written["script by code"] == 1 and len(row["turns"]) >= 3
    assert "nodes must be those" in engine.requests[-1].messages[-1].content


def test_the_steps_are_a_data_set_like_any_other(tmp_path):
    config = DataConfig(character="all", train=4, test=2, sop=SopConfig())
    generate(config, tmp_path / "d", workers=1, progress=False)
    assert len(list(iter_rows(tmp_path / "d"))) == 4
    with pytest.raises(HaggleError, match="characters with a procedure"):
        check(DataConfig(sop=SopConfig()))


def test_plans_are_split_by_task_and_learned_vertex_by_vertex():
    plans = PlansConfig(tasks=str(TASKS), fold=2, folds=5)
    tasks = split_tasks(plans)
    assert len(tasks["train"]) == 16 and len(tasks["test"]) == 4
    assert not set(tasks["train"]) & set(tasks["test"])
    source = PlanSource(DataConfig(plans=plans))
    first, again = (next(source.rows("train", [index])) for index in (0, 16))
    assert first["world"] == again["world"] and first["messages"] != again["messages"]
    asked = [m["content"] for m in first["messages"] if m["role"] == "user"]
    assert asked == vertices_of(tasks["train"][first["world"]])
    assert "Agent.Start" in first["messages"][0]["content"]
    assert [len(part) for part in three_ways([str(n) for n in range(53)], 0)] == [31, 5, 17]
    with pytest.raises(HaggleError, match="no fold 7"):
        split_tasks(plans.model_copy(update={"fold": 7}))


def test_the_planner_asks_about_each_vertex_under_the_vertices_that_remain():
    right = [m.content for m in lesson(GATE) if m.role == "assistant"]
    engine = ScriptedEngine(right)
    plan = open_planner("vertex", engine, constrained=True).plan(GATE)
    assert plan.valid and plan.adjacency_list == GATE.sop.adjacency_list
    vertices = vertices_of(GATE)
    assert len(engine.requests) == len(vertices)
    for request, vertex, text in zip(engine.requests, vertices, right, strict=True):
        assert request.constraint == Followers(may_follow(vertices, vertex))
        assert matches(request.constraint, text) and request.messages[-1].content == vertex
    form = Followers(may_follow(vertices, "User.GivesName"))
    assert not matches(form, '{"next":["User.HidesName"]}')
    assert not matches(form, '{"next":["Agent.Start"]}')


def test_an_answer_that_is_none_leaves_the_vertex_alone():
    engine = ScriptedEngine(["I cannot."] * len(GATE.sop.vertex))
    found = predict(engine, GATE, constrained=False)
    assert not found.valid and not any(found.adjacency_list.values())
    assert set(load_definitions(TASKS)) == set(NAMES)
