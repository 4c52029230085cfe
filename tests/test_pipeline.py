"""From no data to a measured model, every step the real one, as small as it gets."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from haggle.core.storage import read_json
from haggle.trade.said import merchant_lines
from pipeline.demo import converse

pytestmark = pytest.mark.slow
BENCHMARKS = Path(__file__).resolve().parents[1] / "eval" / "benchmarks"


def test_the_demo_begins_with_the_shipped_model_as_the_chat_runs_it() -> None:
    """It sells, in the lines of a merchant that speaks after the outcome."""
    console = Console(file=StringIO(), width=200)
    converse(console)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    lines = merchant_lines()["COMMIT_SALE"]
    assert "FINAL_CHECK -> COMMIT_SALE" in said
    assert any(line in said for line in (*lines["plain"], *lines["warm"]))


def test_a_model_is_trained_exported_served_and_measured(tmp_path: Path) -> None:
    from data_gen.generate import DataConfig, generate
    from eval.cases import run_cases
    from eval.experiment import EvalConfig, RunConfig, close_engines, run_experiment
    from serving.engines import load_engine, read_engine_config
    from training.config import TrainConfig
    from training.export import export
    from training.run import train

    data = generate(DataConfig(train=6, test=2, items=(4, 5)), tmp_path / "data", progress=False)
    assert data["splits"]["train"]["dialogues"] == 6

    result = train(
        TrainConfig(
            dataset=str(tmp_path / "data"),
            output_dir=str(tmp_path / "train"),
            # enough steps to learn where an answer ends: one that goes on is cut off by the limit
            trainer={"max_steps": 6, "per_device_train_batch_size": 1, "logging_steps": 1},
        )
    )
    assert result.steps == 6

    exported = export(
        tmp_path / "train" / "adapter", tmp_path / "model", quantizations=["Q8_0"], verify=False
    )
    gguf = exported.ggufs["Q8_0"]
    config = EvalConfig(
        runs=[RunConfig(name="tuned", engine="llamacpp", guard="state", gguf=gguf)],
        dialogues=1,
        worlds=["frontier_shop"],
        scenarios=["specific_items"],
    )
    try:
        metrics = run_experiment(config, tmp_path / "eval", progress=False)
    finally:
        close_engines()
    measured = metrics["results"][0]["all"]
    assert measured["turns"] >= 1
    let_through = measured["failed"]  # by check; one that the guard answered for counts 0
    assert not any(let_through.values()), "the guard lets nothing untrue through, however weak"
    assert (tmp_path / "eval" / "report.html").stat().st_size > 1000

    some = (BENCHMARKS / "dev.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    cases = tmp_path / "cases.jsonl"
    cases.write_text("\n".join(some) + "\n", encoding="utf-8")
    engine = load_engine(read_engine_config("llamacpp").model_copy(update={"gguf": gguf}))
    try:
        scores = run_cases(
            cases, BENCHMARKS / "worlds", engine, "state", tmp_path / "cases", progress=False
        )
    finally:
        engine.close()
    assert scores["n"] == 2
    assert scores["valid_json_rate"] == 1.0, "guarded answers are always well-formed"
    assert read_json(tmp_path / "cases" / "metrics.json") == scores
