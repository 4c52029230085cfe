"""Files are whole or not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from haggle.core.errors import HaggleError
from haggle.core.storage import (
    append_jsonl,
    atomic_dir,
    atomic_path,
    atomic_write_text,
    numbered_jsonl,
    read_json,
    read_jsonl,
    writable,
    write_json,
    write_jsonl,
)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_what_is_written_is_utf8_with_unix_line_ends(tmp_path):
    atomic_write_text(tmp_path / "deep" / "er" / "a.txt", "é\n🌙\n")
    assert (tmp_path / "deep" / "er" / "a.txt").read_bytes() == "é\n🌙\n".encode()
    with atomic_path(tmp_path / "a.bin") as beside:
        beside.write_bytes(b"\x00\r\n")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\r\n"


def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.jsonl"
    write_jsonl(path, [{"a": 1}])

    def records():
        yield {"a": 2}
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        write_jsonl(path, records())
    assert read_jsonl(path) == [{"a": 1}] and names(tmp_path) == ["a.jsonl"]


def test_a_kill_before_the_rename_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    atomic_write_text(path, "old")

    def killed(source: Path, target: Path) -> None:
        assert Path(source).read_text(encoding="utf-8") == "new" and Path(target) == path
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        atomic_write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"


def test_a_failure_of_the_disk_is_told_as_such(tmp_path):
    path = tmp_path / "a.txt"
    atomic_write_text(path, "old")
    with pytest.raises(HaggleError, match="could not be written: No space"), atomic_path(path):
        raise OSError(28, "No space left on device")
    assert path.read_text(encoding="utf-8") == "old" and names(tmp_path) == ["a.txt"]


def test_a_file_where_a_directory_should_be_is_told_as_such(tmp_path):
    (tmp_path / "out").write_text("x", encoding="utf-8")
    with pytest.raises(HaggleError, match="could not be written"):
        atomic_write_text(tmp_path / "out" / "metrics.json", "{}")
    assert names(tmp_path) == ["out"]


def test_a_directory_appears_whole_or_keeps_its_old_content(tmp_path):
    target = tmp_path / "model"
    with atomic_dir(target) as folder:
        (folder / "a").write_text("1", encoding="utf-8")
        assert not target.exists()
    with pytest.raises(RuntimeError), atomic_dir(target) as folder:
        (folder / "b").write_text("2", encoding="utf-8")
        raise RuntimeError
    assert names(tmp_path) == ["model"] and names(target) == ["a"]
    with atomic_dir(target) as folder:
        (folder / "c").write_text("3", encoding="utf-8")
    assert names(target) == ["c"]
    assert names(tmp_path) == ["model"]


def test_what_is_made_once_stays_where_another_process_was_faster(tmp_path):
    target = tmp_path / "model"
    with atomic_dir(target, once=True) as slow:
        (slow / "weights").write_text("1", encoding="utf-8")
        with atomic_dir(target, once=True) as fast:
            (fast / "weights").write_text("1", encoding="utf-8")
        open_since = (target / "weights").stat().st_ino
    assert (target / "weights").stat().st_ino == open_since
    assert names(tmp_path) == ["model"]


def test_json_goes_there_and_back(tmp_path):
    write_json(tmp_path / "a.json", {"é": [1, None]})
    assert read_json(tmp_path / "a.json") == {"é": [1, None]}
    (tmp_path / "b.json").write_text('{"a":\n nope}', encoding="utf-8")
    with pytest.raises(HaggleError, match=r"b\.json:2"):
        read_json(tmp_path / "b.json")
    with pytest.raises(HaggleError, match="no such file"):
        read_json(tmp_path / "c.json")


@pytest.mark.parametrize("torn", [b'{"a": 2', b'{"a": "\xf0\x9f', b'{"a": 2}', b"\xff"])
def test_a_line_torn_by_a_kill_is_lost_alone_and_does_not_swallow_the_next(tmp_path, torn):
    path = tmp_path / "a.jsonl"
    append_jsonl(path, {"a": 1})
    with path.open("ab") as file:
        file.write(torn)
    assert read_jsonl(path, drop_torn_tail=True) == [{"a": 1}]
    append_jsonl(path, {"a": 3})
    assert read_jsonl(path) == [{"a": 1}, {"a": 3}]


def test_a_file_that_is_one_torn_line_begins_anew(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a"')
    assert read_jsonl(path, drop_torn_tail=True) == []
    append_jsonl(path, {"a": 1})
    assert read_jsonl(path) == [{"a": 1}]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b'{"a": 1}\n\n{"a": \n', "a.jsonl:3: not JSON"),
        (b'{"a": 1}\n[1]\n', "a.jsonl:2: each line must be a JSON object"),
        (b'\n\n{"a": "\xff"}\n', "a.jsonl:3: not UTF-8"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path, data, complaint):
    (tmp_path / "a.jsonl").write_bytes(data)
    with pytest.raises(HaggleError) as refused:
        read_jsonl(tmp_path / "a.jsonl")
    assert complaint in str(refused.value)


def test_lines_are_numbered_as_an_editor_numbers_them(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"a": 2}')
    assert list(numbered_jsonl(tmp_path / "a.jsonl")) == [(1, {"a": 1}), (3, {"a": 2})]


def test_a_missing_file_and_a_directory_are_errors_to_read(tmp_path):
    with pytest.raises(HaggleError, match="no such file"):
        read_jsonl(tmp_path / "none.jsonl")
    with pytest.raises(HaggleError):
        read_jsonl(tmp_path)


def test_halves_of_surrogate_pairs_become_question_marks():
    assert writable("a\ud83d\u00e9") == "a?é"
