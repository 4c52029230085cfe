"""Shards: fixed ranges of dialogue numbers, each made and written as one unit of work.

A shard's bytes depend on the config and its number alone, so any worker may make any shard, twice
if need be. It is written beside and renamed: a file under its final name is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from data_gen.config import MERCHANT, DataConfig
from data_gen.corpus_io import corpus_rows, is_righted, voice_files
from data_gen.dataset.journal import Meter, journalled_rows, reported_rows
from data_gen.language.phrasebook import SPLITS, Split
from data_gen.opening import open_source
from haggle.core.storage import atomic_path, write_jsonl
from haggle.dataset import iter_rows, shard_name
from haggle.trade.methods import DEFAULT_METHOD, get_method

ROW_GROUP = 250  # rows encoded at once; bounds the memory of a worker
TICK = 25  # dialogues between two signs of progress
ZSTD_LEVEL = 3
Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Shard:
    """`count` dialogues of a split from number `first` on; or the corpus, its copy `first`."""

    split: Split
    number: int
    of: int
    first: int
    count: int
    corpus: bool = False

    def path(self, out: Path, suffix: str = ".parquet") -> Path:
        """Its file in the data set `out`."""
        return out / shard_name(self.split, self.number, self.of, suffix)


@dataclass(frozen=True, slots=True)
class Job:
    """What every worker of a run is told."""

    config: DataConfig
    out: Path
    jsonl: bool = False

    def pending(self, shard: Shard) -> bool:
        """Whether a file of this shard is still to be written."""
        suffixes = (".parquet", ".jsonl") if self.jsonl else (".parquet",)
        return not all(shard.path(self.out, suffix).exists() for suffix in suffixes)


def plan(config: DataConfig) -> list[Shard]:
    """All shards of a data set: the generated dialogues of a split, then copies of the corpus."""
    shards: list[Shard] = []
    for split, number in zip(SPLITS, (config.train, config.test), strict=True):
        size = config.shard
        parts = [(first, min(size, number - first), False) for first in range(0, number, size)]
        if config.corpus:
            whole = len(_corpus(split, config))
            parts += [(copy, whole, True) for copy in range(config.corpus) if whole]
        shards += [
            Shard(split, index, len(parts), first, count, corpus)
            for index, (first, count, corpus) in enumerate(parts)
        ]
    return shards


class Worker:
    """Makes shards one after the other with one source, opened when it is first needed."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._meter: Meter | None = None

    def make(self, shard: Shard, tick: Tick = lambda _: None) -> int:
        """Write the shard's files that are missing; returns how many dialogues were made for it.

        Those in its journal were made before. `tick` is told how many dialogues have been written
        since it was last called.
        """
        made, out = 0, self.job.out
        path = shard.path(out)
        if not path.exists():
            recalled = self._recalled()
            made = write_parquet(path, _ticking(self._rows(shard), tick))
            made -= self._recalled() - recalled
        lines = shard.path(out, ".jsonl")
        if self.job.jsonl and not lines.exists():
            write_jsonl(lines, iter_rows(path))
        return made

    def _rows(self, shard: Shard) -> Iterator[dict[str, Any]]:
        if shard.corpus:
            written = _corpus(shard.split, self.job.config)
            return (row | {"id": f"{row['id']}-{shard.first}"} for row in written)
        meter, journal = self._open(), unfinished(self.job.out) / shard.path(self.job.out).stem
        rows = reported_rows if self.job.config.scripted else journalled_rows
        return rows(meter, shard.split, _numbers(shard), journal)

    def _recalled(self) -> int:
        return self._meter.recalled if self._meter else 0

    def _open(self) -> Meter:
        if self._meter is None:
            self._meter = Meter(open_source(self.job.config))
        return self._meter

    def close(self) -> None:
        """Free the source."""
        if self._meter is not None:
            self._meter.source.close()
            self._meter = None


def unfinished(out: Path) -> Path:
    """Where journals of shards under way are kept until the data set is whole."""
    return out / "unfinished"


def sweep(out: Path) -> None:
    """Remove what killed writers left half-written."""
    for split in SPLITS:
        for torn in out.glob(f".{split}-*-of-*.part"):
            torn.unlink(missing_ok=True)


def write_parquet(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write rows as one Parquet file in constant memory; returns how many.

    Raises HaggleError when the disk is full, and leaves nothing behind then.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    layout, written = schema(), 0
    names = set(layout.names)
    rows = iter(rows)
    with (
        atomic_path(path) as temporary,
        pq.ParquetWriter(
            temporary, layout, compression="zstd", compression_level=ZSTD_LEVEL
        ) as writer,
    ):
        while batch := list(islice(rows, ROW_GROUP)):
            for row in batch:
                if row.keys() != names:  # Arrow would drop or null such columns without a word
                    raise ValueError(f"{row.get('id')}: columns {sorted(row.keys() ^ names)}")
            writer.write_table(pa.Table.from_pylist(batch, layout))
            written += len(batch)
    return written


def count(path: Path) -> tuple[int, int]:
    """(dialogues, turns) of a finished shard."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    dialogues = turns = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=["turns.list.element.state"]):
            dialogues += batch.num_rows
            turns += pc.sum(pc.list_value_length(batch["turns"])).as_py() or 0
    return dialogues, turns


def schema() -> Any:
    """The columns of a data set (Arrow)."""
    import pyarrow as pa

    text = pa.string()
    message = pa.struct([("role", text), ("content", text), ("weight", pa.int8())])
    turn = pa.struct(
        [(k, text) for k in ("player", "act", "last", "state", "cart", "npc_dialogue")]
    )
    return pa.schema(
        [
            ("schema_version", pa.int64()), ("id", text), ("seed", pa.int64()), ("scenario", text),
            ("world", text), ("method", text), ("player", text), ("teacher", text),
            ("messages", pa.list_(message)), ("turns", pa.list_(turn)),
        ]
    )  # fmt: skip


def _corpus(split: Split, config: DataConfig) -> tuple[dict[str, Any], ...]:
    """The hand-written dialogues of a split with the config's character."""
    if config.character == MERCHANT:
        rows = _shops(split, config.voices, config.method)
        return rows if config.righted else tuple(row for row in rows if not is_righted(row))
    from data_gen.sop.corpus import corpus_rows as talk_rows

    return tuple(talk_rows(split, config.character))


@cache
def _shops(split: Split, voices: tuple[str, ...], method: str) -> tuple[dict[str, Any], ...]:
    """The corpus of shops by a method; as compact answers where it has none by that method."""
    kept = DEFAULT_METHOD if get_method(method).codec.states_totals else method
    return tuple(corpus_rows(split, voice_files(voices), kept))


def _numbers(shard: Shard) -> range:
    return range(shard.first, shard.first + shard.count)


def _ticking(rows: Iterator[dict[str, Any]], tick: Tick) -> Iterator[dict[str, Any]]:
    silent = 0
    for row in rows:
        yield row
        silent += 1
        if silent == TICK:
            tick(silent)
            silent = 0
    if silent:
        tick(silent)
