"""The commands take a character: data, a rehearsal of training, evaluation, talk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from eval.characters import earned, run_characters
from eval.turns import run_turns
from haggle.agreement import agreement
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.dataset import iter_rows
from haggle.sop.task import load_task
from serving.engines.scripted import ScriptedEngine

TASK = load_task("gatekeeper")
ASKS = '{"user":"Greeting","act":"AskName","say":"Your name?"}'
RUN = CliRunner()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("gate")
    config = out / "data.yaml"
    config.write_text("train: 12\ntest: 6\nseed: 3\n", encoding="utf-8")
    told = RUN.invoke(
        app,
        f"generate --config {config} --character gatekeeper --out {out / 'data'} --quiet".split(),
    )
    assert told.exit_code == 0, told.output
    return out / "data"


@pytest.fixture
def scripted(tmp_path) -> Path:
    config = tmp_path / "engine.yaml"
    answers = json.dumps([ASKS])
    config.write_text(f"engine: scripted\nscripted: {{answers: {answers}, again: true}}\n")
    return config


def test_its_data_are_dialogues_with_labels(dataset):
    rows = list(iter_rows(dataset, "train"))
    assert len(rows) == 12 and {row["method"] for row in rows} == {"sop"}
    for row in rows:
        answers = [json.loads(m["content"]) for m in row["messages"] if m["role"] == "assistant"]
        assert [a["act"] for a in answers] == [turn["state"] for turn in row["turns"]]
        assert [a["user"] for a in answers] == [turn["act"] for turn in row["turns"]]
    said = {split: {t["player"] for row in iter_rows(dataset, split) for t in row["turns"]}
            for split in ("train", "test")}  # fmt: skip
    assert not said["train"] & said["test"]


def test_right_answers_are_right_and_wrong_ones_wrong(dataset, tmp_path):
    turns = [m["content"] for row in iter_rows(dataset, "test") for m in row["messages"]]
    right = [text for text in turns if text.startswith('{"user"')]
    verdict = agreement(right[0], right[0], "")
    assert verdict.joint and verdict.valid and verdict.last
    assert not agreement(right[0], "Good day.", "").valid
    other = right[0].replace(json.loads(right[0])["act"], "Farewell")
    assert not agreement(right[0], other, "").joint
    metrics = run_turns(dataset, ScriptedEngine([ASKS] * 5), tmp_path, n=5, progress=False)
    assert metrics["valid_json"]["passed"] == 5 and metrics["cart"]["n"] == 0


def test_a_character_that_only_asks_reaches_nothing_and_violates_nothing(tmp_path):
    engine = ScriptedEngine([ASKS] * 200)
    metrics = run_characters(TASK, engine, "state", tmp_path, n=8, progress=False)
    assert metrics["goal"]["n"] + metrics["wrong_goal"]["n"] == 8
    assert metrics["goal"]["passed"] == metrics["violations"]["passed"] == 0
    again = run_characters(TASK, ScriptedEngine([ASKS] * 200), "off", tmp_path / "off", n=4,
                           progress=False)  # fmt: skip
    assert again["violations"]["passed"] == 0, "asking for the name again is allowed"


def test_who_said_everything_has_earned_it():
    assert earned(TASK, ["Greeting", "GivesName", "ShowsPass", "PeacefulErrand"])
    assert not earned(TASK, ["GivesName", "HasNoPass", "PeacefulErrand"])


def test_the_commands_play_and_measure_it(scripted, tmp_path):
    told = RUN.invoke(
        app, f"eval character --engine {scripted} --n 4 --quiet --out {tmp_path / 'e'}".split()
    )
    assert told.exit_code == 0 and "violations" in told.output, told.output
    chat = RUN.invoke(
        app, f"chat --character gatekeeper --engine {scripted}".split(), input="hi\n/quit\n"
    )
    assert chat.exit_code == 0 and "Your name?" in chat.output, chat.output
    assert "AskName" in chat.output and "goal not reached" in chat.output


@pytest.mark.parametrize(
    "command", ["chat --character nobody", "eval character --character nobody --out o",
                "generate --character nobody --out o"],
)  # fmt: skip
def test_an_unknown_character_is_an_error(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HaggleError, match="no character is named 'nobody'"):
        RUN.invoke(app, command.split(), catch_exceptions=False)
    assert not list(tmp_path.iterdir()), "nothing is written"


@pytest.mark.parametrize(
    ("option", "value"),
    [("method", "astp"), ("method", "astp-compact"), ("world", "frontier_shop"),
     ("confirmation", "explicit"), ("embeddings", "off")],
)  # fmt: skip
def test_an_option_of_a_merchant_is_refused_for_a_character_with_a_procedure(
    option, value, scripted
):
    command = f"chat --character gatekeeper --engine {scripted} --{option} {value}"
    with pytest.raises(HaggleError, match=f"'gatekeeper' has no {option}") as caught:
        RUN.invoke(app, command.split(), catch_exceptions=False)
    assert caught.value.where == f"--{option}" and f"leave --{option} out" in caught.value.hint


def test_its_own_method_may_be_named(scripted, tmp_path):
    command = f"chat --character gatekeeper --engine {scripted} --method sop"
    told = RUN.invoke(app, command.split(), input="/quit\n")
    assert told.exit_code == 0, told.output
    config = tmp_path / "data.yaml"
    config.write_text("train: 1\ntest: 0\nmethod: sop\n", encoding="utf-8")
    command = f"generate --config {config} --character gatekeeper --out {tmp_path / 'd'} --quiet"
    assert RUN.invoke(app, command.split()).exit_code == 0


def test_a_merchant_has_neither_a_profile_nor_the_method_of_a_procedure(scripted):
    with pytest.raises(HaggleError, match="a merchant has no profile"):
        RUN.invoke(app, "chat --profile Name=Ann".split(), catch_exceptions=False)
    with pytest.raises(HaggleError, match="unknown method 'sop'"):
        RUN.invoke(app, f"chat --engine {scripted} --method sop".split(), catch_exceptions=False)


@pytest.mark.parametrize("command", ["--config stepwise --character gatekeeper",
                                     "--config {own}", "--config {plans}"])  # fmt: skip
def test_data_by_the_method_of_a_merchant_are_refused(command, tmp_path, monkeypatch):
    own, plans = tmp_path / "own.yaml", tmp_path / "plans.yaml"
    own.write_text("character: all\nmethod: astp-compact\n", encoding="utf-8")
    plans.write_text("plans: {tasks: nowhere}\nmethod: astp-compact\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    command = command.format(own=own, plans=plans)
    with pytest.raises(HaggleError, match="has no method 'astp") as caught:
        RUN.invoke(app, f"generate --out o {command}".split(), catch_exceptions=False)
    assert caught.value.where.endswith("method")
    assert not (tmp_path / "o").exists(), "nothing is written"


def test_a_task_without_phrases_has_no_users(tmp_path):
    task = tmp_path / "mine.yaml"
    source = (Path(__file__).parents[3] / "haggle/sop/tasks/gatekeeper.yaml").read_text("utf-8")
    data = yaml.safe_load(source.replace("task: gatekeeper", "task: mine"))
    task.write_text(yaml.safe_dump(data | {"utterances": {}}), encoding="utf-8")
    with pytest.raises(HaggleError, match="no phrases for the task 'mine'"):
        RUN.invoke(app, f"generate --character {task} --out {tmp_path / 'd'}".split(),
                   catch_exceptions=False)  # fmt: skip


@pytest.mark.slow
def test_training_can_be_rehearsed_on_it(dataset, tmp_path):
    told = RUN.invoke(
        app,
        f"train --config demo --dataset {dataset} --out {tmp_path} --dry-run --tiny".split(),
    )
    assert told.exit_code == 0, told.output
