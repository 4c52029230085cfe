"""Keys that let callers in. Only digests are kept: a key is shown once, when it is made."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from sqlalchemy import func, insert, select, update
from sqlalchemy.exc import IntegrityError

from haggle.core.errors import HaggleError, nearest
from serving.store.database import StoreError
from serving.store.models import StoredKey
from serving.store.repository import Store

PREFIX = "haggle_"


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is listed."""

    name: str
    made: str
    revoked: str


class Keys:
    """The keys of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, name: str) -> str:
        """Make a key of 256 random bits; returns it. Raises HaggleError for a name that is taken,
        also by a revoked key, or is none."""
        if not (name.isprintable() and 0 < len(name) <= 80):
            raise HaggleError(
                f"{name!r} cannot name a key", where="name", hint="1 to 80 printable characters"
            )
        key = PREFIX + secrets.token_urlsafe(32)
        row = {"name": name, "digest": digest(key), "made_at": time.time()}
        try:
            with self._store.writing() as connection:
                connection.execute(insert(StoredKey).values(row))
        except StoreError as error:
            if isinstance(error.__cause__, IntegrityError):
                raise HaggleError(
                    f"there is a key {name!r} already", where="name", hint="choose another name"
                ) from None
            raise
        return key

    def listed(self) -> list[Key]:
        """All keys, oldest first, the revoked ones too."""
        query = select(StoredKey.name, StoredKey.made_at, StoredKey.revoked_at)
        with self._store.reading() as connection:
            rows = connection.execute(query.order_by(StoredKey.made_at)).all()
        return [Key(row.name, _day(row.made_at), _day(row.revoked_at)) for row in rows]

    def revoke(self, name: str) -> None:
        """Let a key in no more, at once. Raises HaggleError for an unknown one."""
        used = update(StoredKey).where(StoredKey.name == name, StoredKey.revoked_at.is_(None))
        with self._store.writing() as connection:
            if connection.execute(used.values(revoked_at=time.time())).rowcount:
                return
        names = [key.name for key in self.listed() if not key.revoked]
        hint = nearest(name, names) if names else "there is none"
        raise HaggleError(f"no key {name!r} is in use", where="name", hint=hint)

    def exist(self) -> bool:
        """Whether a key was ever made: a server that had one never lets everybody in again."""
        with self._store.reading() as connection:
            return bool(connection.scalar(select(func.count()).select_from(StoredKey)))

    def knows(self, key: str) -> bool:
        """Whether a key lets its caller in."""
        query = select(StoredKey.name).where(
            StoredKey.digest == digest(key), StoredKey.revoked_at.is_(None)
        )
        with self._store.reading() as connection:
            return connection.scalar(query) is not None


def digest(key: str) -> str:
    """What is kept of a key. It has 256 random bits, so a plain hash cannot be guessed back."""
    return sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def _day(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "minutes")
