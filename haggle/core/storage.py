"""Files that are either whole or not there: write beside, then rename."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from haggle.core.errors import HaggleError
from haggle.grammar.json_text import to_json


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary file beside `path`; it takes the name `path` when the block succeeds."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch(exist_ok=False)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise HaggleError(
            f"could not be written: {error.strerror or error}",
            where=str(path),
            hint="free disk space or choose another directory; nothing was left half-written",
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def atomic_write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text under its final name only when all of it is on disk."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def atomic_dir(path: str | Path, *, once: bool = False) -> Iterator[Path]:
    """Yield a temporary sibling directory; it replaces `path` when the block succeeds.

    With `once` a directory that somebody else has put there meanwhile stays, as it is in use.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    mark = uuid.uuid4().hex[:8]
    temporary, before = (path.with_name(f".{path.name}.{mark}.{end}") for end in ("part", "old"))
    try:
        temporary.mkdir()
        yield temporary
        if path.exists() and once:
            return
        if path.exists():
            os.replace(path, before)
        os.replace(temporary, path)
        shutil.rmtree(before, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def writable(text: str) -> str:
    """`text` with what UTF-8 cannot hold (halves of surrogate pairs) replaced by `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def write_json(path: str | Path, data: Any) -> None:
    """Write indented JSON atomically."""
    atomic_write_text(path, json.dumps(data, ensure_ascii=False, indent=2) + "\n")


def read_json(path: str | Path) -> Any:
    """The value in a JSON file. Raises HaggleError naming file and line."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise HaggleError("no such file", where=str(path)) from None
    except json.JSONDecodeError as error:
        raise HaggleError(f"not JSON: {error.msg}", where=f"{path}:{error.lineno}") from None


def append_jsonl(path: str | Path, record: Any) -> None:
    """Add one line to a JSON Lines file and flush it, so that a kill loses at most that line.

    A line torn by an earlier kill is dropped first, so that it cannot swallow the new one.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        if file.tell() and not _ends_line(file):
            _drop_torn_line(file)
        file.write((to_json(record) + "\n").encode("utf-8"))
        file.flush()


def _ends_line(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def _drop_torn_line(file: Any) -> None:
    file.seek(0)
    whole = file.read()
    file.truncate(whole.rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)


def write_jsonl(path: str | Path, records: Iterable[Any]) -> None:
    """Write JSON Lines atomically."""
    with (
        atomic_path(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for record in records:
            file.write(to_json(record) + "\n")


def read_jsonl(path: str | Path, *, drop_torn_tail: bool = False) -> list[dict[str, Any]]:
    """All records of a JSON Lines file. Raises HaggleError naming file and line.

    With `drop_torn_tail`, a last line without its line end is left out, as `append_jsonl` does (for
    files that are appended to and resumed).
    """
    return [record for _, record in numbered_jsonl(path, drop_torn_tail=drop_torn_tail)]


def numbered_jsonl(
    path: str | Path, *, drop_torn_tail: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """As `read_jsonl`, with the number of the line each record stands on."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        what = "no such file" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise HaggleError(what, where=str(path), hint="check the path") from None
    if drop_torn_tail:
        data = data[: data.rfind(b"\n") + 1]
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            record = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError:
            raise HaggleError("not UTF-8 text", where=where, hint="save it as UTF-8") from None
        except json.JSONDecodeError as error:
            raise HaggleError(f"not JSON: {error.msg}", where=where) from None
        if not isinstance(record, dict):
            raise HaggleError("each line must be a JSON object", where=where)
        yield number, record
