"""Turns that are told again: the caller's key of a turn, and what it was answered with."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Columns that older rows leave empty. A session has a key once."""
    op.add_column("turns", sa.Column("key", sa.String(100), nullable=True))
    op.add_column("turns", sa.Column("answer", sa.JSON(), nullable=True))
    op.create_index("ix_turns_session_id", "turns", ["session_id", "key"], unique=True)
