"""Judges: models in a schema, people from a file, and how far they agree."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.talk.conversation import Table
from eval.talk.judge import JudgeAnswer, judge_request, run_judge
from eval.talk.judgements import (
    LABELS,
    all_judgements,
    consensus,
    import_judgements,
    judgements_by,
    scale,
    turn_ids,
)
from eval.talk.measures import write_measures
from haggle.cli.talk_tables import print_measures
from haggle.core.codec import matches, to_schema
from haggle.core.errors import HaggleError
from serving.engines.scripted import ScriptedEngine

TURNS = ["axe/1", "axe/2", "axe/3", "ask/1", "none/1"]


def test_the_scale_has_each_label_once_with_an_example():
    assert tuple(rung.name for rung in scale().labels) == LABELS
    assert all(rung.meaning and rung.example.why for rung in scale().labels)


@pytest.fixture
def table(played: Callable[..., Any]) -> Table:
    """Three conversations, five turns."""
    found: Table = played()[0]
    assert turn_ids(found) == TURNS
    return found


def judged(table: Table, *answers: str, name: str | None = None) -> ScriptedEngine:
    engine = ScriptedEngine(answers)
    run_judge(table, engine, name=name, batch=2, progress=False)
    return engine


def test_a_judge_sees_the_turn_and_what_happened_and_not_who_spoke(table, script):
    engine = judged(table, *[script.verdict("right")] * 5)
    first, third = engine.requests[0], engine.requests[2]
    told = "".join(message.content for message in third.messages)
    assert "Customer: yes\nShopkeeper: Sold" in told and "sold: 1 Sharp Axe for 130 gold" in told
    assert "Local Map: 60" in told and "Known, not for sale: Elemental Wand" in told
    assert "Customer: yes" not in first.messages[-1].content, "later turns are not shown"
    assert not [word for word in ("scripted", "guard", "state", "model", "LLM") if word in told]
    assert all(rung.meaning.strip() in told for rung in scale().labels)
    assert first.constraint == JudgeAnswer() and first.temperature == 0


def test_a_judges_answer_is_held_to_the_schema(script):
    assert matches(JudgeAnswer(), script.verdict("harmful", "unanswered", "yes"))
    assert not matches(JudgeAnswer(), script.verdict("bad"))
    assert not matches(JudgeAnswer(), script.verdict("right", relevant="perhaps"))
    labels = to_schema(JudgeAnswer())["properties"]["label"]["enum"]
    assert labels == list(LABELS)


def test_what_cannot_be_read_is_asked_again_and_then_left_unjudged(table, script):
    right = script.verdict("right")
    # Turns are asked in twos; the second of the first pair is never answered well.
    engine = judged(table, right, "good!", script.verdict("bad"), "no idea", right, right, right)
    assert set(judgements_by(table.out, "scripted")) == {"axe/1", "axe/3", "ask/1", "none/1"}
    assert "labels that were asked for" in engine.requests[3].messages[-1].content
    again = judged(table)
    assert again.requests == [], "what was judged, or given up, is not asked again"


def test_a_judge_that_breaks_off_goes_on(table, script):
    with pytest.raises(HaggleError):
        judged(table, *[script.verdict("right")] * 2)
    assert len(judged(table, *[script.verdict("right")] * 3).requests) == 3
    assert len(judgements_by(table.out, "scripted")) == 5


def test_another_judge_does_not_take_a_name(table, script):
    judged(table, *[script.verdict("right")] * 5, name="j")
    other = ScriptedEngine([])
    other.model = "another"
    with pytest.raises(HaggleError, match="another judge is called 'j'"):
        run_judge(table, other, name="j", progress=False)
    assert len(judgements_by(table.out, "j")) == 5


def test_a_judge_needs_a_name_that_a_folder_can_have(table):
    with pytest.raises(HaggleError, match="judge"):
        run_judge(table, ScriptedEngine([]), name="../j", progress=False)
    assert not (table.out / "judges").exists()


def test_the_request_for_each_turn_is_the_same_however_often_it_is_made(table):
    assert judge_request(table, "axe", 2) == judge_request(table, "axe", 2)


def people(tmp_path: Path, *judgements: dict[str, Any]) -> Path:
    path = tmp_path / "judged.jsonl"
    path.write_text("".join(json.dumps(j) + "\n" for j in judgements), encoding="utf-8")
    return path


def by(judge: str, turn: str, label: str, **fields: Any) -> dict[str, Any]:
    conversation, _, number = turn.partition("/")
    return {
        "judge": judge, "conversation": conversation, "turn": int(number), "label": label,
    } | fields  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (by("ann", "axe/4", "right"), ["judged.jsonl:2", "has 3 turns, no turn 4"]),
        (by("ann", "axe/0", "right"), ["judged.jsonl:2", "turn", "greater than or equal to 1"]),
        (by("ann", "ax/1", "right"), ["judged.jsonl:2", "'ax'", "did you mean 'axe'"]),
        (by("ann", "axe/1", "bad"), ["judged.jsonl:2", "label", "'harmful'", "'bad'"]),
        (by("../x", "axe/1", "right"), ["judged.jsonl:2", "judge"]),
        (by("ann", "axe/1", "right", contradict=True), ["did you mean 'contradicts'"]),
    ],
)
def test_a_wrong_judgement_is_told_and_none_of_the_file_is_kept(table, tmp_path, wrong, told):
    path = people(tmp_path, by("ann", "axe/1", "right"), wrong)
    with pytest.raises(HaggleError) as error:
        import_judgements(table, path)
    assert all(words in str(error.value) for words in told), error.value
    assert all_judgements(table.out) == {}


def test_most_judges_decide_and_where_they_are_even_the_worse(table, tmp_path):
    votes = {"ann": ["right", "right"], "bob": ["right", "wrong"], "cem": ["wrong", "harmful"]}
    lines = [
        by(n, t, label) for n, two in votes.items() for t, label in zip(TURNS, two, strict=False)
    ]
    assert import_judgements(table, people(tmp_path, *lines)) == 6
    told = consensus(all_judgements(table.out).values())
    assert (told["axe/1"].label, told["axe/2"].label) == ("right", "harmful")


def test_relevance_is_what_most_say_who_say_it_and_where_they_are_even_the_worse(table, tmp_path):
    votes = {"ann": [True, True, None], "bob": [True, False, None], "cem": [False, None, None]}
    lines = [
        by(name, turn, "right") | ({} if vote is None else {"relevant": vote})
        for name, three in votes.items()
        for turn, vote in zip(TURNS, three, strict=False)
    ]
    import_judgements(table, people(tmp_path, *lines))
    told = consensus(all_judgements(table.out).values())
    assert [told[turn].relevant for turn in TURNS[:3]] == [True, False, None]


def test_relevance_counts_the_turns_that_were_asked_about_it(table, tmp_path):
    lines = [
        by("ann", "axe/1", "right", relevant=True), by("ann", "axe/2", "wrong", relevant=False),
        by("ann", "axe/3", "right"),
    ]  # fmt: skip
    import_judgements(table, people(tmp_path, *lines))
    told = write_measures(table)
    assert (told["relevant"]["passed"], told["relevant"]["n"]) == (1, 2)
    assert told["wrong"]["n"] == 3


def test_judgements_from_before_relevance_load_and_leave_the_measure_out(table, capsys):
    old = by("ann", "axe/1", "right", question="none", contradicts=False, remark="")
    folder = table.out / "judges" / "ann"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"judge": "ann"}', encoding="utf-8")
    (folder / "progress.jsonl").write_text(json.dumps(old | {"id": "axe/1"}) + "\n")
    assert judgements_by(table.out, "ann")["axe/1"].relevant is None
    told = write_measures(table)
    assert (told["relevant"]["value"], told["relevant"]["n"]) == (None, 0)
    assert told["contradicts"]["n"] == 1
    print_measures(told)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "answer the player" in line]
    assert [cell.strip() for cell in row.split("│")[1:-1]] == [
        "lines that answer the player",
        "n/a",
        "0",
    ]


def test_a_model_says_of_each_turn_whether_the_line_answers(table, script):
    answers = [script.verdict("right")] * 4 + [script.verdict("wrong", relevant="no")]
    engine = judged(table, *answers)
    assert scale().relevant.strip() in engine.requests[0].messages[0].content
    told = write_measures(table)["relevant"]
    assert (told["passed"], told["n"]) == (4, 5)
    assert judgements_by(table.out, "scripted")["none/1"].relevant is False


def test_a_later_judgement_replaces_an_earlier_one(table, tmp_path):
    import_judgements(table, people(tmp_path, by("ann", "axe/1", "right")))
    import_judgements(table, people(tmp_path, by("ann", "axe/1", "wrong")))
    assert judgements_by(table.out, "ann")["axe/1"].label == "wrong"


def test_the_measures_are_those_of_the_judgements(table, tmp_path):
    lines = [
        by("ann", "axe/1", "right"), by("ann", "axe/2", "harmful", contradicts=True),
        by("ann", "axe/3", "cosmetic"), by("ann", "ask/1", "wrong", question="unanswered"),
        by("ann", "none/1", "right"),
    ]  # fmt: skip
    import_judgements(table, people(tmp_path, *lines))
    told = write_measures(table)
    assert (told["wrong"]["passed"], told["wrong"]["n"]) == (2, 5)
    assert (told["harmful"]["passed"], told["cosmetic"]["passed"]) == (1, 1)
    assert told["contradicts"]["passed"] == 1
    assert (told["questions_answered"]["passed"], told["questions_answered"]["n"]) == (0, 1)
    assert (told["goals"]["passed"], told["goals"]["n"]) == (2, 3), "an open question fails `ask`"
    assert told["extra_turns"]["value"] == 0 and told["guard"] == "state"
    assert told["judges"]["ann"]["person"] and told["by_shop"]["stall"]["n"] == 3
    low, high = told["wrong"]["low"], told["wrong"]["high"]
    assert 0 <= low < 0.4 < high <= 1


def test_without_a_judge_a_goal_with_questions_does_not_count(table):
    told = write_measures(table)
    assert (told["goals"]["passed"], told["goals"]["n"]) == (2, 2)
    assert told["wrong"]["value"] is None and told["judged"] == 0 and told["agreement"] == []


def test_repeated_lines_are_counted(played, script):
    answers = [script.CASUAL] * 3 + [script.SHOW, script.CASUAL]
    told = write_measures(played(answers)[0])
    assert (told["repeats_last"]["passed"], told["repeats_last"]["n"]) == (2, 2)
    assert (told["distinct_lines"]["passed"], told["distinct_lines"]["n"]) == (3, 5)
    assert told["goals"]["passed"] == 1, "no axe was sold"


def test_two_judges_agree_by_kappa(table, tmp_path, script):
    labels = ["right", "right", "wrong", "wrong", "right"]
    import_judgements(
        table, people(tmp_path, *[by("ann", t, v) for t, v in zip(TURNS, labels, strict=True)])
    )
    judged(table, *map(script.verdict, ["right", "wrong", "wrong", "wrong", "right"]), name="m")
    (pair,) = write_measures(table)["agreement"]
    assert pair["judges"] == ["ann", "m"] and pair["n"] == 5 and pair["agreed"] == 0.8
    assert pair["value"] == pytest.approx((0.8 - 0.48) / (1 - 0.48))
