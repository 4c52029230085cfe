"""The whole pipeline in miniature (`haggle demo`): every step is the real one, only smaller.

Each step leaves its result under `out` and is skipped when that is there, so an interrupted demo
goes on where it stopped.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from haggle.core.config import ROOT, named_config
from haggle.core.storage import read_json, write_json
from haggle.trade.merchant import Guard

SERVED = "Q8_0"


def run_demo(out: Path, *, train_minutes: float, dialogues: int) -> None:
    """Generate, train, export, compare base, tuned and shipped, run the turn cases, report."""
    console = Console()
    started = time.perf_counter()
    from haggle.weights.models import resolve_base

    console.rule("1/6 base model")
    base = resolve_base("smollm2-135m-instruct", echo=console.print)
    console.print(f"{base.name}, {base.licence}, from {base.source}")

    console.rule("2/6 labelled dialogues")
    from data_gen.generate import generate, load_data_config

    data = generate(load_data_config(named_config("data", "demo")), out / "data")
    console.print(data["splits"])

    console.rule("3/6 LoRA training")
    adapter = _train(out, train_minutes)

    console.rule("4/6 export")
    gguf = _export(adapter, out, base.name)

    console.rule("5/6 dialogues: base, tuned and shipped model, guard off and on")
    metrics = _evaluate(out, gguf, dialogues)

    console.rule("6/6 hand-written turns")
    cases = _cases(out, gguf)
    write_json(
        out / "demo.json",
        {
            "data": data,
            "evaluation": [
                {"run": r["run"]["name"], "guard": r["run"]["guard"], **_headline(r["all"])}
                for r in metrics["results"]
            ],
            "cases": cases,
            "seconds": round(time.perf_counter() - started, 1),
        },
    )
    _tell(console, out, gguf, metrics, cases, time.perf_counter() - started)


def _train(out: Path, minutes: float) -> Path:
    from training.recipes import load_train_config
    from training.run import train

    adapter = out / "train" / "adapter"
    if not adapter.exists():
        config = load_train_config(named_config("train", "demo")).model_copy(
            update={
                "dataset": out / "data",
                "output_dir": out / "train",
                "max_minutes": minutes,
            }
        )
        train(config)
    return adapter


def _export(adapter: Path, out: Path, base: str) -> Path:
    from training.export import export

    model = out / "model"
    if not (model / "export.json").exists():
        export(adapter, model, base=base)
    files = sorted(model.glob(f"*{SERVED}*.gguf"))
    return files[0]


def _evaluate(out: Path, gguf: Path, dialogues: int) -> dict[str, Any]:
    from eval.experiment import EvalConfig, close_engines, load_eval_config, run_experiment
    from haggle.cli import start_run

    config = load_eval_config(named_config("eval", "demo"))
    runs = [
        run.model_copy(update={"gguf": gguf}) if run.name.startswith("tuned") else run
        for run in config.runs
    ]
    loaded: EvalConfig = config.model_copy(update={"runs": runs, "dialogues": dialogues})
    try:
        return run_experiment(loaded, out / "eval", start=start_run)
    finally:
        close_engines()


def _cases(out: Path, gguf: Path) -> dict[str, Any]:
    from eval.cases import run_cases
    from serving.engines import load_engine, read_engine_config

    here = ROOT / "eval" / "benchmarks"
    results: dict[str, Any] = {}
    engine = None
    guards: tuple[Guard, ...] = ("state",)  # off as well: haggle eval cases --guard off
    for guard in guards:
        folder = out / "cases" / guard
        if not (folder / "metrics.json").exists():
            if engine is None:
                config = read_engine_config("llamacpp").model_copy(update={"gguf": gguf})
                engine = load_engine(config)
            run_cases(here / "dev.jsonl", here / "worlds", engine, guard, folder)
        metrics = read_json(folder / "metrics.json")
        results[guard] = {k: v for k, v in metrics.items() if k != "by_tag"}
    if engine is not None:
        engine.close()
    return results


def _headline(metrics: dict[str, Any]) -> dict[str, Any]:
    """The few figures of a run that the demo prints and keeps."""
    return {
        "stcr": metrics["stcr"],
        "price_offer": metrics["price_accuracy"]["offer"],
        "price_others": metrics["price_accuracy"]["others"],
        "sirr": metrics["sirr"],
        "joint": metrics["accuracy"]["joint"],
        "latency_s": metrics["latency_s"],
    }


def _tell(
    console: Console,
    out: Path,
    gguf: Path,
    metrics: dict[str, Any],
    cases: dict[str, Any],
    seconds: float,
) -> None:
    from haggle.cli import print_experiment, print_table

    print_experiment(metrics)
    for guard, values in cases.items():
        print_table(f"hand-written turns, guard {guard}", values)
    report = out / "eval" / "report.html"
    console.print(f"\nreport:  {report}", soft_wrap=True, markup=False, emoji=False)
    console.print(f"model:   {gguf}", soft_wrap=True, markup=False, emoji=False)
    console.print(f"time:    {seconds / 60:.1f} minutes")
    console.print(Text(f"talk to it:  haggle chat --gguf {gguf}", "bold"), soft_wrap=True)
    console.print(Text("talk to the shipped model:  haggle chat", "bold"))
