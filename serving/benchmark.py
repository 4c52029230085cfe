"""What the state guard's grammar costs in llama.cpp, and how long a player waits.

    python -m serving.benchmark --config configs/serve/llamacpp.yaml --out runs/benchmark.json

Decoding speed is measured on the same prompts with and without the grammar, run in turns so that
whatever else the machine does falls on both, over the same number of tokens, prompt evaluation
left out. The latency is that of whole turns of a dialogue whose earlier part is in the cache.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from haggle.engine import Engine, Generation, GenerationRequest
from haggle.errors import HaggleError
from haggle.merchant import Merchant
from haggle.procedure import load_procedure
from haggle.session import Session
from haggle.storage import write_json
from haggle.world_io import named_world
from serving.engines import load_engine, read_engine_config

GOAL = 0.85
UTTERANCES = (
    "Good day! What have you got for a traveller?",
    "I will take two of the first one.",
    "And three more of the second, please.",
    "That is too much, could you do ten percent less?",
    "Fine, we have a deal.",
    "Yes, I am sure.",
)


@dataclass(frozen=True)
class Report:
    """Speeds in tokens per second, times in seconds; medians over all prompts and runs."""

    engine: str
    model: str
    threads: int
    notation: str
    prompts: int
    runs: int
    free_tokens_per_s: float
    guarded_tokens_per_s: float
    ratio: float
    prompt_tokens: float
    turn_latency_s: float
    turn_completion_tokens: float
    first_token_s: float


def requests(world: str, tokens: int) -> list[GenerationRequest]:
    """A guarded request from each of several stages of a trade in `world`."""
    shop = named_world(world)
    procedure = load_procedure()
    merchant = Merchant(engine=None, guard="state", max_tokens=tokens)  # type: ignore[arg-type]
    stages = []
    for last, utterance in zip(("", "", *procedure.tracked), UTTERANCES, strict=False):
        session = Session(world=shop, last=last)
        if last:
            session.cart = {shop.inventory[0].item_id: 1}
        stages.append(merchant.request(session, utterance))
    return stages


def arrivals(engine: Engine, request: GenerationRequest) -> tuple[list[float], Generation]:
    """When each piece of an answer arrived, in seconds after the request, and the answer."""
    start = time.perf_counter()
    times: list[float] = []
    for piece in engine.stream(request):
        if isinstance(piece, Generation):
            return times, piece
        times.append(time.perf_counter() - start)
    raise AssertionError("a stream ends with its Generation")


def compare(engine: Engine, guarded: Sequence[GenerationRequest], runs: int) -> dict[str, Any]:
    """Decoding speed with and without the grammar, and the median of their ratios."""
    free_speeds, guarded_speeds, ratios = [], [], []
    for run in range(runs + 1):
        for request in guarded:
            pair = [replace(request, constraint=None), request]
            if run % 2:  # which of the two comes first alternates
                pair.reverse()
            timed = [arrivals(engine, one)[0] for one in pair]
            if run % 2:
                timed.reverse()
            same = min(map(len, timed))
            if run == 0 or same < 8:  # the first run only fills caches
                continue
            free, kept = ((same - 1) / (times[same - 1] - times[0]) for times in timed)
            free_speeds.append(free)
            guarded_speeds.append(kept)
            ratios.append(kept / free)
    if not ratios:
        raise HaggleError("every answer was shorter than 8 tokens", hint="raise --tokens")
    return {
        "free_tokens_per_s": statistics.median(free_speeds),
        "guarded_tokens_per_s": statistics.median(guarded_speeds),
        "ratio": statistics.median(ratios),
    }


def turn_latency(engine: Engine, world: str, runs: int, max_tokens: int) -> dict[str, Any]:
    """Whole guarded turns of dialogues; the first of all, which has no prefix yet, left out."""
    merchant = Merchant(engine=engine, guard="state", max_tokens=max_tokens)
    seconds, firsts, prompts, made = [], [], [], []
    for run in range(runs + 1):
        session = Session(world=named_world(world))
        for utterance in UTTERANCES:
            request = merchant.request(session, utterance)
            times, answer = arrivals(engine, request)
            merchant.complete(session, utterance, answer)
            if run == 0:
                continue
            seconds.append(answer.latency_s)
            firsts.append(times[0] if times else answer.latency_s)
            prompts.append(answer.prompt_tokens)
            made.append(answer.completion_tokens)
    return {
        "prompt_tokens": statistics.median(prompts),
        "turn_latency_s": statistics.median(seconds),
        "turn_completion_tokens": statistics.median(made),
        "first_token_s": statistics.median(firsts),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print a table and, with --out, write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="llamacpp", help="serve config (name or file)")
    parser.add_argument("--gguf", type=Path, help="a GGUF file instead of the config's")
    parser.add_argument("--world", default="frontier_shop", help="world (name or file)")
    parser.add_argument("--runs", type=int, default=5, help="timed runs over all prompts")
    parser.add_argument("--tokens", type=int, default=64, help="longest answer")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args(argv)
    config = read_engine_config(options.config)
    if config.engine not in {"llamacpp", "vllm"}:
        raise HaggleError(
            f"engine {config.engine!r} does not stream token by token",
            hint="measure llamacpp or vllm",
        )
    if options.gguf:
        config = config.model_copy(update={"gguf": options.gguf})
    engine = load_engine(config)
    try:
        guarded = requests(options.world, options.tokens)
        report = Report(
            engine=engine.name,
            model=engine.model,
            threads=config.thread_count,
            notation=str(getattr(engine, "notation", config.vllm.backend)),
            prompts=len(guarded),
            runs=options.runs,
            **compare(engine, guarded, options.runs),
            **turn_latency(engine, options.world, options.runs, options.tokens),
        )
    finally:
        engine.close()
    show(report)
    if options.out:
        write_json(options.out, asdict(report))


def show(report: Report) -> None:
    """Print the report as a table for people."""
    table = Table(title=f"{report.engine}: {report.model}, {report.threads} threads")
    table.add_column("measure")
    table.add_column("median", justify="right")
    table.add_row("free decoding", f"{report.free_tokens_per_s:.1f} tokens/s")
    table.add_row(f"guarded ({report.notation})", f"{report.guarded_tokens_per_s:.1f} tokens/s")
    verdict = "reached" if report.ratio >= GOAL else "missed"
    table.add_row("ratio", f"{report.ratio:.3f} (goal {GOAL:.2f} {verdict})")
    table.add_row("prompt of a turn", f"{report.prompt_tokens:.0f} tokens")
    table.add_row("first token, warm prefix", f"{report.first_token_s:.3f} s")
    made = f"{report.turn_completion_tokens:.0f} tokens"
    table.add_row("whole turn, warm prefix", f"{report.turn_latency_s:.3f} s ({made})")
    Console().print(table)


if __name__ == "__main__":
    main()
