"""`haggle bench serve` asks both sides the same and writes what it measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.serving import guard_beside_none, players_at_once, size_and_length, summary
from haggle.cli import app
from haggle.core.errors import HaggleError
from haggle.trade.methods import DEFAULT_METHOD
from serving.engines.scripted import ScriptedEngine

ANSWER = '{"last":"","state":"CASUAL","say":"Well met."}'


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine([ANSWER] * 200)


def quiet(_: str) -> None:
    """Nobody watches."""


def test_both_sides_get_the_same_prompts_in_turns(engine):
    figures = guard_beside_none(engine, DEFAULT_METHOD, 0.5, "frontier_shop", 4, quiet)
    assert {"guarded", "unguarded", "turn_ratio", "first_word_ratio", "raw_s"} <= set(figures)
    turns = [r for r in engine.requests if r.messages[-1].role == "user" and r.max_tokens > 40]
    assert [r.constraint is not None for r in turns] == [False, True, True, False] * 2
    assert turns[0].messages == turns[1].messages


@pytest.mark.parametrize("ask_below", [0.0, 0.5])
def test_guarded_turns_are_scored_where_the_served_ones_are(ask_below):
    decides = ScriptedEngine(['{"last":"","state":"CASUAL"}', '{"say":"Well met."}'] * 20)
    size_and_length(decides, "astp-stepwise", ask_below, [5], 1, quiet)
    assert decides.requests[0].scored is (ask_below > 0)


def test_players_talk_at_once(engine):
    told: list[str] = []
    rows = players_at_once(engine, DEFAULT_METHOD, 0.5, "frontier_shop", [1, 3], 2, told.append)
    assert [row["players"] for row in rows] == [1, 3]
    assert all(row["turns_per_s"] > 0 and row["p50_s"] <= row["longest_s"] for row in rows)
    assert all(row["raw_turns_per_s"] > 0 for row in rows)
    turned = {r.messages for r in engine.requests if r.max_tokens > 40}
    bare = {r.messages for r in engine.requests if r.messages[0].content.startswith("Again.")}
    assert bare and not bare & turned  # what a turn read is not in the cache for the engine alone
    assert told == ["1 players: 6 turns", "3 players: 6 turns"]  # the same three talks


def test_size_and_length_are_measured_apart(engine):
    rows = size_and_length(engine, DEFAULT_METHOD, 0.5, [5, 20], 6, quiet)
    assert [(row["items"], row["turn"]) for row in rows] == [
        (5, "1"), (5, "2 to 5"), (5, "6 to 10"), (20, "1"), (20, "2 to 5"), (20, "6 to 10"),
    ]  # fmt: skip


def test_nothing_timed_is_an_error():
    with pytest.raises(HaggleError, match="no turn"):
        summary([])


def test_the_command_writes_its_figures(tmp_path: Path):
    serve = tmp_path / "serve.yaml"
    serve.write_text(
        f"engine: scripted\nscripted:\n  answers: ['{ANSWER}']\n  again: true\n", encoding="utf-8"
    )
    out = tmp_path / "figures.json"
    arguments = ["bench", "serve", "--engine", str(serve), "--part", "players", "--turns", "2"]
    result = CliRunner().invoke(
        app, [*arguments, "--players", "1,2", "--out", str(out), "--quiet"], env={"COLUMNS": "80"}
    )
    assert result.exit_code == 0, result.output
    figures = json.loads(out.read_text(encoding="utf-8"))
    assert [row["players"] for row in figures["players"]] == [1, 2]
    assert "turns" in result.output
    assert "…" not in result.output  # the table is whole at 80 columns


def test_a_list_that_is_none_is_refused():
    result = CliRunner().invoke(app, ["bench", "serve", "--players", "one"])
    assert result.exit_code != 0
