"""Finding the files of a data set and reading their rows, whatever state they are in."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from haggle.core.errors import HaggleError
from haggle.dataset import (
    count_rows,
    dataset_files,
    dataset_splits,
    iter_rows,
    located_rows,
    shard_name,
)

TURN = {"player": "hi", "act": None, "state": "CASUAL"}


def row(number: int, **changes: Any) -> dict[str, Any]:
    return {"schema_version": 1, "id": f"d{number}", "turns": [TURN]} | changes


def parquet(path: Path, *rows: dict[str, Any]) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def jsonl(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """Three train shards of two rows, written last first, and a test shard."""
    for number in (2, 1, 0):
        parquet(tmp_path / shard_name("train", number, 3), row(2 * number), row(2 * number + 1))
    parquet(tmp_path / shard_name("test", 0, 1), row(100))
    (tmp_path / "summary.json").write_text("{}", encoding="utf-8")
    (tmp_path / ".train-00001-of-00003.parquet.1234.part").write_bytes(b"torn")
    return tmp_path


def ids(path: Path, split: str = "train") -> list[str]:
    return [found["id"] for found in iter_rows(path, split)]


def test_the_shards_of_a_split_are_read_in_order(sharded: Path) -> None:
    assert [path.name for path in dataset_files(sharded)] == [
        "train-00000-of-00003.parquet", "train-00001-of-00003.parquet",
        "train-00002-of-00003.parquet",
    ]  # fmt: skip
    assert ids(sharded) == [f"d{n}" for n in range(6)]
    assert ids(sharded, "test") == ["d100"]
    assert count_rows(sharded) == 6 and dataset_splits(sharded) == ["train", "test"]


def test_parquet_goes_before_json_lines_and_shards_before_a_whole_file(sharded: Path) -> None:
    jsonl(sharded / "train-00000-of-00001.jsonl", row(7))
    parquet(sharded / "train.parquet", row(8))
    assert len(ids(sharded)) == 6
    for file in dataset_files(sharded):
        file.unlink()
    assert ids(sharded) == ["d7"]
    (sharded / "train-00000-of-00001.jsonl").unlink()
    assert ids(sharded) == ["d8"]


@pytest.mark.parametrize("name", ["train.parquet", "train.jsonl", "mine.parquet", "mine.jsonl"])
def test_a_single_file_is_a_data_set_too(tmp_path: Path, name: str) -> None:
    write = parquet if name.endswith("parquet") else jsonl
    path = write(tmp_path / name, row(1), row(2))
    assert ids(path) == ids(path, "test") == ["d1", "d2"]
    assert count_rows(path) == 2 and dataset_splits(path) == [path.stem]
    if path.stem == "train":
        assert ids(tmp_path) == ["d1", "d2"]
    else:
        with pytest.raises(HaggleError, match="no split 'train'"):
            dataset_files(tmp_path)


def test_a_missing_shard_is_named(sharded: Path) -> None:
    (sharded / "train-00001-of-00003.parquet").unlink()
    with pytest.raises(HaggleError) as refused:
        next(iter_rows(sharded))
    assert "1 of 3 train shards are missing" in str(refused.value)
    assert "train-00001-of-00003.parquet" in str(refused.value) and refused.value.hint


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_of_another_version_with_other_columns_the_version_is_told(
    tmp_path: Path, suffix: str
) -> None:
    make = parquet if suffix == ".parquet" else jsonl
    path = make(tmp_path / f"train{suffix}", row(1, schema_version=0))
    with pytest.raises(HaggleError, match="schema_version 0"):
        list(iter_rows(path, columns=["messages"]))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [("tset", "did you mean 'test'? (it has train, test)"), ("dev", "it has train, test")],
)
def test_a_split_that_is_not_there_is_told_with_those_that_are(
    sharded: Path, wrong: str, hint: str
) -> None:
    with pytest.raises(HaggleError, match=f"has no split '{wrong}'") as refused:
        dataset_files(sharded, wrong)
    assert refused.value.hint == hint


def test_shards_of_two_data_sets_are_not_mixed(sharded: Path) -> None:
    parquet(sharded / shard_name("train", 3, 4), row(1))
    with pytest.raises(HaggleError, match="more than one data set: of 3, 4"):
        dataset_files(sharded)


def test_only_the_columns_asked_for_are_given(sharded: Path, tmp_path: Path) -> None:
    assert next(iter_rows(sharded, columns=["id"])) == {"id": "d0"}
    assert next(iter_rows(sharded, columns=["turns", "id"])).keys() == {"id", "turns"}
    assert next(iter_rows(jsonl(tmp_path / "a.jsonl", row(4)), columns=["id"])) == {"id": "d4"}


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_a_missing_column_is_told_with_those_that_are_there(tmp_path: Path, suffix: str) -> None:
    write = parquet if suffix == ".parquet" else jsonl
    path = write(tmp_path / f"a{suffix}", row(1))
    with pytest.raises(HaggleError, match="'messages' is missing") as refused:
        next(iter_rows(path, columns=["messages"]))
    assert "schema_version, id, turns" in refused.value.hint


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (row(2, schema_version=99), "schema_version 99, this version reads 1"),
        (row(2, turns=[TURN, TURN | {"state": "CASUALL"}]), "turns[1]: unknown state 'CASUALL'"),
        ([1, 2], "a row must be an object"),
    ],
)
@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_a_bad_row_is_named_with_its_file_and_number(
    tmp_path: Path, bad: Any, told: str, suffix: str
) -> None:
    write = parquet if suffix == ".parquet" and isinstance(bad, dict) else jsonl
    path = write(tmp_path / f"rows{suffix if isinstance(bad, dict) else '.jsonl'}", row(1), bad)
    rows = iter_rows(path)
    assert next(rows)["id"] == "d1"
    with pytest.raises(HaggleError) as refused:
        next(rows)
    assert told in str(refused.value) and refused.value.where == f"{path}: row 2"
    if "state" in told:
        assert refused.value.hint == "did you mean 'CASUAL'?"


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_states_are_checked_even_where_turns_are_not_asked_for(tmp_path: Path, suffix: str) -> None:
    write = parquet if suffix == ".parquet" else jsonl
    bad = row(1, turns=[TURN | {"state": "OF_ANOTHER_TRADE"}])
    path = write(tmp_path / f"a{suffix}", row(0), bad)
    with pytest.raises(HaggleError, match="OF_ANOTHER_TRADE"):
        list(iter_rows(path, columns=["id"]))


@pytest.mark.parametrize("cut", [40, 4])
def test_a_torn_parquet_file_is_an_error_that_names_it(tmp_path: Path, cut: int) -> None:
    path = parquet(tmp_path / "train.parquet", row(1))
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(HaggleError, match="not a whole Parquet file") as refused:
        list(iter_rows(tmp_path))
    assert refused.value.where == str(path)


def test_bytes_changed_inside_a_parquet_file_are_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    table = pa.Table.from_pylist([row(n) for n in range(50)])
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[60:200] = bytes(140)
    path.write_bytes(data)
    with pytest.raises(HaggleError) as refused:
        list(iter_rows(path))
    assert str(path) in refused.value.where


@pytest.mark.parametrize(
    ("line", "told"), [(b'{"id": \n', "row 2: not JSON"), (b'{"id": "\xff"}\n', "row 2: not UTF-8")]
)
def test_a_line_that_is_no_json_is_named(tmp_path: Path, line: bytes, told: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(row(1)).encode() + b"\n\n" + line)
    with pytest.raises(HaggleError, match=told):
        list(iter_rows(path))


def test_a_missing_data_set_and_an_unknown_format_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HaggleError, match="no such dataset") as refused:
        dataset_files(tmp_path / "nowhere")
    assert "haggle generate" in refused.value.hint
    (tmp_path / "data.csv").write_text("x", encoding="utf-8")
    with pytest.raises(HaggleError, match=r"cannot read '\.csv' as a data set"):
        dataset_files(tmp_path / "data.csv")
    assert dataset_splits(tmp_path / "nowhere") == []


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_memory_does_not_grow_with_the_number_of_rows(tmp_path: Path, suffix: str) -> None:
    rows = [row(n, messages=["x" * 10_000 + str(n)]) for n in range(1500)]
    path = tmp_path / f"train{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=100)
    else:
        jsonl(path, *rows)
    del rows
    tracemalloc.start()
    try:
        assert sum(len(found["messages"][0]) > 0 for found in iter_rows(path)) == 1500
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * 2**20, "15 MB of rows"


def test_the_place_of_a_row_comes_with_it(sharded: Path) -> None:
    places = [place.rpartition("train-")[2] for place, _ in located_rows(sharded)]
    assert places[1:3] == ["00000-of-00003.parquet: row 2", "00001-of-00003.parquet: row 1"]
