"""The command line: what it does end to end, and what it says to a wrong input."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from haggle import cli
from haggle.cli.tables import print_table
from haggle.core.config import ROOT
from haggle.core.storage import read_json, read_jsonl
from haggle.dataset import iter_rows
from haggle.grammar.json_text import to_json

COMMANDS = (
    "generate", "inspect", "stats", "preferences", "train", "export", "card", "chat", "eval",
    "demo",
)  # fmt: skip
TALK = {"form", "judge", "label", "report", "step"}  # of eval talk
HEAVY = ("torch", "transformers", "trl", "datasets", "vllm", "xllamacpp", "matplotlib", "pyarrow")
WORLD = """\
merchant: {name: Ada, persona: A calm trader.}
currency: gold
items:
  - {item_id: axe, item_name: Sharp Axe, price: 130, quantity: 3}
  - {item_id: map, item_name: Local Map, price: 60, quantity: 1}
"""
CASES = [
    {"id": "a", "world": "stall", "player": "good day", "gold": {"states": ["CASUAL"]}, "tags": ["t"]},
    {"id": "b", "world": "stall", "player": "an axe", "gold": {"states": ["OFFER_SELL"], "carts": [{"axe": 1}]}},
]  # fmt: skip
CASUAL = to_json({"last": "", "state": "CASUAL", "say": "Well."})
OFFER = to_json(
    {"last": "", "state": "OFFER_SELL", "cart": [["Sharp Axe", 1]], "say": "__CART__: __PRICE__."}
)
END = to_json({"last": "", "state": "END", "say": "Farewell."})
DATA = "train: 1\ntest: 0\nitems: [4, 6]\n"
# Everything a wrong input may be tried on is right but for the one thing a test replaces.
FILES = {
    "data.yaml": DATA,
    "train.yaml": "dataset: none.jsonl\noutput_dir: run\n",
    "eval.yaml": "dialogues: 1\nscenarios: [specific_items]\nworlds: [frontier_shop]\nruns: [{name: one, engine: serve.yaml, guard: off}]\n",
    "serve.yaml": "engine: scripted\nscripted:\n  answers: []\n",
    "llama.yaml": "engine: llamacpp\n",
    "cases.jsonl": "".join(to_json(case) + "\n" for case in CASES),
    "worlds/stall.yaml": WORLD,
}


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a right file of every kind in it."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def haggle(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Runs a command as a shell would; words are parted at spaces."""
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(line: str, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "argv", ["haggle", *line.split()])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return Ran(int(stop.value.code or 0), out, err)

    return run


def script(path: Path, *answers: str) -> None:
    """Write a serve config of the scripted engine that gives these answers."""
    lines = "".join(f"    - {json.dumps(answer)}\n" for answer in answers)
    path.write_text(f"engine: scripted\nscripted:\n  answers:\n{lines}", encoding="utf-8")


def test_help_lists_every_command_and_loads_no_library_to_do_so():
    code = (
        "import sys, time\n"
        "sys.argv = ['haggle', '--help']\n"
        "from haggle.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
        "print(time.process_time())"  # of this process: the machine may be busy with others
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", cwd=ROOT,
        check=True,
    )  # fmt: skip
    *shown, heavy, seconds = ran.stdout.strip().splitlines()
    for command in COMMANDS:
        assert any(f" {command} " in line for line in shown), command
    assert heavy == "[]"
    assert float(seconds) < 2  # a fresh clone compiles first


@pytest.mark.parametrize(
    "command",
    [
        *COMMANDS,
        "sop show",
        "sop plan",
        "eval cases",
        "eval sop",
        "eval talk",
        *(f"eval talk {name}" for name in sorted(TALK)),
    ],
)
def test_every_option_of_every_command_is_explained(haggle, command):
    ran = haggle(f"{command} --help")
    assert ran.code == 0
    rows = [line.strip(" │*") for line in ran.out.splitlines() if "--" in line]
    assert rows and all(len(row.split()) > 3 for row in rows), ran.out


def test_without_a_command_the_help_is_shown(haggle):
    assert "generate" in haggle("").out


WRONG: dict[str, tuple[str, dict[str, str], list[str]]] = {
    # a config that does not exist, by name or by file
    "data name": ("generate --config defualt", {}, ["--config", "'defualt'", "did you mean 'default'"]),
    "train name": ("train --config dmeo", {}, ["--config", "'dmeo'", "did you mean 'demo'"]),
    "eval name": ("eval --config latencie", {}, ["--config", "'latencie'", "did you mean 'latency'"]),
    "serve name": ("chat --engine lamacpp", {}, ["--engine", "'lamacpp'", "did you mean 'llamacpp'"]),
    "world name": ("chat --world frontier_shp", {}, ["--world", "did you mean 'frontier_shop'"]),
    "data file": ("generate --config no.yaml", {}, ["no.yaml", "no such file", "check the path"]),
    "train file": ("train --config no.yaml", {}, ["no.yaml", "no such file", "check the path"]),
    "eval file": ("eval --config no.yaml", {}, ["no.yaml", "no such file", "check the path"]),
    "serve file": ("chat --engine no.yaml", {}, ["no.yaml", "no such file", "check the path"]),
    "world file": ("chat --world no.csv", {}, ["no.csv", "no such file", "check the path"]),
    # a key misspelt
    "data key": ("generate --config data.yaml", {"data.yaml": "trian: 1\n"}, ["data.yaml", "'trian'", "did you mean 'train'"]),
    "train key": ("train --config train.yaml", {"train.yaml": "dataset: d\noutput_dir: o\nlora: {rank: 4, aplha: 8}\n"}, ["train.yaml", "'lora.rank'", "alpha", "r, "]),
    "eval key": ("eval --config eval.yaml", {"eval.yaml": "runs: [{name: a, engin: llamacpp}]\n"}, ["eval.yaml", "'runs.0.engin'", "did you mean 'engine'"]),
    "serve key": ("chat --engine serve.yaml", {"serve.yaml": "engine: scripted\nthread: 2\n"}, ["serve.yaml", "'thread'", "did you mean 'threads'"]),
    # a value out of the question
    "data value": ("generate --config data.yaml", {"data.yaml": "train: many\n"}, ["data.yaml", "train", "integer", "'many'"]),
    "no yaml": ("generate --config data.yaml", {"data.yaml": "train: [1\ntest: 2\n"}, ["data.yaml:2", "not YAML"]),
    "seed": ("generate --config data.yaml --seed -1", {}, ["options", "seed", "greater than or equal to 0"]),
    "n": ("generate --n 0", {}, ["--n", "1"]),
    "dialogues": ("eval --dialogues 0", {}, ["--dialogues", "1"]),
    "minutes": ("train --config train.yaml --max-minutes 0", {}, ["--max-minutes", "0.01"]),
    "data method": ("generate --config data.yaml", {"data.yaml": DATA + "method: astp-compat\n"}, ["data.yaml", "'astp-compat'", "did you mean 'astp-compact'"]),
    "eval method": ("eval --config eval.yaml", {"eval.yaml": "runs: [{name: a, engine: llamacpp, method: atsp}]\n"}, ["eval.yaml", "'atsp'", "did you mean 'astp'"]),
    "chat method": ("chat --method atsp", {}, ["--method", "'atsp'", "did you mean 'astp'"]),
    "cases method": ("eval cases --cases cases.jsonl --worlds worlds --out out --method atsp", {}, ["--method", "'atsp'"]),
    "chat guard": ("chat --guard sate", {}, ["--guard", "'sate'", "did you mean 'state'"]),
    "cases guard": ("eval cases --cases cases.jsonl --worlds worlds --out out --guard on", {}, ["--guard", "'on'", "off, schema, state"]),
    "eval guard": ("eval --config eval.yaml", {"eval.yaml": "runs: [{name: a, engine: llamacpp, guard: sate}]\n"}, ["eval.yaml", "runs.0.guard", "'off', 'schema' or 'state'"]),
    "engine": ("chat --engine serve.yaml", {"serve.yaml": "engine: lama-cpp\n"}, ["serve.yaml", "'lama-cpp'", "did you mean 'llamacpp'"]),
    "eval engine": ("eval --config eval.yaml --out out", {"serve.yaml": "engine: lama-cpp\n"}, ["serve.yaml", "'lama-cpp'", "did you mean 'llamacpp'"]),
    "eval serve name": ("eval --config eval.yaml --out out", {"eval.yaml": "runs: [{name: a, engine: lamacpp}]\n"}, ["eval.yaml: run 'a'", "'lamacpp'", "did you mean 'llamacpp'"]),
    "command": ("generat", {}, ["generat", "No such command"]),
    "no dataset": ("train --config train.yaml", {}, ["none.jsonl", "no such dataset"]),
    "no adapter": ("export runs/none --out out", {}, ["runs", "none", "no such directory", "train first"]),
    # a shop that cannot be read
    "world key": ("chat --world w.yaml", {"w.yaml": WORLD.replace("price: 60", "prize: 60")}, ["w.yaml: item 2 (map)", "'items.1.prize'", "did you mean 'price'"]),
    "world yaml": ("chat --world w.yaml", {"w.yaml": WORLD + "  - {item_id\n"}, ["w.yaml:", "not YAML"]),
    "world list": ("chat --world w.yaml", {"w.yaml": "- axe\n"}, ["w.yaml", "no mapping"]),
    "world json": ("chat --world w.json", {"w.json": '{"merchant": {,}}'}, ["w.json:1", "not JSON"]),
    "world column": ("chat --world w.csv", {"w.csv": "item_id,item_name,cost,quantity\naxe,Axe,3,1\n"}, ["w.csv:1", "'cost'", "price"]),
    "world cell": ("chat --world w.csv", {"w.csv": "item_id,item_name,price,quantity\naxe,Axe,3,1\nmap,Map,dear,1\n"}, ["w.csv:3", "price", "'dear'"]),
    "world row": ("chat --world w.csv", {"w.csv": "item_id,item_name,price,quantity\naxe,Axe,3\n"}, ["w.csv:2", "cells"]),
    "eval world": ("eval --config eval.yaml", {"eval.yaml": "worlds: [w.csv]\nruns: [{name: a, engine: llamacpp}]\n", "w.csv": "a,b\n"}, ["w.csv:1", "unknown column 'a'"]),
    # cases that cannot be read
    "no cases": ("eval cases --cases no.jsonl --worlds worlds --out out", {}, ["no.jsonl", "no such file"]),
    "no worlds": ("eval cases --cases cases.jsonl --worlds none --out out", {}, ["none", "no such directory", "folder of worlds"]),
    "case json": ("eval cases --cases cases.jsonl --worlds worlds --out out", {"cases.jsonl": to_json(CASES[0]) + '\n{"id"\n'}, ["cases.jsonl:2", "not JSON"]),
    "case key": ("eval cases --cases cases.jsonl --worlds worlds --out out", {"cases.jsonl": to_json(CASES[0] | {"tgas": []})}, ["cases.jsonl:1", "'tgas'", "did you mean 'tags'"]),
    "case world": ("eval cases --cases cases.jsonl --worlds worlds --out out", {"cases.jsonl": to_json(CASES[0] | {"world": "stal"})}, ["cases.jsonl:1", "'stal'", "did you mean 'stall'"]),
    # model files
    "no gguf": ("chat --gguf no.gguf", {}, ["no.gguf", "no such model file", "gguf"]),
    "no eval gguf": ("eval --config eval.yaml --gguf no.gguf --out out", {}, ["no.gguf", "no such model file", "--gguf"]),
    "foreign gguf": ("chat --gguf w.gguf", {"w.gguf": "a poem"}, ["w.gguf", "not a GGUF file"]),
    "idle gguf": ("chat --engine serve.yaml --gguf w.gguf", {"w.gguf": "GGUF"}, ["--gguf", "'scripted' reads no GGUF"]),
    # places that cannot be written to
    "out file": ("generate --config data.yaml --out serve.yaml", {}, ["serve.yaml", "is a file"]),
    "cases out file": ("eval cases --cases cases.jsonl --worlds worlds --engine serve.yaml --out serve.yaml", {}, ["serve.yaml", "exist"]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_input_is_told_with_its_place_and_nothing_is_written(
    haggle: Run, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    # The names of TRL's arguments are checked in tests/training; importing TRL takes seconds.
    monkeypatch.setattr("training.recipes.check_trainer_keys", lambda *_, **__: None)
    line, files, told = WRONG[name]
    if "gguf" in name and "chat" in line and find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    before = {path for path in folder.rglob("*") if path.is_file()}
    ran = haggle(line)
    assert ran.code == 2
    for words in told:
        assert words in ran.err, ran.err
    assert "Traceback" not in ran.out + ran.err
    assert {path for path in folder.rglob("*") if path.is_file()} == before


def test_a_gguf_cut_off_is_named(folder: Path):
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed")
    (folder / "cut.gguf").write_bytes(b"GGUF\x03\0\0\0" + bytes(300))
    # In a process of its own: it is llama.cpp that has to survive here.
    ran = subprocess.run(
        [sys.executable, "-m", "haggle", "chat", "--gguf", "cut.gguf"], capture_output=True,
        text=True, encoding="utf-8", cwd=folder, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    assert "cut.gguf" in ran.stderr and "hint: " in ran.stderr and "Traceback" not in ran.stderr


def test_a_directory_of_another_config_is_left_alone(haggle: Run, folder: Path):
    assert haggle("generate --config data.yaml --out out --quiet").code == 0
    before = (folder / "out" / "train-00000-of-00001.parquet").read_bytes()
    ran = haggle("generate --config data.yaml --out out --quiet --seed 5")
    assert ran.code == 2 and "out: holds data of another config" in ran.err
    assert "choose another --out" in ran.err
    assert (folder / "out" / "train-00000-of-00001.parquet").read_bytes() == before


def test_generate_writes_a_labelled_data_set(haggle: Run, folder: Path):
    ran = haggle("generate --config data.yaml --out out --n 5 --workers 1 --jsonl --quiet")
    assert ran.code == 0 and "dialogues 5" in ran.out
    rows = read_jsonl(folder / "out" / "train-00000-of-00001.jsonl")
    assert len(rows) == 5 and rows == list(iter_rows(folder / "out"))
    assert {"id", "messages", "turns", "world"} <= rows[0].keys()
    assert [m["role"] for m in rows[0]["messages"][:3]] == ["system", "user", "assistant"]
    again = haggle("generate --config data.yaml --out out --n 5 --quiet")
    assert again.code == 0 and "made_now" in again.out
    assert read_json(folder / "out" / "summary.json")["made_now"] == 0


def test_eval_cases_writes_metrics_with_the_agreed_keys(haggle: Run, folder: Path):
    script(folder / "serve.yaml", CASUAL, OFFER)
    line = "eval cases --cases cases.jsonl --worlds worlds --engine serve.yaml --out out --quiet"
    ran = haggle(line)
    assert ran.code == 0 and "joint_accuracy" in ran.out, ran.err
    metrics = read_json(folder / "out" / "metrics.json")
    rates = {
        "n", "state_accuracy", "cart_accuracy", "joint_accuracy", "forbidden_rate",
        "price_ok_rate", "shown_ok_rate", "valid_json_rate", "wrongful_sales", "held_up_yeses",
    }  # fmt: skip
    assert set(metrics) == rates | {
        "by_tag", "latency_s", "engine", "guard", "model", "renewed",
    }  # fmt: skip
    assert set(metrics["by_tag"]["t"]) == rates and set(metrics["latency_s"]) == {"p50", "p95"}
    assert (metrics["n"], metrics["joint_accuracy"], metrics["cart_accuracy"]) == (2, 1.0, 1.0)
    assert (metrics["engine"], metrics["guard"]) == ("scripted", "state")
    assert [row["id"] for row in read_jsonl(folder / "out" / "predictions.jsonl")] == ["a", "b"]


def test_answers_that_run_out_are_an_error_that_says_so(haggle: Run, folder: Path):
    script(folder / "serve.yaml", CASUAL)
    line = "eval cases --cases cases.jsonl --worlds worlds --engine serve.yaml --out out --quiet"
    ran = haggle(line)
    assert ran.code == 2 and "no answer left for request 2" in ran.err
    script(folder / "serve.yaml", OFFER)
    assert haggle(line).code == 0, "the answer there was is kept"


def test_eval_plays_a_dialogue_and_writes_a_report(haggle: Run, folder: Path):
    script(folder / "serve.yaml", CASUAL, END, *[END] * 60)
    ran = haggle("eval --config eval.yaml --out out --quiet")
    assert ran.code == 0, ran.err
    assert "report.html" in ran.out and "STCR" in ran.out
    (dialogue,) = read_jsonl(folder / "out" / "one" / "specific_items.jsonl")
    assert dialogue["turns"][0]["state"] == "CASUAL"
    assert (folder / "out" / "report.html").is_file()
    (result,) = read_json(folder / "out" / "metrics.json")["results"]
    assert result["run"]["name"] == "one" and result["model"] == "scripted"
    assert result["all"]["valid_json"]["value"] == 1.0
    again = haggle("eval --config eval.yaml --out out --quiet")
    assert again.code == 0, "a finished experiment needs no model"
    other = haggle("eval --config eval.yaml --out out --quiet --dialogues 2")
    assert other.code == 2 and "out: holds another experiment" in other.err


def test_a_wrong_engine_or_file_does_not_claim_the_directory(haggle: Run, folder: Path):
    (folder / "serve.yaml").write_text("engine: scriptd\n", encoding="utf-8")
    assert haggle("eval --config eval.yaml --out out --quiet").code == 2
    assert haggle("eval --config eval.yaml --out out --quiet --gguf no.gguf").code == 2
    script(folder / "serve.yaml", *[END] * 60)
    assert haggle("eval --config eval.yaml --out out --quiet").code == 0


def test_chat_talks_from_a_pipe_and_frees_the_engine(
    haggle: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    from serving.engines.scripted import ScriptedEngine

    closed: list[Any] = []
    monkeypatch.setattr(ScriptedEngine, "close", lambda engine: closed.append(engine))
    script(folder / "serve.yaml", OFFER)
    ran = haggle("chat --engine serve.yaml --world worlds/stall.yaml", stdin="an axe\n")
    assert ran.code == 0 and "1 Sharp Axe: 130." in ran.out
    assert len(closed) == 1


@pytest.mark.parametrize(
    ("line", "target"),
    [
        ("generate --config data.yaml --out out", "data_gen.generate.generate"),
        ("eval --config eval.yaml --out out", "eval.experiment.run_experiment"),
        ("chat --engine serve.yaml", "serving.chat.chat"),
    ],
)
def test_an_interrupt_ends_with_130_and_says_how_to_go_on(haggle: Run, monkeypatch, line, target):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(target, interrupted)
    ran = haggle(line)
    assert ran.code == 130
    assert "interrupted; run the same command again" in ran.err and "Traceback" not in ran.err


def test_a_result_is_printed_as_it_is_written(capsys: pytest.CaptureFixture[str]):
    print_table("[t]", {"out": "runs/[bold]/[/]", "nested": {"a": 0.123456}, "none": None})
    shown = capsys.readouterr().out
    assert "runs/[bold]/[/]" in shown and "a 0.1235" in shown and "None" in shown
