"""The product, then its whole pipeline in miniature (`haggle demo`).

First a short conversation with the shipped model. Then data, training, export and evaluation, each
the real step, only smaller. A step leaves its result under `out` and is skipped when that is
there, so an interrupted demo goes on where it stopped.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from haggle.core.config import ROOT, named_config
from haggle.core.errors import HaggleError
from haggle.core.storage import read_json, read_jsonl, write_json, write_jsonl
from haggle.rates import rate_text

SERVED = "Q8_0"
WORLD = "frontier_shop"
LINES = (
    "Good morning! What do you sell?",
    "four sharp axes and a map, please",
    "that is dear. would you do it for 500?",
    "make it three axes",
    "deal",
    "is the map any good?",
    "yes, go on",
    "yes please",
)
TRAINING = 0.4  # the share of the time that training may take
EVERY = 4  # of the hand-written turns, one of so many


def run_demo(out: Path, *, minutes: float, dialogues: int) -> None:
    """Talk to the shipped model; then generate, train, export, compare and report, in about
    `minutes` on two slow cores."""
    console = Console()
    started = time.perf_counter()
    console.rule("1/6 a conversation with the shipped model")
    converse(console)

    console.rule("2/6 labelled dialogues")
    from data_gen.generate import generate, load_data_config
    from haggle.weights.models import resolve_base

    base = resolve_base("smollm2-135m-instruct", echo=console.print)
    data = generate(load_data_config(named_config("data", "demo")), out / "data")
    console.print(data["splits"])

    console.rule("3/6 LoRA training")
    adapter = _train(out, TRAINING * minutes)

    console.rule("4/6 export")
    gguf = _export(adapter, out, base.name)

    console.rule("5/6 dialogues: base, tuned and shipped model, guard off and on")
    metrics = _evaluate(out, gguf, dialogues)

    console.rule("6/6 hand-written turns")
    cases = _cases(out, gguf)
    results = [
        {"run": r["run"]["name"], "guard": r["run"]["guard"], **_headline(r["all"])}
        for r in metrics["results"]
    ]
    seconds = round(time.perf_counter() - started, 1)
    write_json(
        out / "demo.json",
        {"data": data, "evaluation": results, "cases": cases, "seconds": seconds},
    )
    console.print(_table(results))
    console.print(
        f"hand-written turns, tuned model, guard state: joint {100 * cases['joint_accuracy']:.0f}% "
        f"of {cases['n']}, valid JSON {100 * cases['valid_json_rate']:.0f}%"
    )
    _tell(console, out, gguf, seconds)


def converse(console: Console) -> None:
    """Play a short purchase with the shipped model, live."""
    from haggle import open_shop
    from serving.chat import say_turn, shop_table, status

    with open_shop(WORLD) as shop:
        session = shop.session
        console.print(shop_table(session.world))
        for line in LINES:
            console.print(Text.assemble(("\nyou", "bold cyan"), " > ", line), soft_wrap=True)
            say_turn(
                shop.merchant, session, line, session.world.merchant.name, console,
                lambda turn, seconds: status(turn, session, seconds),
            )  # fmt: skip
            if shop.sales:
                break


def _train(out: Path, minutes: float) -> Path:
    adapter = out / "train" / "adapter"
    if not adapter.exists():
        _command(
            "train", "--config", "demo", "--dataset", out / "data", "--out", out / "train",
            "--max-minutes", f"{minutes:.2f}",
        )  # fmt: skip
    return adapter


def _command(*words: str | Path) -> None:
    """A `haggle` command in a process of its own, whose memory is free again when it ends."""
    command = [sys.executable, "-m", "haggle", *map(str, words)]
    code = subprocess.run(command, check=False).returncode
    if code:
        raise HaggleError(
            f"`haggle {words[0]}` ended with {code}",
            where=str(words[-1]),
            hint="see above; the same `haggle demo` goes on from what is finished",
        )


def _export(adapter: Path, out: Path, base: str) -> Path:
    model = out / "model"
    if not (model / "export.json").exists():
        _command("export", adapter, "--base", base, "--out", model)
    files = sorted(model.glob(f"*{SERVED}*.gguf"))
    return files[0]


def _evaluate(out: Path, gguf: Path, dialogues: int) -> dict[str, Any]:
    from eval.experiment import (
        EvalConfig,
        close_engines,
        load_eval_config,
        run_experiment,
        with_methods,
    )

    config = load_eval_config(named_config("eval", "demo"))
    runs = [
        run.model_copy(update={"gguf": gguf}) if run.name.startswith("tuned") else run
        for run in config.runs
    ]
    loaded: EvalConfig = config.model_copy(update={"runs": runs, "dialogues": dialogues})
    try:
        return run_experiment(with_methods(loaded), out / "eval")
    finally:
        close_engines()


def _cases(out: Path, gguf: Path) -> dict[str, Any]:
    """The tuned model's answers to every fourth hand-written turn, guard `state`."""
    from eval.cases import run_cases
    from serving.engines import load_engine, read_engine_config

    folder = out / "cases"
    if not (folder / "metrics.json").exists():
        benchmarks = ROOT / "eval" / "benchmarks"
        drawn = folder / "cases.jsonl"
        write_jsonl(drawn, list(read_jsonl(benchmarks / "dev.jsonl"))[::EVERY])
        config = read_engine_config("llamacpp_batch").model_copy(update={"gguf": gguf})
        engine = load_engine(config)
        try:
            run_cases(drawn, benchmarks / "worlds", engine, "state", folder, batch=4)
        finally:
            engine.close()
    return {k: v for k, v in read_json(folder / "metrics.json").items() if k != "by_tag"}


def _headline(metrics: dict[str, Any]) -> dict[str, Any]:
    """The few figures of a run that the demo prints and keeps."""
    return {
        "stcr": metrics["stcr"],
        "price_offer": metrics["price_accuracy"]["offer"],
        "price_others": metrics["price_accuracy"]["others"],
        "sirr": metrics["sirr"],
        "valid_json": metrics["valid_json"],
        "joint": metrics["accuracy"]["joint"],
        "latency_s": metrics["latency_s"],
    }


MEASURES = {
    "stcr": "STCR", "price_offer": "price, offers", "price_others": "price, others",
    "sirr": "SIRR", "valid_json": "valid JSON", "joint": "joint accuracy",
}  # fmt: skip


def _table(results: list[dict[str, Any]]) -> Table:
    """Measures as rows and runs as columns: whole on a terminal of 80 columns."""
    table = Table(title="whole dialogues (both scenarios)")
    table.add_column("measure", no_wrap=True)
    for result in results:
        table.add_column(result["run"].replace("-", "\n"), justify="right")
    for key, name in MEASURES.items():
        values = [rate_text(r[key]).partition(" ")[0] if r[key]["n"] else "-" for r in results]
        table.add_row(name, *values)
    seconds = [r["latency_s"]["p50"] for r in results]
    table.add_row("seconds a turn", *("-" if s is None else f"{s:.1f}" for s in seconds))
    return table


def _tell(console: Console, out: Path, gguf: Path, seconds: float) -> None:
    report = out / "eval" / "report.html"
    console.print(f"\nreport:  {report}", soft_wrap=True, markup=False, emoji=False)
    console.print(f"model:   {gguf}", soft_wrap=True, markup=False, emoji=False)
    console.print(f"time:    {seconds / 60:.1f} minutes")
    console.print(Text(f"talk to it:  haggle chat --gguf {gguf}", "bold"), soft_wrap=True)
    console.print(Text("talk to the shipped model:  haggle chat", "bold"))
