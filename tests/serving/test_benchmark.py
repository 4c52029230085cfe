"""The benchmark asks the same of both sides and refuses what it cannot measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from haggle.core.errors import HaggleError
from serving.benchmark import compare, main, requests
from serving.engines.scripted import ScriptedEngine


def test_prompts_come_from_several_stages_of_a_trade():
    guarded = requests("frontier_shop", 32)
    assert len(guarded) >= 5
    assert len({str(r.constraint) for r in guarded}) > 1
    assert all(r.max_tokens == 32 and r.constraint for r in guarded)


def test_both_sides_get_the_same_prompts_in_turns():
    guarded = requests("frontier_shop", 32)[:2]
    engine = ScriptedEngine(["one two three four five six seven eight nine ten"] * 12)
    figures = compare(engine, guarded, runs=2)
    assert set(figures) >= {"ratio", "cpu_ratio", "free_tokens_per_s", "guarded_tokens_per_s"}
    kept = [r.constraint is not None for r in engine.requests]
    assert kept == [False, True, False, True, True, False, True, False, False, True, False, True]


def test_answers_too_short_to_time_are_an_error():
    with pytest.raises(HaggleError, match="shorter than 8"):
        compare(ScriptedEngine(["no"] * 4), requests("frontier_shop", 32)[:1], runs=1)


def test_an_engine_that_does_not_stream_tokens_is_refused(tmp_path: Path):
    config = tmp_path / "serve.yaml"
    config.write_text("engine: transformers\n", encoding="utf-8")
    with pytest.raises(HaggleError, match="token by token"):
        main(["--config", str(config)])
