"""How coherent talks are: by a judge of any engine, by people, and what cannot be judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.sop.coherence import import_coherence, judge_coherence
from eval.sop.talks import run_talks
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, read_jsonl
from haggle.grammar.json_text import to_json
from haggle.sop.task import load_task
from serving.engines.scripted import ScriptedEngine

RUN = CliRunner()
GATE = load_task("gatekeeper")


def said(score: str, reason: str = "It follows.") -> str:
    return to_json({"reason": reason, "coherence": score})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two talks of a gatekeeper that always asks for the name."""
    out = tmp_path_factory.mktemp("talks")
    asks = to_json(
        {"User State": "Greeting", "Agent Action": "AskName", "Agent Response": "Your name?"}
    )
    engine = ScriptedEngine([asks] * 200)
    run_talks([GATE], "cot+sop", engine, "state", out, users=2, progress=False)
    return out


def ids(run: Path) -> list[str]:
    return [talk["id"] for talk in read_jsonl(run / "predictions.jsonl")]


def test_a_judge_reads_each_talk_and_its_scores_are_averaged(run):
    engine = ScriptedEngine([said("1"), said("0.5")])
    found = judge_coherence(run, engine, batch=1, progress=False)
    assert found["coherence"]["value"] == 0.75 and found["coherence"]["n"] == 2
    told = engine.requests[0].messages[0].content
    first = next(iter(read_jsonl(run / "predictions.jsonl")))
    assert GATE.conversation_profile.agent_goal in told and first["turns"][0]["player"] in told
    assert told.count("Agent: ") == len(first["turns"]) and "AskName" not in told
    folder = run / "coherence" / found["judge"]
    assert read_json(folder / "metrics.json")["coherence"]["value"] == 0.75
    assert [row["coherence"] for row in read_jsonl(folder / "predictions.jsonl")] == [1, 0.5]


def test_an_answer_that_is_none_is_asked_again_and_then_left_out(run):
    answers = ["well", said("0.9"), said("0"), "no", "no", "no"]
    engine = ScriptedEngine(answers)
    engine.model = "another-judge"
    found = judge_coherence(run, engine, batch=1, progress=False)
    assert found["coherence"]["value"] == 0 and found["unscored"] == 1
    assert len(engine.requests) == 6


def test_people_score_by_file(run, tmp_path):
    one, two = ids(run)
    file = tmp_path / "scores.jsonl"
    rows = [{"id": one, "coherence": 1}, {"id": one, "coherence": 0.5}, {"id": two, "coherence": 0}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert import_coherence(run, file)["coherence"]["value"] == 0.375
    told = RUN.invoke(app, ["eval", "coherence", "--out", str(run), "--scores", str(file)])
    assert told.exit_code == 0 and "37.5%" in told.output
    file.write_text(json.dumps(rows[0]), encoding="utf-8")
    assert import_coherence(run, file)["unscored"] == 1


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"id": "nobody", "coherence": 1}, "unknown talk 'nobody'"),
        ({"id": "x", "coherence": 2}, "coherence"),
        ({"coherence": 1}, "missing key 'id'"),
    ],
)
def test_scores_that_are_none_change_nothing(run, tmp_path, row, words):
    file = tmp_path / "scores.jsonl"
    file.write_text(json.dumps(row), encoding="utf-8")
    with pytest.raises(HaggleError) as told:
        import_coherence(run, file)
    assert words in str(told.value) and "scores.jsonl:1" in str(told.value)


@pytest.mark.parametrize("options", [[], ["--judge", "llamacpp", "--scores", "x"]])
def test_one_who_judges_must_be_named(run, options):
    told = RUN.invoke(app, ["eval", "coherence", "--out", str(run), *options])
    assert told.exit_code and "say who judges" in str(told.exception)


def test_a_folder_without_talks_is_told(tmp_path):
    with pytest.raises(HaggleError, match="holds no talks"):
        judge_coherence(tmp_path, ScriptedEngine([]), progress=False)
