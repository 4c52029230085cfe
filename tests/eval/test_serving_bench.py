"""`haggle bench serve` asks both sides the same and writes what it measured."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.serving import guard_beside_none, own_work, players_at_once, summary
from eval.turn_cost import cost_rows, size_and_length
from haggle.cli import app
from haggle.core.engine import Generation, GenerationRequest
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
    assert all(row["p95_s"] <= row["p99_s"] <= row["longest_s"] for row in rows)
    assert all(0 < row["first_word"] <= row["longest_s"] for row in rows)
    assert all(row["raw_turns_per_s"] > 0 for row in rows)
    turned = {r.messages for r in engine.requests if r.max_tokens > 40}
    bare = {r.messages for r in engine.requests if r.messages[0].content.startswith("Again.")}
    assert bare and not bare & turned  # what a turn read is not in the cache for the engine alone
    assert told == ["1 players: 6 turns", "3 players: 6 turns"]  # the same three talks


class Telling(ScriptedEngine):
    """Tells what llama.cpp tells: the first prompt is read whole, of later ones 50 tokens; writing
    takes longer from answer to answer. Full after `room` answers."""

    def __init__(self, room: int) -> None:
        super().__init__([ANSWER] * room)

    def _next(self, request: GenerationRequest) -> Generation:
        made, number = super()._next(request), len(self.requests)
        read = made.prompt_tokens if number == 1 else 50
        return replace(
            made, read_tokens=read, completion_tokens=20, read_s=read / 1000, write_s=0.2 * number
        )


def test_reading_and_writing_are_told_apart_by_size_and_length():
    talks = size_and_length(Telling(12), DEFAULT_METHOD, 0.5, [5, 20], 6, quiet)
    assert [(talk["items"], len(talk["turns"]), talk["ended"]) for talk in talks] == [
        (5, 6, ""), (20, 6, ""),
    ]  # fmt: skip
    rows = cost_rows(talks)
    assert [(row["items"], row["turn"], row["turns"]) for row in rows] == [
        (5, "1", 1), (5, "2-5", 4), (5, "6-10", 1),
        (20, "1", 1), (20, "2-5", 4), (20, "6-10", 1),
    ]  # fmt: skip
    first, early, later = rows[:3]
    assert first["read_tokens"] == first["prompt_tokens"] > 100 > early["read_tokens"]
    assert early["read_tokens"] == later["read_tokens"] == 50  # flat in length
    assert early["read_s"] == later["read_s"] == pytest.approx(0.05)
    assert early["prompt_tokens"] < later["prompt_tokens"]
    assert [row["write_s"] for row in rows[:3]] == pytest.approx([0.2, 0.7, 1.2])
    assert [row["token_ms"] for row in rows[:3]] == pytest.approx([10, 35, 60])
    assert all(row["made_tokens"] == 20 for row in rows)


def test_a_talk_that_outgrows_its_engine_says_where(engine):
    whole, short = size_and_length(Telling(5), DEFAULT_METHOD, 0.5, [5, 20], 4, quiet)
    assert whole["ended"] == "" and len(short["turns"]) == 1
    assert short["ended"].startswith("after 1 of 4 turns: the scripted engine has no answer left")


def test_what_an_engine_does_not_tell_is_no_zero(engine):
    (row,) = cost_rows(size_and_length(engine, DEFAULT_METHOD, 0.5, [5], 1, quiet))
    unknown = {"read_tokens", "read_s", "write_s", "token_ms"}
    assert {name for name, value in row.items() if value is None} == unknown


class Slow(ScriptedEngine):
    """An engine that takes its time over each piece."""

    def stream(self, request):
        for piece in super().stream(request):
            time.sleep(0.05)
            yield piece


def test_own_work_is_what_a_turn_takes_outside_the_engine():
    (row,) = own_work(Slow([ANSWER] * 60), DEFAULT_METHOD, 0.0, [52], 8, quiet)
    assert (row["items"], row["turns"]) == (52, 8)
    assert 0 < row["own_p50_ms"] <= row["own_p95_ms"]
    assert 0 < row["cpu_p50_ms"] <= row["cpu_p95_ms"]
    assert row["turn_p50_s"] > 0.1 > row["own_p50_ms"] / 1000


def test_nothing_timed_is_an_error():
    with pytest.raises(HaggleError, match="no turn"):
        summary([])


@pytest.fixture
def bench(tmp_path: Path) -> Callable[..., tuple[str, Path]]:
    """`haggle bench serve` with a scripted engine of so many answers (0: without end); what it
    printed, and the file of its figures."""

    def run(*words: str, answers: int = 0) -> tuple[str, Path]:
        serve, out = tmp_path / "serve.yaml", tmp_path / "figures.json"
        said = ", ".join([f"'{ANSWER}'"] * (answers or 1))
        again = "false" if answers else "true"
        script = f"engine: scripted\nscripted:\n  answers: [{said}]\n  again: {again}\n"
        serve.write_text(script, encoding="utf-8")
        command = ["bench", "serve", "--engine", str(serve), "--out", str(out), "--quiet", *words]
        result = CliRunner().invoke(app, command, env={"COLUMNS": "80"})
        assert result.exit_code == 0, result.output
        assert "…" not in result.output  # the tables are whole at 80 columns
        return result.output, out

    return run


def test_the_command_writes_its_figures(bench):
    printed, out = bench("--part", "players", "--turns", "2", "--players", "1,2")
    figures = json.loads(out.read_text(encoding="utf-8"))
    assert [row["players"] for row in figures["players"]] == [1, 2]
    words = printed.split()
    assert {"players", "turns", "p50", "p95", "p99", "longest"} <= set(words)
    assert "first" in words and "word" in words


def test_the_command_draws_what_size_and_length_cost(bench, tmp_path: Path):
    pytest.importorskip("matplotlib")
    plot = tmp_path / "cost.svg"
    sizes = ("--part", "size", "--sizes", "5,20", "--length", "3")
    printed, out = bench(*sizes, "--plot", str(plot), answers=4)
    assert "20 items: the talk ended after 1 of 3 turns: " in printed
    talks = json.loads(out.read_text(encoding="utf-8"))["size"]
    assert [len(talk["turns"]) for talk in talks] == [3, 1]
    assert "<svg" in plot.read_text(encoding="utf-8")
    assert {"read", "write", "token", "seconds", "-"} <= set(printed.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--part", "players", "--plot", "cost.png"], "--part size"),
        (["--plot", "cost.docx"], "png"),
    ],
)
def test_a_plot_that_cannot_be_drawn_is_refused_before_anything_runs(words, told):
    pytest.importorskip("matplotlib")
    error = CliRunner().invoke(app, ["bench", "serve", "--engine", "none", *words]).exception
    assert isinstance(error, HaggleError) and told in str(error)


def test_a_list_that_is_none_is_refused():
    result = CliRunner().invoke(app, ["bench", "serve", "--players", "one"])
    assert result.exit_code != 0
