"""Keys of callers; receipts with names and prices; which file a shop was read from."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TIME = sa.Float(53)


def upgrade() -> None:
    """A new table, and columns that older rows leave empty. No table is made anew: in SQLite that
    would delete what refers to it."""
    op.create_table(
        "api_keys",
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("made_at", TIME, nullable=False),
        sa.Column("revoked_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_api_keys"),
        sa.UniqueConstraint("digest", name="uq_api_keys_digest"),
    )
    op.add_column("shops", sa.Column("source", sa.String(64), nullable=True))
    op.add_column("sales", sa.Column("lines", sa.JSON(), nullable=True))
    op.add_column("sales", sa.Column("currency", sa.String(30), nullable=True))
    op.create_index("ix_sales_shop_id", "sales", ["shop_id"])
