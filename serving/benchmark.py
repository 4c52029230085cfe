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

from haggle.core.engine import Engine, Generation, GenerationRequest
from haggle.core.errors import HaggleError
from haggle.core.storage import write_json
from haggle.trade.merchant import Merchant
from haggle.trade.procedure import load_procedure
from haggle.trade.session import Session
from haggle.trade.world_io import named_world
from serving.engines import load_engine, read_engine_config

Moment = tuple[float, float]  # seconds by the clock, seconds of processor time

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
    """Speeds in tokens per second, times in seconds; medians over all prompts and runs.

    `ratio` is guarded over free speed. `cpu_ratio` is the same of processor time, which says the
    truth even on a machine that is busy with other things.
    """

    engine: str
    model: str
    threads: int
    notation: str
    prompts: int
    runs: int
    free_tokens_per_s: float
    guarded_tokens_per_s: float
    ratio: float
    cpu_ratio: float
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
        session = Session(shop)
        session.last = last
        if last:
            session.cart = {shop.inventory[0].item_id: 1}
        stages.append(merchant.request(session, utterance))
    return stages


def arrivals(engine: Engine, request: GenerationRequest) -> tuple[list[Moment], Generation]:
    """When each piece of an answer arrived, counted from the request, and the answer."""
    start, used = time.perf_counter(), time.process_time()
    moments: list[Moment] = []
    for piece in engine.stream(request):
        if isinstance(piece, Generation):
            return moments, piece
        moments.append((time.perf_counter() - start, time.process_time() - used))
    raise AssertionError("a stream ends with its Generation")


def compare(engine: Engine, guarded: Sequence[GenerationRequest], runs: int) -> dict[str, Any]:
    """Decoding speed with and without the grammar, and the medians of their ratios."""
    speeds: list[tuple[float, float]] = []
    cpu_ratios: list[float] = []
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
            (free_s, free_cpu), (kept_s, kept_cpu) = (
                [last - first for first, last in zip(moments[0], moments[same - 1], strict=True)]
                for moments in timed
            )
            speeds.append(((same - 1) / free_s, (same - 1) / kept_s))
            cpu_ratios.append(free_cpu / kept_cpu if kept_cpu else 1.0)
    if not speeds:
        raise HaggleError("every answer was shorter than 8 tokens", hint="raise --tokens")
    return {
        "free_tokens_per_s": statistics.median(free for free, _ in speeds),
        "guarded_tokens_per_s": statistics.median(kept for _, kept in speeds),
        "ratio": statistics.median(kept / free for free, kept in speeds),
        "cpu_ratio": statistics.median(cpu_ratios),
    }


def turn_latency(engine: Engine, world: str, runs: int, max_tokens: int) -> dict[str, Any]:
    """Whole guarded turns of dialogues; the first of all, which has no prefix yet, left out."""
    merchant = Merchant(engine=engine, guard="state", max_tokens=max_tokens)
    seconds, firsts, prompts, made = [], [], [], []
    for run in range(runs + 1):
        session = Session(world=named_world(world))
        for utterance in UTTERANCES:
            request = merchant.request(session, utterance)
            moments, answer = arrivals(engine, request)
            merchant.complete(session, utterance, answer)
            if run == 0:
                continue
            seconds.append(answer.latency_s)
            firsts.append(moments[0][0] if moments else answer.latency_s)
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
    table.add_row("ratio of processor time", f"{report.cpu_ratio:.3f}")
    table.add_row("prompt of a turn", f"{report.prompt_tokens:.0f} tokens")
    table.add_row("first token, warm prefix", f"{report.first_token_s:.3f} s")
    made = f"{report.turn_completion_tokens:.0f} tokens"
    table.add_row("whole turn, warm prefix", f"{report.turn_latency_s:.3f} s ({made})")
    Console().print(table)


if __name__ == "__main__":
    try:
        main()
    except HaggleError as error:
        raise SystemExit(f"error: {error}") from None
