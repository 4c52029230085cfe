"""`haggle serve keys`: who may call a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any

import typer

from haggle.cli.serve_options import Database, Migrate

keys_app = typer.Typer(
    no_args_is_help=True,
    help="Keys that callers must send. A server whose database ever had one asks for one.",
)
KeyName = Annotated[str, typer.Argument(help="What the key is called, for instance whose it is.")]


@keys_app.command()
def add(name: KeyName, database: Database = "", migrate: Migrate = False) -> None:
    """Make a key and print it. It is shown this once: only its hash is stored."""
    with _keys(database, migrate) as keys:
        typer.echo(keys.add(name))


@keys_app.command(name="list")
def list_keys(database: Database = "") -> None:
    """List the keys by name."""
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "made", "revoked")
    with _keys(database) as keys:
        for key in keys.listed():
            table.add_row(key.name, key.made, key.revoked)
    Console().print(table)


@keys_app.command()
def revoke(name: KeyName, database: Database = "") -> None:
    """Let a key in no more, from the next request on."""
    with _keys(database) as keys:
        keys.revoke(name)
    typer.echo(f"revoked: {name}")


@contextmanager
def _keys(database: str, migrate: bool = False) -> Iterator[Any]:
    from haggle.cli.serve_options import needs_http

    with needs_http():
        from serving.store.keys import Keys
        from serving.store.repository import Store
    with closing(Store(database, migrate=migrate)) as store:
        yield Keys(store)
