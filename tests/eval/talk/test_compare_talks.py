"""Two runs over the same goals, through `haggle eval compare`."""

from __future__ import annotations

from typer.testing import CliRunner

from eval.talk.compare import compare_talks
from eval.talk.judge import run_judge
from eval.talk.measures import write_measures
from haggle.cli import app
from haggle.core.storage import read_json, read_jsonl, write_json, write_jsonl
from serving.engines.scripted import ScriptedEngine


def test_a_run_is_held_against_the_first_goal_by_goal(played, script, tmp_path, monkeypatch):
    good, _, _ = played(name="good")
    bad, _, _ = played([script.CASUAL] * 3 + [script.SHOW, script.CASUAL], name="bad", guard="off")
    for table in (good, bad):
        write_measures(table)
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "compared.json"
    ran = CliRunner().invoke(
        app, ["eval", "compare", str(good.out), str(bad.out), "--out", str(out)]
    )
    assert ran.exit_code == 0, ran.exception
    assert max(map(len, ran.stdout.splitlines()[:-1])) <= 80 and "goals reached" in ran.stdout
    compared = read_json(out)
    assert compared["n"] == 3 and compared["reference"] == "good"
    mine = compared["runs"][1]
    assert mine["guard"] == "off"
    assert mine["differences"]["goals"]["value"] == -0.5, "`ask` takes a judge"
    assert mine["differences"]["repeats_last"]["value"] == 1


def test_a_run_judged_before_relevance_leaves_that_measure_out(played, script):
    old, new = played(name="old")[0], played(name="new")[0]
    for table in (old, new):
        run_judge(table, ScriptedEngine([script.verdict("right")] * 5), progress=False)
        write_measures(table)
    records = read_jsonl(old.out / "predictions.jsonl")
    for turn in (turn for record in records for turn in record["turns"]):
        del turn["judgement"]["relevant"]
    write_jsonl(old.out / "predictions.jsonl", records)
    first, second = compare_talks([old.out, new.out], ["old", "new"])["runs"]
    assert (first["relevant"]["n"], second["relevant"]["n"]) == (0, 5)
    assert second["differences"]["relevant"]["value"] is None
    assert second["differences"]["contradicts"]["value"] == 0


def test_runs_that_cannot_be_compared_are_told(played, tmp_path):
    one, two = played(name="one")[0].out, played(name="two")[0].out

    def compare(*paths) -> str:
        return str(CliRunner().invoke(app, ["eval", "compare", *map(str, paths)]).exception)

    assert "is not measured yet" in compare(one, two) and "eval talk report" in compare(one, two)
    assert "two runs or more" in compare(one)
    write_json(two / "run.json", read_json(two / "run.json") | {"goals": "others"})
    assert "had other goals" in compare(one, two)
    (tmp_path / "turns").mkdir()
    assert "holds no conversations" in compare(one, tmp_path / "turns")
