"""Dialogues made and tokenized by worker processes while a model trains.

Dialogue number `k` is the same whoever makes it, so the rows of a pool do not depend on how many
workers there are, and no dialogue comes twice.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data_gen.config import DataConfig
from data_gen.opening import open_source
from data_gen.sources import Source
from haggle.core.errors import HaggleError
from haggle.grammar.json_text import to_json
from training.data import Example, Overlong, tokenize

CHUNK = 32  # dialogues a worker makes at once
AHEAD = 1  # pools made while one is trained on
PROBE = range(4)  # dialogues that tell one generator from another


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a worker needs to make rows: the data config, the tokenizer's directory, and how rows
    are tokenized."""

    data: DataConfig
    tokenizer: Path
    max_length: int
    overlong: Overlong
    spoken_weight: float


class Maker:
    """Makes rows by number, in this process."""

    def __init__(self, recipe: Recipe) -> None:
        from transformers import AutoTokenizer

        self.recipe = recipe
        self.source: Source = open_source(recipe.data)
        self.tokenizer = AutoTokenizer.from_pretrained(recipe.tokenizer)

    def rows(self, numbers: range) -> list[Example]:
        """The dialogues of these numbers in tokens; too long ones are cut or left out."""
        made = [row["messages"] for row in self.source.rows("train", numbers)]
        recipe = self.recipe
        return tokenize(
            made,
            self.tokenizer,
            max_length=recipe.max_length,
            overlong=recipe.overlong,
            spoken_weight=recipe.spoken_weight,
        ).rows


_maker: Maker | None = None  # a worker's own


def _start_worker(recipe: Recipe) -> None:
    global _maker
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # each worker has one core
    _maker = Maker(recipe)


def _make(numbers: range) -> list[Example]:
    assert _maker is not None
    return _maker.rows(numbers)


@dataclass
class FreshPools:
    """The fresh rows of each pool, `count` a pool; the next pool is made meanwhile."""

    executor: ProcessPoolExecutor
    count: int
    waiting: dict[int, list[Future[list[Example]]]] = field(default_factory=dict)

    def __call__(self, pool: int) -> list[Example]:
        """The rows of a pool. Raises HaggleError where a worker died."""
        for number in range(pool, pool + 1 + AHEAD):
            if number not in self.waiting:
                self.waiting[number] = [
                    self.executor.submit(_make, numbers)
                    for numbers in chunks(number * self.count, self.count)
                ]
        for passed in [number for number in self.waiting if number < pool]:
            del self.waiting[passed]
        try:
            return [row for part in self.waiting.pop(pool) for row in part.result()]
        except BrokenProcessPool:
            raise HaggleError(
                "a process that makes data died, perhaps for want of memory",
                hint="run the same command again, with fewer --workers",
            ) from None


@contextmanager
def fresh_pools(recipe: Recipe, count: int, workers: int | None) -> Iterator[Any]:
    """The fresh rows by pool, from so many worker processes (a core each but one, if None)."""
    if workers is None:
        workers = max(1, (os.cpu_count() or 2) - 1)
    if not count:
        yield lambda pool: []
        return
    if not workers:
        maker = Maker(recipe)
        yield lambda pool: [row for part in chunks(pool * count, count) for row in maker.rows(part)]
        return
    context = multiprocessing.get_context("spawn")  # a fork would take the GPU along
    with ProcessPoolExecutor(workers, context, _start_worker, (recipe,)) as executor:
        try:
            yield FreshPools(executor, count)
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


def chunks(first: int, count: int) -> list[range]:
    """The numbers from `first` on, `CHUNK` at a time."""
    last = first + count
    return [range(n, min(n + CHUNK, last)) for n in range(first, last, CHUNK)]


def generator_sum(data: DataConfig) -> str:
    """A sum over the first dialogues: it changes with the generator's code as with its config."""
    digest = hashlib.sha256()
    for row in open_source(data).rows("train", PROBE):
        digest.update(to_json(row["messages"]).encode())
    return digest.hexdigest()
