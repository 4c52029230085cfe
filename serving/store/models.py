"""The tables. Columns that hold documents are JSON; amounts of money in purses are hundredths."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMES = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "ix": "ix_%(table_name)s_%(column_0_name)s",
}
ROW_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up Integer keys only


class Base(DeclarativeBase):
    """What all tables share: the names of constraints, so that migrations can speak of them."""

    metadata = MetaData(naming_convention=NAMES)


class Definition(Base):
    """A shop's file or a task as it was read, kept once by its digest and never changed: a session
    goes on with the prices and names that it was opened with."""

    __tablename__ = "definitions"
    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    kind: Mapped[str] = mapped_column(String(20))
    document: Mapped[dict[str, Any]] = mapped_column(JSON)


class Shop(Base):
    """A shop whose stock its sessions share. Without a name it is that of one session alone.
    `revision` counts the changes of stock or definition, `source` is the digest of the file that
    was read last: while that stays the same, what was edited here counts."""

    __tablename__ = "shops"
    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    name: Mapped[str | None] = mapped_column(String(80), unique=True)
    definition_id: Mapped[int] = mapped_column(ForeignKey("definitions.id"))
    revision: Mapped[int]
    source: Mapped[str | None] = mapped_column(String(64))


class Stock(Base):
    """How many pieces of an item a shop has left."""

    __tablename__ = "stock"
    __table_args__ = (CheckConstraint("quantity >= 0", name="not_negative"),)
    shop_id: Mapped[int] = mapped_column(
        ForeignKey("shops.id", ondelete="CASCADE"), primary_key=True
    )
    item_id: Mapped[str] = mapped_column(String(80), primary_key=True)
    quantity: Mapped[int]


class Player(Base):
    """Somebody who buys. `purse` is what there is to spend; None where the game keeps that."""

    __tablename__ = "players"
    __table_args__ = (CheckConstraint("purse >= 0", name="not_negative"),)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    purse: Mapped[int | None] = mapped_column(BigInteger)


class StoredSession(Base):
    """A conversation. `document` is the episode's record, `version` the number of its turns."""

    __tablename__ = "sessions"
    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    definition_id: Mapped[int] = mapped_column(ForeignKey("definitions.id"), index=True)
    shop_id: Mapped[int | None] = mapped_column(ForeignKey("shops.id"), index=True)
    player_id: Mapped[str | None] = mapped_column(ForeignKey("players.id"))
    version: Mapped[int]
    document: Mapped[dict[str, Any]] = mapped_column(JSON)
    opened_at: Mapped[float] = mapped_column(Float(53))
    used_at: Mapped[float] = mapped_column(Float(53), index=True)


class StoredTurn(Base):
    """One round, as the domain's record of it. `key` is the caller's own, by which a turn is made
    once; `answer` is what a turn with a key or a sale was answered with, to be told again."""

    __tablename__ = "turns"
    __table_args__ = (Index("ix_turns_session_id", "session_id", "key", unique=True),)
    session_id: Mapped[str] = mapped_column(
        ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    record: Mapped[dict[str, Any]] = mapped_column(JSON)
    at: Mapped[float] = mapped_column(Float(53))
    key: Mapped[str | None] = mapped_column(String(100))
    answer: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class StoredSale(Base):
    """A sale. It stays when its session is forgotten. A review closes one sale only. `lines` are
    the goods with their names and prices at the time; sales of older versions have none."""

    __tablename__ = "sales"
    __table_args__ = (UniqueConstraint("session_id", "review"),)
    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    session_id: Mapped[str] = mapped_column(String(64))
    review: Mapped[str] = mapped_column(String(100))
    turn: Mapped[int]
    shop_id: Mapped[int | None] = mapped_column(
        ForeignKey("shops.id", ondelete="SET NULL"), index=True
    )
    player_id: Mapped[str | None] = mapped_column(ForeignKey("players.id", ondelete="SET NULL"))
    items: Mapped[dict[str, int]] = mapped_column(JSON)
    price: Mapped[float] = mapped_column(Float(53))
    at: Mapped[float] = mapped_column(Float(53))
    lines: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    currency: Mapped[str | None] = mapped_column(String(30))


class StoredKey(Base):
    """A key that lets callers in. Only its digest is kept; a revoked one stays, by its name."""

    __tablename__ = "api_keys"
    name: Mapped[str] = mapped_column(String(80), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    made_at: Mapped[float] = mapped_column(Float(53))
    revoked_at: Mapped[float | None] = mapped_column(Float(53))
