"""Runs over the same turns held against the first: texts, decisions, accuracy lost."""

from __future__ import annotations

import json
import random
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eval.compare import compare_runs, read_answered
from eval.journal import finish, resume
from haggle.cli import app, main
from haggle.core.errors import HaggleError
from haggle.core.storage import write_json, write_jsonl
from haggle.rates import independent_difference, paired_difference, rate
from haggle.trade.agreement import agreement

OFFER = '{"last":"","state":"OFFER_SELL","cart":[["Sharp Axe",2]],"say":"Two axes."}'
OTHER_WORDS = OFFER.replace("Two axes.", "Here you are.")
OTHER_CART = OFFER.replace("2]", "3]")
NOT_SOLD = '{"last":"","state":"OFFER_SELL","cart":[["?elven sword",1]],"say":"I have none."}'
SHOWN = '{"last":"","state":"SHOW_ITEMS","show":["Local Map"],"say":"Look."}'
BID = '{"last":"OFFER_SELL","state":"NEGOTIATE","bid":90,"say":"Hm."}'
CASUAL = '{"last":"","state":"CASUAL","say":"Rain again."}'

MakeRun = Callable[..., Path]


@pytest.fixture
def turns(tmp_path: Path) -> MakeRun:
    """Writes a run of `eval turns` that gave these answers to turns whose right ones are known."""

    def make(
        name: str, rights: list[str], answers: list[str], first: int = 0, asked: str = "same"
    ) -> Path:
        records = []
        for number, (right, answer) in enumerate(zip(rights, answers, strict=True), start=first):
            verdict = agreement(right, answer, "")
            records.append(
                {
                    "id": f"d/{number}", "player": f"line {number}", "right": right,
                    "answer": answer, "joint": verdict.joint, "state": verdict.state,
                    "cart": verdict.cart,
                }
            )  # fmt: skip
        out = tmp_path / name
        out.mkdir(parents=True)
        write_jsonl(out / "predictions.jsonl", records)
        write_json(out / "run.json", {"engine": "llamacpp", "model": name, "turns": asked})
        return out

    return make


def test_the_same_answers_differ_in_nothing(turns: MakeRun) -> None:
    rights = [OFFER, CASUAL, BID, SHOWN]
    told = compare_runs([turns("bf16", rights, rights), turns("Q8_0", rights, rights)])
    assert told["n"] == 4 and told["reference"] == "bf16" and told["left_out"] == 0
    for run in told["runs"]:
        assert run["same_text"]["value"] == run["same_decision"]["value"] == 1
        assert run["joint"]["value"] == 1 and run["cart"]["n"] == 1
        assert {d["value"] for d in run["differences"].values()} == {0}
        assert run["other_text"] == run["other_decision"] == run["lost"] == run["gained"] == []


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (OFFER, OTHER_WORDS, True),
        (OFFER, OTHER_CART, False),
        (OFFER, CASUAL, False),
        (OFFER, OFFER.replace("Sharp Axe", "sharp axe"), True),
        (NOT_SOLD, NOT_SOLD.replace("elven sword", "elf sword"), True),
        (SHOWN, SHOWN.replace("Local Map", "Sharp Axe"), False),
        (SHOWN, SHOWN.replace("Look.", "See."), True),
        (BID, BID.replace("90", "95"), False),
        (CASUAL, CASUAL.replace('"say"', '"cart":[],"say"'), False),
        ("oops", "oh", True),
        ("oops", CASUAL, False),
        (CASUAL, "oops", False),
    ],
)
def test_a_decision_is_what_the_ledger_gets_to_see(
    turns: MakeRun, one: str, two: str, same: bool
) -> None:
    told = compare_runs([turns("a", [OFFER], [one]), turns("b", [OFFER], [two])])["runs"][1]
    assert told["same_decision"]["passed"] == int(same)
    assert told["other_decision"] == ([] if same else ["d/0"])
    assert told["other_text"] == ["d/0"]


def test_lost_and_gained_turns_are_named(turns: MakeRun) -> None:
    rights = [OFFER] * 6
    best = turns("bf16", rights, [OFFER, OFFER, OFFER, OFFER, CASUAL, CASUAL])
    coarse = turns("Q4_0", rights, [OFFER, OTHER_CART, CASUAL, OTHER_WORDS, OFFER, CASUAL])
    told = compare_runs([best, coarse])["runs"][1]
    assert told["lost"] == ["d/1", "d/2"] and told["gained"] == ["d/4"]
    assert told["other_text"] == ["d/1", "d/2", "d/3", "d/4"]
    assert told["other_decision"] == ["d/1", "d/2", "d/4"]
    difference = told["differences"]["joint"]
    assert difference["value"] == pytest.approx(-1 / 6)
    assert difference["low"] < -1 / 6 < difference["high"]
    assert (difference["lost"], difference["gained"]) == (2, 1)


def test_only_turns_that_all_runs_answered_count(turns: MakeRun) -> None:
    paths = [
        turns("a", [OFFER] * 6, [OFFER] * 6),
        turns("b", [OFFER] * 4, [OFFER] * 4, first=2),
        turns("c", [OFFER] * 3, [CASUAL] * 3, first=1),
    ]
    told = compare_runs(paths)
    assert told["n"] == 2 and told["left_out"] == 4
    assert told["runs"][2]["lost"] == ["d/2", "d/3"]


def test_runs_that_answered_different_turns_are_refused(turns: MakeRun) -> None:
    one = turns("a", [OFFER], [OFFER])
    with pytest.raises(HaggleError, match="share no turn") as caught:
        compare_runs([one, turns("b", [OFFER], [OFFER], first=7)])
    assert "--seed" in caught.value.hint and caught.value.where.endswith("b")
    with pytest.raises(HaggleError, match="'d/0' is another turn"):
        compare_runs([one, turns("c", [CASUAL], [OFFER])])
    with pytest.raises(HaggleError, match="same ids, but other contents"):
        compare_runs([one, turns("d", [OFFER], [OFFER], asked="another history")])


def test_an_unfinished_run_is_an_error(turns: MakeRun, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    with pytest.raises(HaggleError, match=r"no predictions\.jsonl") as caught:
        compare_runs([turns("a", [OFFER], [OFFER]), tmp_path / "broken"])
    assert caught.value.where.endswith("broken")
    with pytest.raises(HaggleError, match="two runs"):
        compare_runs([tmp_path / "a"])
    with pytest.raises(HaggleError, match="named twice"):
        compare_runs([tmp_path / "a", tmp_path / "a"])


def test_runs_of_one_name_are_told_apart_by_the_path_before(turns: MakeRun) -> None:
    paths = [turns(f"{model}/turns", [OFFER], [OFFER]) for model in ("old", "new")]
    told = compare_runs(paths)
    assert [run["name"] for run in told["runs"]] == ["old/turns", "new/turns"]


def test_runs_of_hand_written_cases_compare_what_the_player_got(tmp_path: Path) -> None:
    def record(state: str, price: int | None, raw: str, failed: list[str]) -> dict[str, Any]:
        details = {"sale_price": price} if price else None
        return {
            "id": "c1", "player": "an axe", "state": state, "cart": {"axe": 1},
            "response": {"context_details": details}, "joint": not failed, "failed": failed,
            "turn": {"raw": raw},
        }  # fmt: skip

    for name, one in (
        ("a", record("OFFER_SELL", 130, OFFER, [])),
        ("b", record("OFFER_SELL", 130, OTHER_WORDS, [])),
        ("c", record("CASUAL", None, CASUAL, ["state"])),
    ):
        (tmp_path / name).mkdir()
        write_jsonl(tmp_path / name / "predictions.jsonl", [one])
        identity = {"engine": "e", "model": name, "guard": "state", "cases": ["x"], "worlds": "y"}
        write_json(tmp_path / name / "run.json", identity)
    told = compare_runs([tmp_path / name for name in "abc"])
    assert told["kind"] == "cases"
    _, b, c = told["runs"]
    assert b["same_decision"]["value"] == 1 and b["same_text"]["value"] == 0
    assert c["same_decision"]["value"] == 0 and c["state"]["value"] == 0 and c["guard"] == "state"
    assert c["cart"]["n"] == 0  # a case does not say whether its cart was looked at


def test_the_interval_of_a_difference_holds_what_it_promises() -> None:
    rng = random.Random(5)
    n, rounds, held = 120, 400, 0
    for _ in range(rounds):  # shares 0.70 and 0.66, most turns alike in both
        kinds = rng.choices(("both", "gained", "lost", "neither"), (0.64, 0.06, 0.02, 0.28), k=n)
        mine = [kind in ("both", "gained") for kind in kinds]
        told = paired_difference(mine, [kind in ("both", "lost") for kind in kinds])
        held += told["low"] <= 0.04 <= told["high"]
    assert held / rounds > 0.93


def test_the_interval_is_narrower_than_that_of_two_samples_and_never_nothing() -> None:
    same = [True] * 160 + [False] * 40
    told = paired_difference(same, same)
    assert told["value"] == 0 and -0.02 < told["low"] < 0 < told["high"] < 0.02
    apart = paired_difference(same, same[100:] + same[:100])
    assert apart["value"] == 0 and apart["high"] > 4 * told["high"]
    all_right = paired_difference([True] * 50, [True] * 50)
    assert -0.1 < all_right["low"] <= 0 <= all_right["high"] < 0.1
    assert paired_difference([], [])["value"] is None


def test_swapping_the_runs_mirrors_the_difference() -> None:
    one, two = [True] * 30 + [False] * 10, [True] * 25 + [False] * 15
    there, back = paired_difference(one, two), paired_difference(two, one)
    assert there["value"] == pytest.approx(-back["value"])
    assert (there["low"], there["high"]) == pytest.approx((-back["high"], -back["low"]))


def test_the_command_prints_a_table_and_writes_the_ids(
    turns: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rights = [OFFER] * 4
    paths = [turns("bf16", rights, rights), turns("Q4_0", rights, [*rights[:3], CASUAL])]
    out = tmp_path / "out" / "compare.json"
    ran = CliRunner().invoke(app, ["eval", "compare", *map(str, paths), "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert "4 turns: Q4_0 against bf16" in ran.output
    lines = ran.output.splitlines()
    assert max(map(len, lines[:-1])) <= 80 and "…" not in ran.output
    for measure in ("joint", "state"):  # each with its paired interval
        assert any(re.search(rf" {measure} .* 100\.0% .* 75\.0% .* -25\.0 \(-", x) for x in lines)
    assert any(re.search(r"same decision .* 75\.0%", x) for x in lines)
    told = json.loads(out.read_text(encoding="utf-8"))
    assert told["runs"][1]["lost"] == ["d/3"]


def test_the_command_s_error_says_what_to_do(
    turns: MakeRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [turns("a", [OFFER], [OFFER]), turns("b", [OFFER], [OFFER], first=3)]
    monkeypatch.setattr("sys.argv", ["haggle", "eval", "compare", *map(str, paths)])
    with pytest.raises(SystemExit):
        main()
    told = capsys.readouterr().err
    assert "share no turn" in told and "hint: run them with the same data set" in told


def test_a_merged_directory_is_asked_through_an_engine_that_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from serving import engines

    asked: list[Any] = []
    monkeypatch.setattr("serving.engines.load_engine", asked.append)
    engines.open_engine("transformers", None, "runs/mine/model/merged")
    assert asked[0].model == "runs/mine/model/merged" and asked[0].adapter is None
    with pytest.raises(HaggleError, match="reads no model directory") as caught:
        engines.open_engine("llamacpp_batch", None, "runs/mine/model/merged")
    assert caught.value.where == "--model" and "--gguf" in caught.value.hint
    assert len(asked) == 1


def test_a_run_begun_anew_over_a_finished_one_is_not_read(tmp_path):
    identity = {"model": "one", "turns": "t"}
    record = {"id": "a", "joint": True}
    resume(tmp_path, identity)
    finish(tmp_path, [record], {})
    assert read_answered(tmp_path, "run").records == {"a": record}
    resume(tmp_path, identity | {"model": "two"})
    with pytest.raises(HaggleError, match="not finished"):
        read_answered(tmp_path, "run")


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [((36, 12, 2, 0), 0.0569, 0.3404), ((1, 1, 7, 12), -0.507, -0.026)],
)  # Newcombe 1998, method 10; Fagerland, Lydersen and Laake 2013, "square-and-add"
def test_the_difference_of_paired_rates_is_newcombes(table, low, high):
    kinds = ((True, True), (True, False), (False, True), (False, False))
    pairs = [kind for kind, count in zip(kinds, table, strict=True) for _ in range(count)]
    found = paired_difference(*zip(*pairs, strict=True))
    assert found["low"] == pytest.approx(low, abs=5e-4)
    assert found["high"] == pytest.approx(high, abs=5e-4)


def test_the_difference_of_paired_rates_is_near_a_bootstrap_of_the_pairs():
    stats = pytest.importorskip("scipy.stats")
    rng = random.Random(3)
    kinds = rng.choices(((1, 1), (1, 0), (0, 1), (0, 0)), (0.7, 0.1, 0.04, 0.16), k=400)
    mine, reference = zip(*kinds, strict=True)
    found = paired_difference(mine, reference)
    differences = [a - b for a, b in kinds]
    drawn = stats.bootstrap((differences,), statistics.fmean, vectorized=False, n_resamples=2000,
                            rng=5).confidence_interval  # fmt: skip
    assert found["low"] == pytest.approx(drawn.low, abs=0.01)
    assert found["high"] == pytest.approx(drawn.high, abs=0.01)


def test_the_difference_of_independent_rates_is_newcombes():
    # Newcombe 1998 (II), example (a): 56/70 - 48/80, method 10: 0.0524 to 0.3339
    found = independent_difference(rate(56, 70), rate(48, 80))
    assert found["value"] == pytest.approx(0.2)
    assert found["low"] == pytest.approx(0.0524, abs=5e-4)
    assert found["high"] == pytest.approx(0.3339, abs=5e-4)
