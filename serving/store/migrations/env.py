"""Runs the migrations in the transaction that `serving.store.schema` has opened."""

from alembic import context

from serving.store.models import Base
from serving.store.schema import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
context.run_migrations()
