"""Labelled dialogues of people (PCA-D's form): read, held out by task, planned, trained on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from data_gen.config import DataConfig, LabelledConfig
from data_gen.generate import generate
from data_gen.sop.labelled import LabelledSource, held_out, read_labelled, split_files
from eval.sop.labelled import run_labelled
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.dataset import iter_rows
from haggle.grammar.json_text import to_json
from serving.engines.scripted import ScriptedEngine

RUN = CliRunner()
SAID = [("Agent", "您好。", "问候"), ("User", "你好,哪位?", "问候"),
        ("Agent", "请问是张三先生吗?", "代理.核实身份"), ("User", "是的。", "用户.是本人"),
        ("Agent", "请激活信用卡。", "代理.介绍活动")]  # fmt: skip
DOCUMENT = "年费" * 400


def write_dialogue(folder: Path, name: str = "one", mark: str = "代理.介绍活动") -> None:
    data = {
        "task": "激活", "domain": "金融", "user_profile": {"姓名": "张三", "年龄": 51},
        "conversation_profile": {"代理身份": "客服", "代理目标": "激活", "成功标记": [mark], "其他知识": DOCUMENT},
        "agent_action": ["开始", "核实身份", "介绍活动", "问候"],
        "user_state": ["是本人", "问候"],
        "sop": {"adjacency_list": {"代理.开始": ["代理.核实身份"], "代理.核实身份": ["用户.是本人"],
                                   "用户.是本人": ["代理.介绍活动"], "代理.介绍活动": []}},
        "dialogue": {"dialogues": [
            {"role": role, "script_annotation": text, "action_annotation": label}
            for role, text, label in SAID]},
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@pytest.fixture
def public(tmp_path: Path) -> Path:
    folder = tmp_path / "public"
    for task in range(6):
        for number in range(3):
            write_dialogue(folder, f"bank-task{task}-dialogue_{number}")
    return folder


def names(files: list[Path]) -> set[str]:
    return {path.name.partition("-dialogue")[0] for path in files}


def test_public_dialogues_are_read_in_turns(tmp_path):
    write_dialogue(tmp_path / "public")
    (one,) = read_labelled(tmp_path / "public")
    assert one.task.user_profile["年龄"] == "51"
    assert [action.act for action in one.opening] == ["问候"]
    assert [(line, a.user, a.act) for line, a in one.turns] == [
        ("你好,哪位?", "问候", "核实身份"), ("是的。", "是本人", "介绍活动")]  # fmt: skip
    texts = [to_json({"User State": a.user, "Agent Action": a.act, "Agent Response": a.say})
             for _, a in one.turns]  # fmt: skip
    found = run_labelled([one], "cot+sop", ScriptedEngine(texts), tmp_path / "o", progress=False)
    assert found["acc_c"]["passed"] == 2 and found["acc_p"]["n"] == 0
    assert found["bleu_4"] == pytest.approx(100), "Chinese is cut into characters"


def test_a_mark_of_success_that_is_no_step_is_left_out(tmp_path):
    write_dialogue(tmp_path / "public", mark="代理.办完了")
    (one,) = read_labelled(tmp_path / "public")
    assert one.task.success == [] and one.task.mandatory == []


def test_no_dialogue_is_an_error(tmp_path):
    with pytest.raises(HaggleError, match="holds no dialogue"):
        read_labelled(tmp_path)


def test_a_file_of_an_archive_that_was_cut_off_is_named(public, tmp_path):
    file = next(public.glob("*task3-dialogue_0.json"))
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(HaggleError, match=r"not JSON|not UTF-8") as told:
        read_labelled(public)
    assert file.name in str(told.value)


def test_tasks_are_held_out_and_take_turns(public):
    files = split_files(public, seed=0)
    assert names(files["train"]).isdisjoint(names(files["test"]))
    assert len(files["train"]) + len(files["test"]) <= 18 and len(names(files["train"])) > 1
    first = files["train"][: len(names(files["train"]))]
    assert len(names(first)) == len(first), "one of each task comes before a second of any"
    assert split_files(public, seed=0) == files != split_files(public, seed=1)
    asked = held_out(public, 3)
    assert len(asked) == 3 and {one.id.partition("-dialogue")[0] for one in asked} <= names(
        files["test"]
    )


def test_rows_to_train_on_have_the_true_turns_and_short_knowledge(public, tmp_path):
    config = DataConfig(train=20, test=2, labelled={"dialogues": str(public)})
    generate(config, tmp_path / "data", progress=False)
    rows = list(iter_rows(tmp_path / "data", "train"))
    assert len(rows) == 20 and {
        row["id"].split("-", 2)[2].partition("-dialogue")[0] for row in rows
    } == names(split_files(public, 0)["train"])
    assert len({row["id"] for row in rows}) == 20, "a dialogue that comes again is another row"
    row = rows[0]
    opening, first, second = (m for m in row["messages"] if m["role"] == "assistant")
    assert opening["weight"] == 0, "what the agent did before the user spoke is not learned"
    assert "weight" not in first and json.loads(first["content"])["act"] == "核实身份"
    assert json.loads(second["content"])["user"] == "是本人"
    assert [turn["state"] for turn in row["turns"]] == ["核实身份", "介绍活动"]
    assert 0 < row["messages"][0]["content"].count("年费") < 200


def test_a_split_in_which_nobody_is_answered_is_told(public):
    for path in public.glob("*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        data["dialogue"]["dialogues"] = data["dialogue"]["dialogues"][:2]
        path.write_text(json.dumps(data), encoding="utf-8")
    source = LabelledSource(LabelledConfig(dialogues=str(public)))
    with pytest.raises(HaggleError, match="no dialogue of train answers"):
        next(source.rows("train", [0]))


def test_two_kinds_of_rows_are_refused(public, tmp_path):
    kinds = {"labelled": {"dialogues": str(public)}, "plans": {"tasks": str(public)}}
    with pytest.raises(HaggleError, match="plans and labelled do not go together"):
        generate(DataConfig(train=1, test=0, **kinds), tmp_path, progress=False)


def test_too_few_tasks_to_hold_some_out_are_told(tmp_path):
    write_dialogue(tmp_path / "public")
    with pytest.raises(HaggleError, match="dialogues of 1 tasks"):
        split_files(tmp_path / "public", 0)


def test_the_command_wants_labelled_dialogues_for_a_number_of_them(tmp_path):
    told = RUN.invoke(
        app, ["eval", "planner", "--method", "cot", "--n", "3", "--out", str(tmp_path)]
    )
    assert told.exit_code and "--labelled" in str(told.exception)


@pytest.mark.skipif("HAGGLE_PCA_D" not in os.environ, reason="HAGGLE_PCA_D names no public data")
def test_every_public_dialogue_can_be_read():
    folder = Path(os.environ["HAGGLE_PCA_D"]) / "dialogue"
    assert len(read_labelled(folder)) == 3098, "one of 3,099 has no turn of the agent"
    assert {k: len(names(v)) for k, v in split_files(folder, 0).items()} == {
        "train": 31,
        "test": 17,
    }
