"""docs/howto.md and docs/tutorial.md: their commands have the options that they are shown with; the
files of the howto can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from haggle.cli import app
from haggle.core.config import ROOT, named_config

EVAL = {
    "character",
    "cases",
    "coherence",
    "compare",
    "learning-curve",
    "planner",
    "sop",
    "talk",
    "turns",
}
TALK = {"form", "judge", "label", "report", "step"}
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOWTO = (ROOT / "docs" / "howto.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = FENCED.findall(HOWTO)
LINES = [
    line[line.index("haggle ") :]
    for kind, text in BLOCKS
    for line in text.splitlines()
    if not kind and "haggle " in line
]
# What the tutorial mistypes, to show what is told then.
MISTYPED = re.compile(r"--world (frontier|my_shp\.yaml)$|--config deom|first/dta")
TYPED = [
    command[2]
    for kind, text in FENCED.findall(TUTORIAL)
    for line in text.splitlines()
    if not kind
    and (command := re.match(r"(\$ )?(haggle \w.*)", line))
    and not MISTYPED.search(line)
]


def test_the_tutorial_plays_serves_measures_generates_and_trains():
    assert {line.split()[1] for line in TYPED} >= {
        "chat", "serve", "eval", "generate", "inspect", "train", "export",
    }  # fmt: skip


@pytest.mark.parametrize("script", sorted(set(re.findall(r"scripts/\w+\.py", TUTORIAL))))
def test_a_script_of_the_tutorial_is_there(script: str):
    assert (ROOT / script).is_file()


@pytest.mark.parametrize("line", [*LINES, *TYPED])
def test_a_command_of_howto_and_tutorial_has_the_options_it_is_shown_with(
    line: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("NO_COLOR", "1")
    words = line.split()[1:]
    deep = 2 if words[0] in {"bench", "sop"} or (words[0] == "eval" and words[1] in EVAL) else 1
    deep += words[:2] == ["eval", "talk"] and words[2] in TALK
    command = " ".join(words[:deep])
    known = CliRunner().invoke(app, [*command.split(), "--help"]).output
    for option in (word for word in words if word.startswith("--")):
        assert f" {option} " in known
    for option, kind in (("--config", words[0]), ("--engine", "serve"), ("--world", "worlds")):
        kind = {"generate": "data"}.get(kind, kind)
        if option in words and "." not in (name := words[words.index(option) + 1]):
            assert named_config(kind, name).is_file()
    for script_ in re.findall(r"scripts/\w+\.py|configs/[\w/]+\.yaml", HOWTO):
        assert (ROOT / script_).is_file()


def test_the_shops_configs_and_cases_of_the_howto_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    from data_gen.config import load_data_config
    from eval.cases import load_cases
    from eval.experiment import load_eval_config
    from haggle.trade.world_io import load_world, load_worlds
    from serving.engines import read_engine_config

    titled = [(re.match(r"# (\w+\.(?:yaml|csv))\n", text), text) for _, text in BLOCKS]
    files = {title[1]: text for title, text in titled if title}
    assert {"my_shop.yaml", "my_shop.csv", "my_adapter.yaml"} <= set(files)
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert len(load_eval_config("my_gemini.yaml").runs) == 3
    assert load_data_config("my_teacher.yaml").teacher is not None
    shops = [load_world("my_shop.yaml"), load_world("my_shop.csv")]
    assert shops[0].items == shops[1].items and len(shops[0].inventory) == 3
    assert shops[0].currency == shops[1].currency == "pennies"
    assert read_engine_config("my_adapter.yaml").adapter is not None
    (cases,) = [text for kind, text in BLOCKS if kind == "json"]
    (tmp_path / "my_cases.jsonl").write_text(cases, encoding="utf-8")
    (tmp_path / "my_worlds").mkdir()
    (tmp_path / "my_shop.yaml").rename(tmp_path / "my_worlds" / "my_shop.yaml")
    assert len(load_cases("my_cases.jsonl", load_worlds("my_worlds"))) == 2
