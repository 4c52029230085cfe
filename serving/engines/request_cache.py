"""Answers kept on disk by request, so that a run started again does not pay for them twice.

One SQLite file: an answer is either wholly in it or not, whenever the process is killed, and
several processes may share it. It holds requests only as hashes, and never an API key.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

from haggle.core.errors import HaggleError

VERSION = 1
BUSY_S = 60.0
CREATE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL)"
PUT = "INSERT OR REPLACE INTO answers VALUES (?, ?)"


def request_key(*parts: Any) -> str:
    """A hash of everything that decides an answer, the order of a schema's keys included."""
    return sha256(json.dumps(parts).encode("ascii")).hexdigest()


class RequestCache:
    """Answers by key. Raises HaggleError when the file is no cache, or cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser()
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Not in WAL mode: that needs shared memory, which network file systems lack.
            self._file = sqlite3.connect(
                self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            found = self._file.execute("PRAGMA user_version").fetchone()[0]
            if found not in {0, VERSION}:
                raise self._error(f"is a request cache of format {found}, not {VERSION}")
            self._file.execute(CREATE)
            self._file.execute(f"PRAGMA user_version = {VERSION}")
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise self._error(f"cannot be used as a request cache: {error}") from error
        except HaggleError:
            self.close()
            raise

    def get(self, key: str) -> dict[str, Any] | None:
        """The answer kept under `key`, or None."""
        row = self._run("SELECT answer FROM answers WHERE key = ?", key)
        answer: dict[str, Any] | None = None if row is None else json.loads(row[0])
        return answer

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """Keep an answer; it is on disk when this returns."""
        self._run(PUT, key, json.dumps(answer))

    def __len__(self) -> int:
        row = self._run("SELECT count(*) FROM answers")
        return int(row[0]) if row else 0

    def close(self) -> None:
        """Close the file; later calls find and keep nothing."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _run(self, statement: str, *values: str) -> Any:
        with self._lock:
            if self._file is None:
                return None
            try:
                return self._file.execute(statement, values).fetchone()
            except sqlite3.Error as error:
                raise self._error(f"the request cache failed: {error}") from error

    def _error(self, message: str) -> HaggleError:
        return HaggleError(
            message,
            where=str(self.path),
            hint="is there room on the disk? Otherwise choose another `cache` file, or delete it",
        )
