"""Options of `haggle serve`, and what it needs to be installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from haggle.core.config import install_hint
from haggle.core.errors import HaggleError

World = Annotated[
    list[str] | None,
    typer.Option(help="A shop: name or YAML, JSON, CSV file; as often as there are."),
]
Character = Annotated[
    list[str] | None,
    typer.Option(
        help="A character besides the merchant: a task (haggle sop list) or a task file; as often "
        "as there are.  [default: all that Haggle brings; `merchant` alone: none]",
        show_default=False,
    ),
]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")]
MaxSessions = Annotated[
    int, typer.Option(min=1, help="Sessions kept; beyond them the one unused longest goes.")
]
IdleMinutes = Annotated[
    float, typer.Option(min=0.1, help="A session unused for so long may be forgotten.")
]
AtOnce = Annotated[
    int | None,
    typer.Option(
        min=1, max=256, help="Turns answered at once.  [default: the serve config's parallel]",
        show_default=False,
    ),
]  # fmt: skip
Queue = Annotated[
    int, typer.Option(min=0, help="Turns that may wait; further ones are refused (429).")
]
RateLimit = Annotated[
    int, typer.Option(min=0, help="Requests a minute of one key or address; 0 for no limit.")
]
MaxRequestKib = Annotated[int, typer.Option(min=1, help="The longest request, in KiB.")]
DrainSeconds = Annotated[
    float,
    typer.Option(min=0, help="How long turns that run may take to end when the server is stopped."),
]
Database = Annotated[
    str,
    typer.Option(
        help="Where sessions, sales, stock and keys are kept: a SQLite file, a PostgreSQL URL, or "
        "`memory`.  [default: sessions.sqlite3 in HAGGLE_HOME]",
        show_default=False,
    ),
]
Migrate = Annotated[
    bool, typer.Option("--migrate", help="Bring a PostgreSQL database to this version first.")
]
Restock = Annotated[
    bool, typer.Option("--restock", help="Fill the shelves of the shops of --world first.")
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(help="Environment variable with a key that callers may send; see `serve keys`."),
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(help="A web page's origin whose scripts may call; as often as there are."),
]
Ui = Annotated[bool, typer.Option("--ui", help="Serve a page to play on at `/`.")]


@contextmanager
def needs_http() -> Iterator[None]:
    """Say which extra is missing where a package is."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise HaggleError(
            f"{error.name} is not installed", where="haggle serve", hint=install_hint("http")
        ) from None
