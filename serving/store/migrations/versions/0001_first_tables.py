"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.Float(53)


def upgrade() -> None:
    """Shops and what they have left, players, sessions, turns, sales."""
    op.create_table(
        "definitions",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_definitions"),
        sa.UniqueConstraint("digest", name="uq_definitions_digest"),
    )
    op.create_table(
        "players",
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("purse", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("purse >= 0", name=op.f("ck_players_not_negative")),
        sa.PrimaryKeyConstraint("id", name="pk_players"),
    )
    _create_shops()
    _create_sessions()
    _create_sales()


def _create_shops() -> None:
    op.create_table(
        "shops",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("name", sa.String(80), nullable=True),
        sa.Column("definition_id", ROW_ID, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["definition_id"], ["definitions.id"], name="fk_shops_definition_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_shops"),
        sa.UniqueConstraint("name", name="uq_shops_name"),
    )
    op.create_table(
        "stock",
        sa.Column("shop_id", ROW_ID, nullable=False),
        sa.Column("item_id", sa.String(80), nullable=False),
        sa.Column("quantity", sa.Integer(), nullable=False),
        sa.CheckConstraint("quantity >= 0", name=op.f("ck_stock_not_negative")),
        sa.ForeignKeyConstraint(
            ["shop_id"], ["shops.id"], name="fk_stock_shop_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("shop_id", "item_id", name="pk_stock"),
    )


def _create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("definition_id", ROW_ID, nullable=False),
        sa.Column("shop_id", ROW_ID, nullable=True),
        sa.Column("player_id", sa.String(100), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("opened_at", TIME, nullable=False),
        sa.Column("used_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["definition_id"], ["definitions.id"], name="fk_sessions_definition_id"
        ),
        sa.ForeignKeyConstraint(["player_id"], ["players.id"], name="fk_sessions_player_id"),
        sa.ForeignKeyConstraint(["shop_id"], ["shops.id"], name="fk_sessions_shop_id"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    for column in ("definition_id", "shop_id", "used_at"):
        op.create_index(f"ix_sessions_{column}", "sessions", [column])
    op.create_table(
        "turns",
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name="fk_turns_session_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("session_id", "number", name="pk_turns"),
    )


def _create_sales() -> None:
    op.create_table(
        "sales",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("review", sa.String(100), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("shop_id", ROW_ID, nullable=True),
        sa.Column("player_id", sa.String(100), nullable=True),
        sa.Column("items", sa.JSON(), nullable=False),
        sa.Column("price", TIME, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["player_id"], ["players.id"], name="fk_sales_player_id", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["shop_id"], ["shops.id"], name="fk_sales_shop_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_sales"),
        sa.UniqueConstraint("session_id", "review", name="uq_sales_session_id"),
    )
