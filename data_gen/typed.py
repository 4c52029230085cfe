"""Files of lines typed by hand: three fields with a tab between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from haggle.core.errors import HaggleError


def typed(path: Path, fields: str) -> Iterator[tuple[str, list[str]]]:
    """Where each line stands, and its three fields. Raises HaggleError for a file that cannot be
    read, and naming a line with another number of fields; `fields` says what they are."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HaggleError(f"cannot be read: {error}", where=str(path)) from None
    for number, row in enumerate(text.splitlines(), start=1):
        found = [part.strip() for part in row.split("\t")]
        where = f"{path}, line {number}"
        if len(found) != 3 or not all(found):
            said = f"{len(found)} fields, not three" if len(found) != 3 else "an empty field"
            raise HaggleError(said, where=where, hint=f"{fields}: tabs between")
        yield where, found
