"""Predicted procedures: measured by hand, asked of a model, and over folds."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from eval.sop.measures import compare, dialogue_paths, edit_distance, graph_of
from eval.sop.planners import Adjacency, ModelPlanner, OrderPlanner, open_planner, read_adjacency
from eval.sop.run import in_folds, load_definitions, run_plans
from haggle.cli import app
from haggle.core.codec import fits, matches
from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl
from haggle.grammar.json_text import to_json
from haggle.sop.folds import three_ways
from haggle.sop.task import TASKS, load_task
from serving.engines.scripted import ScriptedEngine

GATE = load_task("gatekeeper")
TRUE = GATE.sop.adjacency_list
LOOP = {
    "Agent.Start": ["Agent.Ask"],
    "Agent.Ask": ["User.Yes", "User.No"],
    "User.Yes": ["Agent.End"],
    "User.No": ["Agent.Ask"],
    "Agent.End": [],
}
RUN = CliRunner()


def test_a_loop_is_gone_through_once():
    paths, cut = dialogue_paths(graph_of(LOOP))
    once = ("Agent.Start", "Agent.Ask", "User.Yes", "Agent.End")
    assert paths == {once, (*once[:2], "User.No", "Agent.Ask", *once[2:])} and not cut


def test_paths_are_counted_up_to_a_limit():
    wild = {f"v{i}": [f"v{j}" for j in range(12)] for i in range(12)} | {"Agent.Start": ["v0"]}
    wild["v11"] = []
    paths, cut = dialogue_paths(graph_of(wild), limit=50)
    assert len(paths) == 50 and cut
    assert dialogue_paths(graph_of({"a": ["b"]})) == (set(), False), "no start, no path"
    assert compare(wild, LOOP, timeout_s=0.05).paths_bounded


def test_the_same_graph_is_like_itself():
    same = compare(TRUE, TRUE)
    assert (same.precision, same.recall, same.f1, same.ged, same.gedr) == (1, 1, 1, 0, 0)
    assert same.missing == same.extra == [] and not same.ged_bounded


def test_precision_recall_and_edit_distance_by_hand():
    straight = LOOP | {"User.No": ["Agent.End"]}
    found = compare(straight, LOOP)
    assert (found.precision, found.recall, found.f1) == (0.5, 0.5, 0.5)
    assert found.ged == 2 and found.gedr == 2 / 10 and not found.ged_bounded
    assert found.missing == [("User.No", "Agent.Ask")] and found.extra == [("User.No", "Agent.End")]
    empty = compare({vertex: [] for vertex in LOOP}, LOOP)
    assert empty.f1 == 0 and empty.ged == 5
    other = compare(LOOP | {"Agent.Sing": []}, LOOP)
    assert other.ged == 1 and other.f1 == 1


def test_renaming_may_be_less_than_editing():
    chain = {str(n): [str(n + 1)] for n in range(4)} | {"4": []}
    swapped = {"0": ["2"], "2": ["1"], "1": ["3"], "3": ["4"], "4": []}
    assert edit_distance(graph_of(chain), graph_of(swapped), 5.0) == (2, False)


def test_an_edit_distance_out_of_time_is_a_bound():
    wild = {v: list(TRUE) for v in TRUE}
    found = compare(wild, TRUE, timeout_s=1e-9)
    assert found.ged_bounded and found.ged <= len(found.missing) + len(found.extra)


def test_a_model_is_asked_for_an_adjacency_list():
    engine = ScriptedEngine([f"Here it is:\n```json\n{json.dumps(TRUE, indent=1)}\n```"])
    plan = ModelPlanner(engine).plan(GATE)
    assert plan.valid and compare(plan.adjacency_list, TRUE).f1 == 1
    asked = engine.requests[0].messages[0].content
    for kept in ("# Task Knowledge", "# SOP Diagram Nodes", '"agent_identity"', '"success_mark"',
                 "JSON", "must include all nodes", "[]"):  # fmt: skip
        assert kept in asked
    assert all(f'"{vertex}"' in asked for vertex in GATE.sop.vertex)
    assert to_json(TRUE) not in asked and engine.requests[0].constraint is None


def test_tcot_describes_first_and_then_translates():
    engine = ScriptedEngine(["After 'Agent.Start' comes the name.", to_json(TRUE)])
    plan = ModelPlanner(engine, describes=True).plan(GATE)
    assert plan.told.startswith("After") and compare(plan.adjacency_list, TRUE).ged == 0
    first, second = (request.messages[0].content for request in engine.requests)
    assert "'Agree' or 'Disagree'" in first and first.endswith("Start analysis:")
    assert "After 'Agent.Start' comes the name." in second and "# Hint" in second
    for kept in ("'VerifyIdentity'", '"Agent.Node1": ["User.Node1", "User.Node2"]', "'Agent.Start'",
                 "'Agent.PoliteEnd'", "The JSON fields must include all nodes."):  # fmt: skip
        assert kept in second
    assert "agent_identity" not in second, "the description stands for the knowledge"


def test_what_a_model_may_write_can_be_held_to_the_vertices():
    form = Adjacency(tuple(LOOP))
    assert matches(form, to_json(LOOP)) and fits(form, to_json(LOOP))
    assert not matches(form, to_json(LOOP | {"User.No": ["Agent.Fly"]}))
    engine = ScriptedEngine([to_json(TRUE)])
    ModelPlanner(engine, constrained=True).plan(GATE)
    assert engine.requests[0].constraint == Adjacency(tuple(GATE.sop.vertex))


@pytest.mark.parametrize(
    ("answer", "valid"),
    [
        ("I cannot.", False),
        ('{"Agent.Start": "Agent.AskName"}', False),
        ('{"Agent.Start": [1]}', False),
        ('{"Agent.Start": ["Agent.Dance", "Agent.Dance"]}', True),
        ("{}", True),
        ("[]", False),
    ],
)
def test_an_answer_that_is_none_is_an_empty_plan(answer, valid):
    found, read = read_adjacency(answer, ["Agent.Start"])
    assert read is valid and set(found) == {"Agent.Start"}
    assert found["Agent.Start"] == (["Agent.Dance"] if "Dance" in answer else [])


def test_the_baseline_goes_by_order_and_learns_the_closing_action():
    planner = OrderPlanner()
    assert planner.plan(GATE).adjacency_list["Agent.Start"] == ["Agent.AskName"]
    planner.fit([load_task("ferryman"), load_task("healer")])
    assert planner.closing == "Agent.Farewell"
    plan = planner.plan(GATE).adjacency_list
    assert set(plan) == set(TRUE) and plan["Agent.Farewell"] == []
    assert plan["Agent.AskName"] == ["User.GivesName", "User.HidesName"]


def test_folds_hold_every_task_once():
    folds = in_folds([str(n) for n in range(12)], 5, seed=1)
    assert sorted(name for fold in folds for name in fold) == sorted(map(str, range(12)))
    assert [len(fold) for fold in folds] == [3, 3, 2, 2, 2]


def test_a_run_over_a_directory_resumes(tmp_path):
    tasks = {name: load_task(name) for name in ("ferryman", "gatekeeper", "healer", "oracle")}
    answers = [to_json(task.sop.adjacency_list) for task in tasks.values()] * 2
    with pytest.raises(HaggleError, match="no answer left"):
        run_plans(tasks, "al", tmp_path, engine=ScriptedEngine(answers[:1]), folds=2,
                  timeout_s=0.1, progress=False)  # fmt: skip
    engine = ScriptedEngine(answers)
    metrics = run_plans(
        tasks, "al", tmp_path, engine=engine, folds=2, timeout_s=0.1, progress=False
    )
    assert len(engine.requests) == 3 and metrics["n"] == metrics["valid_json"]["n"] == 4
    assert metrics["gedr"]["low"] <= metrics["gedr"]["value"] <= metrics["gedr"]["high"]
    assert [r["id"] for r in read_jsonl(tmp_path / "predictions.jsonl")] == list(tasks)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"folds": 9}, "2 tasks make no 9 folds"), ({"method": "a"}, "unknown method 'a'"),
     ({"method": "al"}, "'al' needs a model")],
)  # fmt: skip
def test_a_run_that_cannot_be_is_told(tmp_path, change, words):
    tasks = {name: load_task(name) for name in ("ferryman", "gatekeeper")}
    with pytest.raises(HaggleError, match=words):
        run_plans(tasks, **{"method": "order", "out": tmp_path, "folds": 2, **change})


def test_the_stated_split_predicts_its_test_tasks_alone(tmp_path):
    tasks = load_definitions(TASKS)
    metrics = run_plans(tasks, "order", tmp_path, folds=None, progress=False)
    _, _, test = three_ways(list(tasks), 0)
    assert {row["id"] for row in read_jsonl(tmp_path / "predictions.jsonl")} == set(test)
    assert metrics["n"] == len(test) < len(tasks) and metrics["folds"] is None


def test_a_directory_without_tasks_is_told(tmp_path):
    with pytest.raises(HaggleError, match="holds no task"):
        load_definitions(tmp_path)
    (tmp_path / "a.yaml").write_text("task: x\n", encoding="utf-8")
    with pytest.raises(HaggleError, match=r"a\.yaml: missing key"):
        load_definitions(tmp_path)
    assert len(load_definitions(TASKS)) >= 20


def test_the_commands_plan_and_measure(tmp_path):
    told = RUN.invoke(app, ["sop", "plan", "gatekeeper", "--method", "order", "--mermaid",
                            str(tmp_path / "plan.mmd")])  # fmt: skip
    assert told.exit_code == 0 and "gedr" in told.output and "missing" in told.output, told.output
    assert (tmp_path / "plan.mmd").read_text("utf-8").startswith("graph TD")
    folder = tmp_path / "tasks"
    folder.mkdir()
    for number in range(2):
        path = folder / f"{number}.json"
        path.write_text(to_json({
            "task": str(number), "user_profile": {}, "agent_action": ["Start", "Ask", "End"],
            "conversation_profile": {"agent_identity": "i", "agent_goal": "g",
                                     "success_mark": ["Agent.End"]},
            "user_state": ["Yes", "No"], "sop": {"vertex": list(LOOP), "adjacency_list": LOOP},
        }), encoding="utf-8")  # fmt: skip
    told = RUN.invoke(app, f"eval sop --tasks {folder} --method order --folds 2 --quiet "
                           f"--out {tmp_path / 'out'}".split())  # fmt: skip
    assert told.exit_code == 0 and "path_f1" in told.output, told.output
    assert (tmp_path / "out" / "metrics.json").exists()
    with pytest.raises(HaggleError, match="--method: unknown method 'best'"):
        RUN.invoke(app, "sop plan gatekeeper --method best".split(), catch_exceptions=False)


def test_a_planner_needs_a_known_method():
    with pytest.raises(HaggleError, match="did you mean 'tcot'"):
        open_planner("tcott", None)
