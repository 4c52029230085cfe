"""What the demo prints at the end."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from eval.experiment import EvalConfig
from haggle.core.config import load_config, named_config
from pipeline.demo import MEASURES, _table


def test_the_table_of_the_demo_is_whole_on_a_terminal_of_80_columns() -> None:
    rate = {"value": 1.0, "passed": 1234, "n": 1234, "low": 0.997, "high": 1.0}
    config = load_config(named_config("eval", "demo"), EvalConfig)
    runs = [run.name for run in config.runs]
    results: list[dict[str, Any]] = [
        {"run": run, "latency_s": {"p50": 10.25}} | dict.fromkeys(MEASURES, rate) for run in runs
    ]
    file = StringIO()
    Console(file=file, width=80).print(_table(results))
    shown = file.getvalue()
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 80
    assert all(name in shown for name in MEASURES.values())
    assert all(word in shown for run in runs for word in run.split("-"))
    assert shown.count("100.0%") == len(MEASURES) * len(runs) and shown.count("10.2") == len(runs)
