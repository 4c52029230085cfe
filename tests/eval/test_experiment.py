"""Experiments: the same players for every run, and nothing lost or doubled by an interruption."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eval.experiment import (
    EvalConfig,
    RunConfig,
    close_engines,
    load_eval_config,
    make_play,
    run_experiment,
)
from haggle.core.errors import HaggleError
from haggle.core.storage import read_jsonl

SCENARIOS = ["specific_items", "recommendation"]


def config(*runs: dict, **fields) -> EvalConfig:
    given = {"dialogues": 4, "runs": runs or [{"name": "a", "engine": "x"}]} | fields
    return EvalConfig.model_validate(given)


def experiment(settings: EvalConfig, out: Path, engine, **fields):
    return run_experiment(settings, out, start=lambda run: engine, progress=False, **fields)


def files(out: Path) -> dict[str, bytes]:
    paths = (p for p in out.rglob("*") if p.is_file())
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in paths}


def _broken(run: RunConfig):
    raise HaggleError("no such model")


def test_an_oracle_is_right_about_everything(oracle, tmp_path):
    """With the guard off: the guard reviews again what only reads like doubt."""
    run = {"name": "a", "engine": "x", "guard": "off"}
    metrics = experiment(config(run, dialogues=6), tmp_path / "out", oracle())
    measured = metrics["results"][0]["all"]
    assert measured["dialogues"] == 12
    for name in ("valid_json", "inference_consistency", "sirr", "stcr"):
        assert measured[name]["value"] == 1.0, name
    assert {r["value"] for r in measured["accuracy"].values()} == {1.0}
    assert not any(measured["failed"].values()) and measured["interventions"] == {}


def test_a_run_leaves_config_dialogues_metrics_and_report(oracle, tmp_path):
    metrics = experiment(config(), tmp_path / "out", oracle())
    assert set(files(tmp_path / "out")) == {
        "config.resolved.yaml", "metrics.json", "report.html", "a/engine.json",
        "a/specific_items.jsonl", "a/recommendation.jsonl",
    }  # fmt: skip
    assert json.loads((tmp_path / "out" / "metrics.json").read_text(encoding="utf-8")) == metrics
    assert metrics["results"][0]["model"] == "scripted"
    for scenario in SCENARIOS:
        rows = read_jsonl(tmp_path / "out" / "a" / f"{scenario}.jsonl")
        assert [row["seed"] for row in rows] == [0, 1, 2, 3]
        assert all(t["truth"]["act"] and t["truth"]["state"] for row in rows for t in row["turns"])


def test_the_same_seed_opens_with_the_same_line_whatever_the_model_says(oracle, tmp_path):
    runs = [{"name": "good", "engine": "x"}, {"name": "bad", "engine": "y", "guard": "off"}]
    engines = {"x": oracle(), "y": oracle(lambda call, text: "garbage")}
    run_experiment(
        config(*runs, dialogues=6),
        tmp_path / "out",
        start=lambda run: engines[run.engine],
        progress=False,
    )
    for scenario in SCENARIOS:
        good, bad = (
            {d["seed"]: d for d in read_jsonl(tmp_path / "out" / run / f"{scenario}.jsonl")}
            for run in ("good", "bad")
        )
        for seed in range(6):
            assert good[seed]["turns"][0]["player"] == bad[seed]["turns"][0]["player"]
            assert good[seed]["world"] == bad[seed]["world"]
        assert any(good[s]["turns"] != bad[s]["turns"] for s in range(6))


def test_every_seed_has_its_own_player_and_sampled_shops_are_of_the_held_out_genres(oracle):
    settings = config(worlds=["sampled"])
    plays = [make_play(settings, "specific_items", seed, "astp-compact") for seed in range(12)]
    assert len({play.next_line() for play in plays}) > 8
    assert len({play.session.world.name for play in plays}) == 12


def test_an_interrupted_experiment_goes_on_where_it_stopped(oracle, tmp_path):
    settings = config(dialogues=5)
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    untouched = oracle()
    experiment(settings, whole, untouched)

    def fail(call: int, text: str) -> str:
        if call == untouched.calls // 4:  # within the first scenario
            raise KeyboardInterrupt
        return text

    broken = oracle(fail)
    with pytest.raises(KeyboardInterrupt):
        experiment(settings, torn, broken)
    close_engines()
    kept = files(torn)["a/specific_items.jsonl"]
    assert kept.count(b"\n") in range(1, 5) and "metrics.json" not in files(torn)
    resumed = oracle()
    experiment(settings, torn, resumed)
    after = files(torn)
    assert after["a/specific_items.jsonl"].startswith(kept), (
        "finished dialogues are not played again"
    )
    turns = [len(json.loads(line)["turns"]) for line in kept.splitlines()]
    assert resumed.calls == untouched.calls - sum(turns)
    for scenario in SCENARIOS:
        rows = read_jsonl(torn / "a" / f"{scenario}.jsonl")
        assert [row["seed"] for row in rows] == [0, 1, 2, 3, 4]
        assert [[t["raw"] for t in row["turns"]] for row in rows] == [
            [t["raw"] for t in row["turns"]]
            for row in read_jsonl(whole / "a" / f"{scenario}.jsonl")
        ]


@pytest.mark.parametrize("end", [b'{"id": "torn', b'{"id": "\xf0\x9f', b"{}"])
def test_a_dialogue_torn_by_a_kill_is_played_again_once(oracle, tmp_path, end):
    settings = config(scenarios=["specific_items"])
    experiment(settings, tmp_path, oracle())
    path = tmp_path / "a" / "specific_items.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + end)
    experiment(settings, tmp_path, oracle())
    assert [row["seed"] for row in read_jsonl(path)] == [0, 1, 2, 3]


def test_a_line_that_lost_only_its_end_is_not_lost_by_the_next_one(oracle, tmp_path):
    settings = config(scenarios=["specific_items"])
    experiment(settings, tmp_path, oracle())
    path = tmp_path / "a" / "specific_items.jsonl"
    two = b"".join(path.read_bytes().splitlines(keepends=True)[:2])
    path.write_bytes(two.rstrip(b"\n"))
    metrics = experiment(settings, tmp_path, oracle())
    assert sorted(row["seed"] for row in read_jsonl(path)) == [0, 1, 2, 3]
    assert metrics["results"][0]["all"]["dialogues"] == 4


def test_a_finished_experiment_asks_no_model_again(oracle, tmp_path):
    first = experiment(config(), tmp_path, oracle())
    idle = oracle()
    close_engines()
    again = experiment(config(), tmp_path, idle)
    assert idle.calls == 0 and again == first


def test_another_config_in_the_same_directory_is_refused(oracle, tmp_path):
    experiment(config(dialogues=1), tmp_path, oracle())
    before = files(tmp_path)
    with pytest.raises(HaggleError, match="holds another experiment"):
        experiment(config(dialogues=2), tmp_path, oracle())
    assert files(tmp_path) == before


@pytest.mark.parametrize("made", [True, False])
def test_an_engine_that_cannot_start_leaves_no_claim(oracle, tmp_path, made):
    out = tmp_path / "out"
    if made:
        out.mkdir()

    with pytest.raises(HaggleError, match="no such model"):
        run_experiment(config(dialogues=1), out, start=_broken, progress=False)
    assert files(tmp_path) == {} and out.exists() == made
    experiment(config(dialogues=2), out, oracle())


def test_an_engine_that_answers_nothing_leaves_no_claim(oracle, tmp_path):
    def refuse(call: int, text: str) -> str:
        raise HaggleError("unknown model")

    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(HaggleError, match="unknown model"):
        experiment(config(dialogues=1), tmp_path, oracle(refuse))
    assert files(tmp_path) == {"notes.txt": b"mine"}


def test_a_later_run_that_cannot_start_keeps_what_the_first_has_played(oracle, tmp_path):
    def start(run: RunConfig):
        if run.name == "b":
            raise HaggleError("no such model")
        return oracle()

    runs = [{"name": "a", "engine": "x"}, {"name": "b", "engine": "y"}]
    with pytest.raises(HaggleError, match="no such model"):
        run_experiment(config(*runs, dialogues=1), tmp_path, start=start, progress=False)
    assert "config.resolved.yaml" in files(tmp_path)
    assert len(read_jsonl(tmp_path / "a" / "specific_items.jsonl")) == 1
    with pytest.raises(HaggleError, match="holds another experiment"):
        experiment(config(*runs, dialogues=2), tmp_path, oracle())


def test_a_failed_start_takes_no_claim_from_an_experiment_that_was_there(oracle, tmp_path):
    experiment(config(dialogues=1), tmp_path, oracle())
    for scenario in SCENARIOS:
        (tmp_path / "a" / f"{scenario}.jsonl").unlink()
    close_engines()
    claimed = files(tmp_path)
    with pytest.raises(HaggleError, match="no such model"):
        run_experiment(config(dialogues=1), tmp_path, start=_broken, progress=False)
    assert files(tmp_path) == claimed


def test_a_file_in_the_place_of_the_directory_is_refused(oracle, tmp_path):
    (tmp_path / "out").write_text("x", encoding="utf-8")
    with pytest.raises(HaggleError, match="out"):
        experiment(config(), tmp_path / "out", oracle())


def test_dialogues_side_by_side_are_the_same_dialogues(oracle, tmp_path):
    experiment(config(dialogues=6), tmp_path / "one", oracle())
    close_engines()
    experiment(config(dialogues=6, batch=4), tmp_path / "four", oracle())
    for scenario in SCENARIOS:
        one, four = (
            {d["seed"]: [(t["player"], t["raw"]) for t in d["turns"]] for d in read_jsonl(p)}
            for p in (tmp_path / n / "a" / f"{scenario}.jsonl" for n in ("one", "four"))
        )
        assert one == four


def test_runs_of_one_model_share_the_engine_and_others_close_it(oracle, tmp_path):
    engines = {"x": oracle(), "y": oracle()}
    started: list[str] = []

    def start(run: RunConfig):
        started.append(run.name)
        return engines[run.engine]

    runs = [
        {"name": "off", "engine": "x", "guard": "off"},
        {"name": "on", "engine": "x"},
        {"name": "y", "engine": "y"},
    ]
    run_experiment(config(*runs, dialogues=1), tmp_path, start=start, progress=False)
    assert started == ["off", "y"]
    assert engines["x"].closed and not engines["y"].closed


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("runs: []\n", "runs"),
        ("runs: [{name: a, engin: x}]\n", "did you mean 'engine'"),
        ("runs: [{name: a, engine: x}, {name: a, engine: y}]\n", "two runs are called 'a'"),
        ("runs: [{name: ../a, engine: x}]\n", "runs.0.name"),
        ("runs: [{name: a, engine: x, guard: on}]\n", "runs.0.guard"),
        ("runs: [{name: a, engine: x, method: astq}]\n", "did you mean 'astp'"),
        ("runs: [{name: a, engine: x}]\nworlds: [fronteer_shop]\n", "did you mean 'frontier_shop'"),
        ("runs: [{name: a, engine: x}]\nscenarios: [haggling]\n", "scenarios.0"),
        ("runs: [{name: a, engine: x}]\ndialogues: 0\n", "dialogues"),
        ("runs: [{name: a, engine: x}]\nitems: [9, 3]\n", "items"),
    ],
)
def test_a_mistake_in_a_config_is_named(tmp_path, text, complaint):
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HaggleError) as refused:
        load_eval_config(path)
    assert complaint in str(refused.value)


def test_an_unquoted_off_is_the_guard_off_though_yaml_reads_it_as_false(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("runs: [{name: a, engine: x, guard: off}]\n", encoding="utf-8")
    assert load_eval_config(path).runs[0].guard == "off"
