"""Throughput of the trainer against a bare PyTorch loop over the same batches.

    python -m training.benchmark --dataset runs/data/demo [--steps 4] [--rounds 3] [--batch-size 4]

Both train the same LoRA with the same optimiser and the same supervised-position loss; rounds
alternate, so that a machine that is busy for a while slows both. The goal is a ratio of 0.9. Where
memory does not hold a batch, both take it in parts.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.weights.models import DEFAULT_BASE, resolve_base
from training.arguments import trainer_arguments
from training.clock import Clock
from training.config import TrainConfig
from training.data import (
    BucketSampler,
    Collator,
    Example,
    Tokenized,
    read_dialogues,
    to_columns,
    tokenize,
)
from training.heap import keep_freed_memory
from training.loading import load_tokenizer
from training.memory import fitted
from training.sft import build_trainer, largest_batch

if TYPE_CHECKING:
    import torch

GOAL = 0.9


@dataclass(frozen=True, slots=True)
class Throughput:
    """Tokens per second of both loops, a value a round, and the median of the rounds' ratios."""

    trainer: list[float]
    bare: list[float]
    ratio: float
    tokens_per_round: int


def benchmark(
    dataset: str | Path,
    base: str = DEFAULT_BASE,
    *,
    steps: int = 4,
    rounds: int = 3,
    batch_size: int = 4,
    max_length: int = 2048,
) -> Throughput:
    """Train `steps` batches by trainer and by bare loop, `rounds` times each, alternating."""
    keep_freed_memory()
    base_model = resolve_base(base)
    tokenizer = load_tokenizer(base_model)
    every = tokenize(read_dialogues(dataset), tokenizer, max_length=max_length)
    examples = _first_batches(every.rows, steps, batch_size)
    data = Tokenized(examples, 0, 0, every.sha256)

    from training.trainer import causal_model

    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(
            base=base,
            dataset=Path(dataset),
            output_dir=Path(folder),
            max_length=max_length,
            trainer={
                "per_device_train_batch_size": batch_size,
                "max_steps": steps,
                "save_strategy": "no",
                "logging_steps": 1,
                "disable_tqdm": True,
                "learning_rate": 1e-4,
            },
        )
        largest = partial(largest_batch, data)
        arguments = fitted(config, trainer_arguments(config), base_model.path, largest)
        trainer = build_trainer(config, base_model, tokenizer, data, Clock(), arguments)
        order = list(BucketSampler([len(e.ids) for e in examples], batch_size, config.seed))
        part, parts = arguments.per_device_train_batch_size, arguments.gradient_accumulation_steps
        batches = _batches(examples, order, part, tokenizer.pad_token_id)
        model = causal_model(trainer.model)
        bare = partial(bare_loop, model, parts=parts, bf16=arguments.bf16)
        bare(batches[:parts])  # first calls allocate and compile
        speeds: dict[str, list[float]] = {"trainer": [], "bare": []}
        for number in range(rounds):
            for which in ("bare", "trainer") if number % 2 else ("trainer", "bare"):
                started = time.perf_counter()
                if which == "bare":
                    bare(batches)
                else:
                    trainer.optimizer = trainer.lr_scheduler = None
                    trainer.train()
                speeds[which].append(data.tokens / (time.perf_counter() - started))
    ratios = [a / b for a, b in zip(*speeds.values(), strict=True)]
    return Throughput(**speeds, ratio=statistics.median(ratios), tokens_per_round=data.tokens)


def _batches(
    examples: Sequence[Example], order: Sequence[int], size: int, pad_id: int
) -> list[dict[str, torch.Tensor]]:
    """The trainer's batches of `size` rows, padded."""
    collate, rows = Collator(pad_id), to_columns(examples)
    return [
        collate([{k: v[i] for k, v in rows.items()} for i in order[at : at + size]])
        for at in range(0, len(order), size)
    ]


def bare_loop(
    model: Any, batches: Sequence[dict[str, torch.Tensor]], *, parts: int, bf16: bool
) -> float:
    """The plainest training loop, with an update every `parts` batches; returns the last loss.

    Loss as in the trainer: weighted next-token loss at supervised positions only.
    """
    import torch

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, weight_decay=0.0, fused=True)
    model.train()
    last = 0.0
    for number, batch in enumerate(batches, start=1):
        labels, weights = batch["labels"][:, 1:], batch["loss_weights"][:, 1:]
        mask = labels != -100
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            hidden = model.base_model(input_ids=batch["input_ids"], use_cache=False)
            logits = model.lm_head(hidden.last_hidden_state[:, :-1][mask]).float()
            loss = torch.nn.functional.cross_entropy(logits, labels[mask], reduction="none")
        loss = (loss * weights[mask]).sum() / weights.sum()
        (loss / parts).backward()
        last = loss.item()
        if number % parts == 0:
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return last


def _first_batches(examples: Sequence[Example], steps: int, batch_size: int) -> list[Example]:
    wanted = steps * batch_size
    if len(examples) < wanted:
        raise HaggleError(
            f"{len(examples)} dialogues are too few for {steps} batches of {batch_size}",
            hint="lower --steps or --batch-size, or give a larger dataset",
        )
    return list(examples[:wanted])


def make_parser() -> argparse.ArgumentParser:
    """Options of `python -m training.benchmark`."""
    parser = argparse.ArgumentParser(description="Trainer throughput against a bare loop.")
    parser.add_argument("--dataset", required=True, help="directory or .jsonl/.parquet file")
    parser.add_argument("--base", default=DEFAULT_BASE)
    parser.add_argument("--steps", type=int, default=4, help="batches a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--json", type=Path, default=None, help="write the figures here as well")
    return parser


def main() -> int:
    """Print tokens per second and their ratio; returns 0 when the goal is met, else 1."""
    options = make_parser().parse_args()
    try:
        result = benchmark(
            options.dataset,
            options.base,
            steps=options.steps,
            rounds=options.rounds,
            batch_size=options.batch_size,
        )
    except HaggleError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{'round':>5} {'trainer':>9} {'bare':>9}   tokens/s")
    for number, (ours, bare) in enumerate(zip(result.trainer, result.bare, strict=True), 1):
        print(f"{number:>5} {ours:>9.1f} {bare:>9.1f}")
    verdict = "met" if result.ratio >= GOAL else "missed"
    print(f"ratio {result.ratio:.3f} (goal {GOAL}: {verdict})")
    if options.json is not None:
        from haggle.core.storage import write_json

        write_json(options.json, asdict(result))
    return 0 if result.ratio >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
