"""Data sets on disk: where the files of a split are, and their rows, one at a time.

A data set is a directory of shards `train-00000-of-00040.parquet` (or `.jsonl`), as `haggle
generate` writes them, or with one `train.parquet` or `train.jsonl`; or it is one such file. A row
is a whole dialogue: chat `messages` and the labels of its `turns`. A message of weight 0 is not to
be learned from, and has no turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from haggle.core.errors import HaggleError, nearest
from haggle.core.text import is_outcome
from haggle.trade.procedure import load_procedure
from haggle.trade.records import SCHEMA_VERSION

FORMATS = (".parquet", ".jsonl")
BATCH = 256  # rows of a Parquet file decoded at once
_SHARD = re.compile(r"(?P<split>.+)-(?P<number>\d{5,})-of-(?P<of>\d{5,})")


def decisions(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """The places of the answers to a player's lines among chat messages. A line that was said with
    the outcome in view is none, nor is an answer of weight 0: it was wrong, and is there because
    the dialogue goes on from it."""
    return [
        at
        for at in range(1, len(messages))
        if messages[at]["role"] == "assistant"
        and messages[at].get("weight", 1)
        and messages[at - 1]["role"] == "user"
        and not is_outcome(messages[at - 1]["content"])
    ]


def whole_answers(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The answers to a player's lines; a line that was said later is a second line of text."""
    found = []
    for at in decisions(messages):
        answer = messages[at]["content"]
        if at + 2 < len(messages) and is_outcome(messages[at + 1]["content"]):
            answer += "\n" + messages[at + 2]["content"]
        found.append(answer)
    return found


def shard_name(split: str, number: int, of: int, suffix: str = ".parquet") -> str:
    """The file name of shard `number` (from 0) of the `of` shards of a split."""
    return f"{split}-{number:05d}-of-{of:05d}{suffix}"


def dataset_files(path: str | Path, split: str = "train") -> list[Path]:
    """The files that hold a split, in order: Parquet shards, else JSON Lines shards, else one file.

    `path` may be one such file itself. Raises HaggleError when there is none, when a shard is
    missing, or when shards of two data sets lie together.
    """
    path = Path(path)
    if path.is_file():
        if path.suffix not in FORMATS:
            raise HaggleError(
                f"cannot read {path.suffix or 'a file without suffix'!r} as a data set",
                where=str(path),
                hint="name a .parquet or .jsonl file, or a directory of them",
            )
        return [path]
    if not path.exists():
        raise HaggleError(
            "no such dataset", where=str(path), hint="make one with `haggle generate`"
        )
    for suffix in FORMATS:
        if shards := _shards(path, split, suffix):
            return shards
    for suffix in FORMATS:
        if (whole := path / f"{split}{suffix}").is_file():
            return [whole]
    if splits := dataset_splits(path):
        near = nearest(split, splits)
        there = "it has " + ", ".join(splits)
        raise HaggleError(
            f"has no split {split!r}",
            where=str(path),
            hint=there if near.startswith("known") else f"{near} ({there})",
        )
    raise HaggleError(
        f"holds no {split} shards, no {split}.parquet and no {split}.jsonl",
        where=str(path),
        hint="make a dataset with `haggle generate`, or name a .jsonl or .parquet file",
    )


def dataset_splits(path: str | Path) -> list[str]:
    """The splits a data set has, `train` and `test` first; of a single file, its name's."""
    path = Path(path)
    names = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    splits = set()
    for file in names:
        if file.suffix in FORMATS and not file.name.startswith("."):
            shard = _SHARD.fullmatch(file.stem)
            splits.add(shard["split"] if shard else file.stem)
    return sorted(
        splits, key=lambda split: (split not in {"train", "test"}, split == "test", split)
    )


def iter_rows(
    path: str | Path, split: str = "train", columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of a split one after the other, in constant memory; of `columns` only, if given.

    Raises HaggleError naming file and row for a torn file, a missing column, a row of another
    schema version or a state that the procedure does not have.
    """
    for _, row in located_rows(path, split, columns):
        yield row


def located_rows(
    path: str | Path, split: str = "train", columns: Sequence[str] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """As `iter_rows`, with the place of each row (`file: row 3`) for errors about it."""
    for file in dataset_files(path, split):
        rows = _parquet_rows if file.suffix == ".parquet" else _jsonl_rows
        for number, row in enumerate(rows(file, columns), start=1):
            where = f"{file}: row {number}"
            yield where, _checked(row, columns, where)


def count_rows(path: str | Path, split: str = "train") -> int:
    """How many rows a split has, without reading them where the format tells."""
    files = dataset_files(path, split)
    return sum(
        _parquet(file).metadata.num_rows if file.suffix == ".parquet" else _count_lines(file)
        for file in files
    )


def _shards(folder: Path, split: str, suffix: str) -> list[Path]:
    """Shards of a split in order; an incomplete or mixed set is an error."""
    found: dict[int, dict[int, Path]] = {}
    for file in folder.glob(f"{split}-*{suffix}"):
        shard = _SHARD.fullmatch(file.stem)
        if shard and shard["split"] == split and file.is_file():
            found.setdefault(int(shard["of"]), {})[int(shard["number"])] = file
    if not found:
        return []
    if len(found) > 1:
        raise HaggleError(
            f"{split} shards of more than one data set: of {', '.join(map(str, sorted(found)))}",
            where=str(folder),
            hint="keep each data set in a directory of its own",
        )
    ((total, shards),) = found.items()
    missing = [number for number in range(total) if number not in shards]
    if missing:
        name = shard_name(split, missing[0], total, suffix)
        raise HaggleError(
            f"{len(missing)} of {total} {split} shards are missing, the first is {name}",
            where=str(folder),
            hint="run the same `haggle generate` again to finish it, or copy all shards",
        )
    return [shards[number] for number in range(total)]


def _parquet(file: Path) -> Any:
    """A Parquet file opened. Raises HaggleError when it is not whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise _torn(file, error) from None


def _torn(file: Path, error: Exception) -> HaggleError:
    return HaggleError(
        f"not a whole Parquet file: {str(error).splitlines()[0]}",
        where=str(file),
        hint="generate or copy it again",
    )


def _parquet_rows(file: Path, columns: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    opened = _parquet(file)
    names = opened.schema_arrow.names
    for name in columns or ():
        if name not in names:
            if "schema_version" in names:  # what another version wrote may well lack columns
                for batch in opened.iter_batches(batch_size=1, columns=["schema_version"]):
                    _check_version(batch.to_pylist()[0]["schema_version"], f"{file}: row 1")
                    break
            raise HaggleError(
                f"column {name!r} is missing",
                where=str(file),
                hint="columns: " + ", ".join(names),
            )
    wanted = None
    if columns is not None:
        wanted = [n for n in names if n in {*columns, "schema_version", "method"}]
        if "turns" not in columns:  # of these the states alone, to check them
            paths = [opened.schema.column(i).path for i in range(len(opened.schema))]
            wanted += [p for p in paths if p.startswith("turns.") and p.endswith(".state")]
    try:
        with opened:
            for batch in opened.iter_batches(batch_size=BATCH, columns=wanted):
                yield from map(_without_nulls, batch.to_pylist())
    except (pa.ArrowInvalid, OSError) as error:
        raise _torn(file, error) from None


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose messages have no empty `weight`, as JSON Lines have none."""
    for message in row.get("messages") or ():
        if isinstance(message, dict) and message.get("weight", 0) is None:
            del message["weight"]
    return row


def _jsonl_rows(file: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    number = 0
    with file.open("rb") as lines:
        for line in lines:
            if not line.strip():
                continue
            number += 1
            where = f"{file}: row {number}"
            try:
                row = json.loads(line.removeprefix(b"\xef\xbb\xbf").decode("utf-8"))
            except UnicodeDecodeError:
                raise HaggleError("not UTF-8 text", where=where, hint="save it as UTF-8") from None
            except ValueError as error:
                raise HaggleError(f"not JSON: {error}", where=where) from None
            yield row


def _count_lines(file: Path) -> int:
    with file.open("rb") as lines:
        return sum(bool(line.strip()) for line in lines)


def _checked(data: Any, columns: Sequence[str] | None, where: str) -> dict[str, Any]:
    """A row whose version and states are known, cut down to `columns`."""
    if not isinstance(data, dict):
        raise HaggleError("a row must be an object", where=where)
    row: dict[str, Any] = data
    _check_version(row.get("schema_version", SCHEMA_VERSION), where)
    for name in columns or ():
        if name not in row:
            raise HaggleError(f"{name!r} is missing", where=where, hint="keys: " + ", ".join(row))
    turns = row.get("turns") or ()
    states = _states(row) if turns else None
    for index, turn in enumerate(turns):
        state = turn.get("state") if isinstance(turn, dict) else None
        if states is not None and state not in states:
            raise HaggleError(
                f"turns[{index}]: unknown state {state!r}",
                where=where,
                hint=nearest(str(state), states),
            )
    return row if columns is None else {name: row[name] for name in columns}


def _states(row: dict[str, Any]) -> Collection[str] | None:
    """The states that the turns of a row may have: those of the trade, or the names that its
    character was told, which need not be those of the task file (`data_gen/sop/variety.py`). None
    for a character whose messages were not read."""
    if row.get("method") != "sop":
        return load_procedure().states
    if "messages" not in row:
        return None
    listed = row["messages"][0]["content"].partition("\nact:\n")[2].partition("\nYou know:")[0]
    return [line.partition(": ")[0] for line in listed.splitlines()]


def _check_version(version: object, where: str) -> None:
    if version != SCHEMA_VERSION:
        raise HaggleError(
            f"schema_version {version}, this version reads {SCHEMA_VERSION}",
            where=where,
            hint="generate the dataset again, or use the version of haggle that wrote it",
        )
