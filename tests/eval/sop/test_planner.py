"""Planners before users and on labelled dialogues: the measures, their files, the command."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from eval.sop.knowledge import invented
from eval.sop.labelled import bleu, made, run_labelled
from eval.sop.published import load_published, published
from eval.sop.talks import compared, run_talks, score
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, read_jsonl
from haggle.grammar.json_text import to_json
from haggle.sop.task import load_task
from serving.engines.scripted import ScriptedEngine

GATE = load_task("gatekeeper")
RUN = CliRunner()
WHOLE = ("User State", "Agent Action", "Agent Response")


def answer(*fields: str) -> str:
    return to_json(dict(zip(WHOLE, fields, strict=True)))


ASKS = answer("Greeting", "AskName", "Your name?")
OPENS = answer("PeacefulErrand", "Admit", "Step through.")


def talk(number: str, success: bool, earned: bool = True, **fields) -> dict:
    turn = {"failed": [], "user_state": "a", "truth": "a", "act": "b", "right": "b",
            "valid_json": True, "latency_s": 1.0, "found": True, "ended": "",
            "plan": {"calls": 4, "batches": 2, "saved": 1, "prompt_tokens": 10,
                     "completion_tokens": 2, "thought_tokens": 0, "seconds": 1.0}}  # fmt: skip
    return {"id": number, "success": success, "earned": earned, "turns": [turn | fields],
            "invented": [[]]}  # fmt: skip


def test_pass_k_falls_where_a_user_fails_now_and_then():
    records = [talk(f"t/u{user}/{trial}", success=user == 0 or trial < 2)
               for user in range(2) for trial in range(4)]  # fmt: skip
    found = score(records)
    assert [found["pass"][f"pass^{k}"]["value"] for k in (1, 2, 3)] == pytest.approx(
        [(1 + 1 / 2) / 2, (1 + 1 / 6) / 2, 1 / 2]
    )
    assert found["per_turn"]["tokens"]["value"] == 12 and found["per_turn"]["calls"]["value"] == 4


def test_a_goal_that_was_not_earned_is_no_success():
    records = [talk("t/a/0", True, earned=False), talk("t/b/0", True), talk("t/c/0", False)]
    found = score(records)
    assert (found["success"]["passed"], found["success"]["n"]) == (1, 3)
    assert found["wrong_goal"]["passed"] == 1 and found["goal"]["passed"] == 1


def test_runs_are_compared_talk_by_talk():
    mine = [talk(f"t/u{n}/0", success=True) for n in range(6)]
    other = [talk(f"t/u{n}/0", success=n % 2 == 0, failed=["critical"]) for n in range(6)]
    found = compared(mine, other)
    assert found["talks"] == 6 and found["success"]["value"] == 0.5
    assert found["violations"]["value"] == -1.0
    with pytest.raises(HaggleError, match="has none of these talks"):
        compared(mine, [talk("x/y/0", True)])


def test_a_planner_that_skips_steps_is_counted_and_one_that_asks_is_not(tmp_path):
    def play(method, answer, guard="off", **fields):
        engine = ScriptedEngine([answer] * 200)
        return run_talks([GATE], method, engine, guard, tmp_path / method.replace("+", "-"),
                         users=3, progress=False, **fields)  # fmt: skip

    asks = play("cot+sop", ASKS)
    assert asks["violations"]["passed"] == asks["success"]["passed"] == 0
    opens = play("cot", OPENS, against=tmp_path / "cot-sop")
    assert opens["violations"]["value"] > 0.5 and opens["wrong_goal"]["passed"] == 3
    assert opens["against"]["violations"]["value"] > 0.5
    assert [row["method"] for row in opens["published"]] == ["cot"] * 7
    records = list(read_jsonl(tmp_path / "cot" / "predictions.jsonl"))
    assert {r["id"] for r in records} >= {"gatekeeper/cooperative-0/0"}
    assert records[0]["turns"][0]["plan"]["calls"] == 1


def test_an_interrupted_run_goes_on(tmp_path):
    short = ScriptedEngine([ASKS] * 20)
    with pytest.raises(HaggleError, match="no answer left"):
        run_talks([GATE], "cot+sop", short, "state", tmp_path, users=3, progress=False)
    long = ScriptedEngine([ASKS] * 60)
    run_talks([GATE], "cot+sop", long, "state", tmp_path, users=3, progress=False)
    assert len(long.requests) < 48, "the first talk was played again"


@pytest.mark.parametrize(
    ("line", "found"),
    [("Then go to the Bell House, Mirela.", []), ("Ask Bartholomew about it.", ["Bartholomew"]),
     ("That is 77 coins.", ["77"]), ("Halt. Who are you? \"Speak!\"", []), ("I am Odo's friend.", [])],
)  # fmt: skip
def test_numbers_and_names_from_nowhere_are_knowledge_errors(line, found):
    assert invented(GATE, ["good day"], line) == found
    assert invented(GATE, ["Bartholomew sent me with 77 coins"], line) == []


def test_labelled_turns_are_asked_with_the_true_history(tmp_path):
    dialogues = made([GATE], 2, seed=0)
    right = [answer(a.user, a.act, a.say) for one in dialogues for _, a in one.turns]
    engine = ScriptedEngine(right)
    found = run_labelled(dialogues, "cot+sop", engine, tmp_path, progress=False)
    for name in ("acc_t", "acc_c", "acc_d", "user_state"):
        assert found[name]["value"] == 1.0, name
    assert found["bleu_4"] == pytest.approx(100)
    line, action = dialogues[0].turns[0]
    told = engine.requests[1].messages[1].content
    assert line in told and f"Agent Action: {action.act}" in told
    assert read_json(tmp_path / "metrics.json")["turns"] == len(right)


def test_a_wrong_action_spoils_its_turn_and_its_dialogue(tmp_path):
    dialogues = made([GATE], 2, seed=0)
    texts = [answer(a.user, a.act, a.say) for one in dialogues for _, a in one.turns]
    texts[0] = answer(dialogues[0].turns[0][1].user, "Calm", "Easy.")
    found = run_labelled(dialogues, "cot", ScriptedEngine(texts), tmp_path, progress=False)
    assert found["acc_t"]["passed"] == len(texts) - 1 and found["acc_d"]["passed"] == 1


def test_bleu_tells_near_from_far():
    near = bleu(["请问您是张三先生吗?"], ["请问是张三先生吗?"])
    far = bleu(["今天天气很好。"], ["请问是张三先生吗?"])
    assert near["bleu_2"] > near["bleu_4"] > far["bleu_4"]


def test_the_published_tables_are_whole():
    tables = load_published()
    assert len(tables.predicted) == 16 and published("order") == []
    sft = [row.path_f1 for row in tables.predicted if row.method == "vertex"]
    assert sft == [65.52, 77.0, 70.21, 73.56] and len(published("vertex")) == 4
    assert len(tables.automatic) == 28 and len(tables.human) == 8
    best = max(tables.automatic, key=lambda row: row.acc_t)
    assert (best.model, best.method, best.acc_t) == ("GPT-4o", "mcts+sop", 86.37)
    assert published("best-of-k+sop") == []


def test_the_command_measures_and_compares(tmp_path):
    config = tmp_path / "engine.yaml"
    config.write_text(f"engine: scripted\nscripted: {{again: true, answers: ['{ASKS}']}}\n")
    for method, more in (("cot+sop", ""), ("best-of-k+sop", f"--against {tmp_path / 'cot+sop'}")):
        told = RUN.invoke(
            app,
            f"eval planner --method {method} --engine {config} --users 2 --quiet "
            f"--out {tmp_path / method} {more}".split(),
        )  # fmt: skip
        assert told.exit_code == 0 and "knowledge_errors" in told.output, told.output
    assert "difference in points" in told.output
    told = RUN.invoke(app, f"eval planner --method cot+sop --engine {config} --users 1 --quiet "
                           f"--out {tmp_path / 'one'}".split())  # fmt: skip
    assert told.exit_code == 0 and "pass^1" in told.output, "one user has no interval"
    told = RUN.invoke(app, f"eval planner --method cot+sop --engine {config} --made 1 --quiet "
                           f"--settings small --out {tmp_path / 'made'}".split())  # fmt: skip
    assert told.exit_code == 0 and "acc_t" in told.output and "published" in told.output


@pytest.mark.parametrize(
    ("options", "message"),
    [("--method mtcs", "unknown planner 'mtcs'"), ("--method cot --made 1 --trials 2", "go with"),
     ("--method cot --against nowhere", "no such run"),
     ("--method cot --settings smal", "did you mean 'small'")],
)  # fmt: skip
def test_bad_options_are_told(options, message, tmp_path):
    config = tmp_path / "engine.yaml"
    config.write_text("engine: scripted\nscripted: {answers: ['x']}\n")
    with pytest.raises(HaggleError, match=message):
        RUN.invoke(app, f"eval planner {options} --engine {config} --out {tmp_path / 'o'}".split(),
                   catch_exceptions=False)  # fmt: skip
