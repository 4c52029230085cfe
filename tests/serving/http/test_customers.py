"""Players at once: scripted customers of the load test, and the real model with two slots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from haggle.cli import app as command
from haggle.core.config import ROOT
from haggle.core.engine import Generation
from haggle.trade.world_io import load_world
from serving.engines import load_engine, method_for, read_engine_config


def test_the_load_tests_customers_buy_of_the_shipped_script(serve: Any, tmp_path: Path) -> None:
    engine = load_engine(read_engine_config("scripted_customers"))
    shop, out = load_world(ROOT / "eval" / "load_shop.csv"), tmp_path / "load.json"
    with serve(engine, worlds=[shop], limits={"per_minute": 0}) as game:
        url = f"http://127.0.0.1:{game.port}"
        words = ["bench", "load", url, "--shop", shop.name, "--sessions", "8", "--turns", "160"]
        result = CliRunner().invoke(command, [*words, "--quiet", "--out", str(out)])
        assert result.exit_code == 0, result.output
        sales = game.get(f"/shops/{shop.name}/sales").json()
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["books"] == {"sales": len(sales), "lost": 0, "doubled": 0}
    assert len(sales) > 160 / 10  # at best every third turn of a customer
    assert {sale["price"] for sale in sales} == {20.0}
    assert found["refused"] == {"HTTP 429": 0, "HTTP 503": 0} and found["errors"] == {}


@pytest.mark.slow
@pytest.mark.parametrize("slots", [1, 2])
def test_two_sessions_in_turns_read_only_what_is_new_where_each_has_a_slot(
    serve: Any, monkeypatch: pytest.MonkeyPatch, slots: int
) -> None:
    config = read_engine_config("llamacpp").model_copy(update={"parallel": slots, "context": 2048})
    engine = load_engine(config)
    answers: list[Generation] = []
    stream = engine.stream

    def heard(request: Any) -> Any:
        for piece in stream(request):
            if isinstance(piece, Generation):
                answers.append(piece)
            yield piece

    monkeypatch.setattr(engine, "stream", heard)
    talks = (
        ["good day to you", "two sturdy ropes please", "and three torches"],
        ["what is the axe good for", "fine weather today", "one sharp axe then"],
    )
    decided: list[list[Generation]] = [[], []]
    try:
        with serve(engine, method=method_for(config), limits={"at_once": slots}) as game:
            sessions = [game.open() for _ in talks]
            for lines in zip(*talks, strict=True):
                for player, (session, line) in enumerate(zip(sessions, lines, strict=True)):
                    answers.clear()
                    assert game.say(session, line).status_code == 200
                    decided[player].append(answers[0])
    finally:
        engine.close()
    for _, second, third in decided:
        new = third.prompt_tokens - second.prompt_tokens
        assert new > 30 and second.prompt_tokens > 500
        # One slot has the shop left, and reads the talk so far again.
        assert (third.read_tokens <= new + 10) is (slots == 2)
