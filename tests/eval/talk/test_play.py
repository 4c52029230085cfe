"""Conversations: played by models, by written lines, by people; resumed from their journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eval.talk.conversation import TURNS, Say, load_table
from eval.talk.goals import GoalSet
from eval.talk.players import WrittenPlayer, read_written
from haggle.cli import app
from haggle.core.engine import Generation
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, read_jsonl
from serving.engines.scripted import ScriptedEngine


def test_a_player_with_a_goal_buys_and_leaves(played, script):
    table, merchant, _ = played()
    axe, ask, none = table.records()
    assert (axe["bought"], axe["paid"], axe["ended"]) == ({"axe": 1}, 130, "player")
    assert [turn["player"] for turn in axe["turns"]] == script.LINES[:3]
    assert [turn["price"] for turn in axe["turns"]] == [130, 130, 130]
    assert [bool(turn["sale"]) for turn in axe["turns"]] == [False, False, True]
    assert ask["bought"] == none["bought"] == {}
    assert len(merchant.requests) == 5


def test_a_player_is_told_goal_voice_and_words_and_nothing_else(played):
    _, _, model = played()
    rules, told = (message.content for message in model.requests[2].messages)
    assert "Buy one axe." in told and "polite, complete sentences" in told
    assert "You: an axe please\nAda: 1 Sharp Axe: 130 gold." in told
    hidden = ("OFFER_SELL", "FINAL_CHECK", "baskets", "cart", "minimum", "stock", "guard", "Map")
    assert not [word for word in hidden if word in rules + told]


def test_conversations_go_side_by_side_in_one_call(played, monkeypatch, script):
    sizes: list[int] = []
    generate = ScriptedEngine.generate

    def counted(self: ScriptedEngine, requests: Any) -> list[Generation]:
        sizes.append(len(requests))
        return generate(self, requests)

    monkeypatch.setattr(ScriptedEngine, "generate", counted)
    lines = ["an axe", "what is the map", "a wand?", "fine", "End", "End", "yes", "End"]
    table, _, _ = played(
        [script.OFFER, script.SHOW, script.CASUAL, script.REVIEW, script.SALE], lines, batch=3
    )
    assert sizes == [3, 3, 3, 1, 1, 1, 1]  # player, merchant, in turns
    assert [len(talk.turns) for talk in table.conversations.values()] == [3, 1, 1]


def test_what_cannot_be_used_is_asked_for_again_and_then_the_conversation_ends(played, script):
    bad = "Ada: 130 gold, my friend."
    table, _, model = played(
        [script.OFFER, script.SHOW, script.CASUAL], ["an axe", bad, bad, bad, *script.LINES[4:]]
    )  # fmt: skip
    assert table.conversations["axe"].ended == "stuck"
    assert "you are the customer" in model.requests[2].messages[-1].content


def test_a_conversation_ends_at_the_limit_or_with_the_merchants_farewell(played, script):
    table, _, _ = played(
        [script.CASUAL, script.CASUAL, script.BYE, script.CASUAL],
        ["hi", "so", "bye", "a?", "End"],
        limit=2,
    )
    assert [talk.ended for talk in table.conversations.values()] == ["limit", "merchant", "player"]


class Breaking(ScriptedEngine):
    """A merchant that breaks off after some calls."""

    def __init__(self, answers: Iterable[str], calls: int) -> None:
        super().__init__(answers)
        self.calls = calls

    def generate(self, requests: Any) -> list[Generation]:
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return super().generate(requests)


def test_a_run_that_was_broken_off_goes_on_where_it_stood(played, tmp_path, script):
    whole, _, _ = played(name="whole")
    with pytest.raises(KeyboardInterrupt):
        played(merchant=Breaking(script.ANSWERS, 2))
    with (tmp_path / "out" / TURNS).open("a", encoding="utf-8") as journal:
        journal.write('{"turns": [{"conv')  # torn by the crash
    assert [len(t.turns) for t in load_table(tmp_path / "out").conversations.values()] == [2, 0, 0]
    resumed, merchant, _ = played(script.ANSWERS[2:], script.LINES[2:])
    assert resumed.records() == whole.records()
    assert len(merchant.requests) == 3
    again, merchant, model = played([], [])
    assert again.records() == whole.records() and not merchant.requests + model.requests


def test_a_directory_of_other_conversations_is_left_alone(played, tmp_path):
    played()
    before = (tmp_path / "out" / TURNS).read_bytes()
    with pytest.raises(HaggleError, match=r"another guard \('state', not 'off'\)"):
        played(guard="off")
    assert (tmp_path / "out" / TURNS).read_bytes() == before


def test_a_journal_that_means_something_else_now_is_told(played, tmp_path):
    played()
    journal = tmp_path / "out" / TURNS
    text = journal.read_text(encoding="utf-8")
    journal.write_text(text.replace("1 Sharp Axe: 130", "1 Sharp Axe: 131"), encoding="utf-8")
    with pytest.raises(HaggleError, match="another version"):
        load_table(tmp_path / "out")


def test_written_lines_are_said_whatever_is_answered(goals: GoalSet, tmp_path: Path, script):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"goal": "axe", "lines": ["hi", "an axe"]}\n', encoding="utf-8")
    player = WrittenPlayer(read_written(path, goals))
    table = load_or_begin(goals.only(["axe"]), tmp_path / "out", player.name)
    merchant = ScriptedEngine([script.CASUAL, script.OFFER])
    while going := table.open():
        said = player.next(going)
        table.say({talk.id: say for talk, say in zip(going, said, strict=True)}, merchant)
    (axe,) = table.records()
    assert [turn["player"] for turn in axe["turns"]] == ["hi", "an axe"]
    assert axe["ended"] == "player"


def load_or_begin(goals: GoalSet, out: Path, player: str):
    from eval.talk.conversation import begin
    from eval.talk.run import setting_of

    return begin(out, setting_of(goals, ScriptedEngine([]), "state", player), goals)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"goal": "ax", "lines": ["hi"]}', ["lines.jsonl:1", "'ax'", "did you mean 'axe'"]),
        ('{"goal": "axe", "lines": []}', ["lines.jsonl:1", "lines"]),
        ('{"goal": "axe", "lines": [""]}', ["lines.jsonl:1", "lines.0"]),
        ('{"goal": "axe", "line": ["hi"]}', ["lines.jsonl:1", "'line'", "did you mean 'lines'"]),
        ("", ["lines.jsonl", "holds no lines"]),
    ],
)
def test_wrong_written_lines_are_told(goals: GoalSet, tmp_path: Path, line: str, told: list[str]):
    path = tmp_path / "lines.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(HaggleError) as error:
        read_written(path, goals)
    assert all(words in str(error.value) for words in told), error.value


Command = Callable[..., Result]


@pytest.fixture
def command(goals_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `haggle eval talk ...` in a folder with goals; answers go into the merchant's config."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(line: str, *answers: str, config: str = "merchant.yaml") -> Result:
        if answers:
            write_config(config, answers)
        return CliRunner().invoke(app, ["eval", "talk", *line.split()])

    return run


def write_config(name: str, answers: tuple[str, ...]) -> None:
    listed = "".join(f"    - {json.dumps(answer)}\n" for answer in answers)
    Path(name).write_text(f"engine: scripted\nscripted:\n  answers:\n{listed}", encoding="utf-8")


def say(path: Path, *lines: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"step --out out --say {path.name}"


def test_people_play_turn_by_turn_and_only_the_first_call_names_the_merchant(
    command, tmp_path, script
):
    opened = command("step --out out --goals goals.yaml --engine merchant.yaml", script.CASUAL)
    assert opened.exit_code == 0, opened.output
    shown = [json.loads(line) for line in opened.stdout.splitlines()]
    assert [one["conversation"] for one in shown] == ["axe", "ask", "none"]
    assert shown[0]["wants"] == "Buy one axe." and shown[0]["said"] == ""
    assert not {"baskets", "guard", "engine"} & set(shown[0])

    lines = tmp_path / "say.jsonl"
    first = say(
        lines, {"conversation": "axe", "line": "an axe"}, {"conversation": "none", "line": "hm"}
    )
    answered = command(first, script.OFFER, script.CASUAL)
    said = [json.loads(line) for line in answered.stdout.splitlines()]
    assert [one["said"] for one in said] == ["1 Sharp Axe: 130 gold.", "Fine day."]

    filled = read_jsonl(tmp_path / "out" / "open.jsonl")
    assert [one["turn"] for one in filled] == [2, 1, 2]
    filled[0]["line"], filled[2]["end"] = "that is fine", True  # the one between is left empty
    assert command(say(lines, *filled), script.REVIEW).exit_code == 0
    table = load_table(tmp_path / "out")
    assert [talk.ended for talk in table.conversations.values()] == ["", "", "player"]
    command(say(lines, {"conversation": "axe", "line": "yes"}), script.SALE)
    assert load_table(tmp_path / "out").records()[0]["bought"] == {"axe": 1}


def test_a_step_that_breaks_off_is_as_if_it_had_not_been(command, tmp_path, script):
    command("step --out out --goals goals.yaml --engine merchant.yaml", script.OFFER)
    both = [{"conversation": "axe", "line": "an axe"}, {"conversation": "ask", "line": "the map"}]
    failed = command(say(tmp_path / "say.jsonl", *both))  # one answer for two lines
    assert isinstance(failed.exception, HaggleError)
    assert load_table(tmp_path / "out").records() == []


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([{"conversation": "ax", "line": "hi"}], ["say.jsonl:1", "'ax'", "did you mean 'axe'"]),
        ([{"conversation": "none", "line": "hi"}], ["say.jsonl:1", "has ended (player)"]),
        ([{"conversation": "axe", "line": "hi", "turn": 1}], ["turn 1 of 'axe' is not due", "2"]),
        ([{"conversation": "axe", "line": "a"}] * 2, ["say.jsonl:2", "stands twice"]),
        ([{"conversation": "axe", "lin": "a"}], ["say.jsonl:1", "'lin'", "did you mean 'line'"]),
        ([{"conversation": "axe"}], ["says nothing"]),
        ([{"conversation": "axe", "line": "a" * 501}], ["say.jsonl:1", "line", "500"]),
    ],
)
def test_a_wrong_step_is_told_and_nothing_is_said(command, tmp_path, lines, told, script):
    command(
        "step --out out --goals goals.yaml --engine merchant.yaml", script.CASUAL, script.CASUAL
    )
    start = [{"conversation": "axe", "line": "hi"}, {"conversation": "none", "line": "a wand?"}]
    command(say(tmp_path / "say.jsonl", *start))
    command(say(tmp_path / "say.jsonl", {"conversation": "none", "end": True}))
    before = (tmp_path / "out" / TURNS).read_bytes()
    error = command(say(tmp_path / "say.jsonl", *lines)).exception
    assert isinstance(error, HaggleError) and all(words in str(error) for words in told), error
    assert (tmp_path / "out" / TURNS).read_bytes() == before


def test_the_whole_evaluation_by_command(command, tmp_path, script):
    write_config("player.yaml", script.LINES)
    write_config(
        "judge.yaml",
        (
            *[script.verdict("right")] * 3,
            script.verdict("right", "answered"),
            script.verdict("wrong"),
        ),
    )
    ran = command(
        "--goals goals.yaml --player player.yaml --judge judge.yaml --engine merchant.yaml"
        " --batch 1 --out out --quiet",
        *script.ANSWERS,
    )
    assert ran.exit_code == 0, ran.exception
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert "goals reached" in ran.stdout and "guard state" in ran.stdout
    metrics = read_json(tmp_path / "out" / "metrics.json")
    assert metrics["goals"]["value"] == 1 and metrics["wrong"]["passed"] == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--player merchant.yaml", ["--out"]),
        ("--out out", ["--player ENGINE or --lines FILE"]),
        ("--out out --player llamcpp --goals goals.yaml", ["--player", "llamacpp"]),
        ("--out out --lines no.jsonl --goals goals.yaml", ["no.jsonl", "no such file"]),
        ("--out out --player x --world frontier_shpo", ["--world", "frontier_shop"]),
        ("step --out out --say no.jsonl", ["out", "open them first"]),
        ("judge --out out --judge merchant.yaml", ["out", "holds no conversations"]),
        ("judge --out out", ["--judge ENGINE or --judgements FILE"]),
        ("report --out out", ["out", "holds no conversations"]),
        ("form --out out", ["out", "holds no conversations"]),
    ],
)
def test_wrong_options_are_told_and_nothing_is_written(command, tmp_path, line, told):
    error = command(line).exception
    assert isinstance(error, HaggleError) and all(words in str(error) for words in told), error
    assert not (tmp_path / "out").exists()


def test_nobody_needs_an_engine_to_leave(goals: GoalSet, tmp_path: Path):
    table = load_or_begin(goals, tmp_path / "out", "people")
    table.say({"axe": Say(ends="player")}, None)
    assert [talk.id for talk in table.open()] == ["ask", "none"]
