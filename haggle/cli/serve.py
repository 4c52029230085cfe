"""`haggle serve`: merchants over HTTP."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from haggle.cli.options import Confirmation, Embeddings, Engine, Gguf, Guard, Method
from haggle.core.errors import HaggleError, install_hint


def serve(
    world: Annotated[
        list[str] | None,
        typer.Option(help="A shop: name or YAML, JSON, CSV file; as often as there are."),
    ] = None,
    engine: Engine = "llamacpp",
    guard: Guard = "state",
    gguf: Gguf = None,
    method: Method = None,
    confirmation: Confirmation = None,
    embeddings: Embeddings = "off",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    max_sessions: Annotated[
        int, typer.Option(min=1, help="Sessions kept; beyond them the one unused longest goes.")
    ] = 1000,
    idle_minutes: Annotated[
        float, typer.Option(min=0.1, help="A session unused for so long may be forgotten.")
    ] = 60.0,
    database: Annotated[
        str,
        typer.Option(
            help="Where sessions, sales and stock are kept: a SQLite file, a PostgreSQL URL, or "
            "`memory`.  [default: sessions.sqlite3 in HAGGLE_HOME]",
            show_default=False,
        ),
    ] = "",
    migrate: Annotated[
        bool, typer.Option("--migrate", help="Bring a PostgreSQL database to this version first.")
    ] = False,
    restock: Annotated[
        bool, typer.Option("--restock", help="Fill the shelves first, as the shops' files say.")
    ] = False,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable with the key that callers must send.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="A web page's origin whose scripts may call; as often as there are."),
    ] = None,
) -> None:
    """Serve merchants over HTTP: sessions, turns (whole or streamed), documentation at /docs."""
    from haggle.cli.levels import check_level, check_method, linker
    from haggle.core.config import located
    from haggle.trade.world_io import named_world, with_confirmation
    from serving.engines import open_engine

    try:
        import uvicorn

        from serving.http_api import make_app
        from serving.store.repository import Store
    except ModuleNotFoundError as error:
        raise HaggleError(
            f"{error.name} is not installed", where="haggle serve", hint=install_hint("http")
        ) from None
    from serving.engines.common import read_key
    from serving.openai_server import check_port

    level, spoken = check_level(guard), check_method(method, engine, gguf)
    with located("--world"):
        shops = [named_world(name) for name in world or ["frontier_shop"]]
    with located("--confirmation"):
        worlds = {shop.name: with_confirmation(shop, confirmation) for shop in shops}
    if len(worlds) < len(shops):
        raise HaggleError("two shops have the same name", where="--world")
    reader = linker(embeddings)
    key = read_key(api_key_env, "--api-key-env")
    check_port(host, port)
    with (
        closing(Store(database, migrate=migrate)) as store,
        closing(open_engine(engine, gguf)) as loaded,
    ):
        app = make_app(
            loaded, worlds, level, method=spoken, most=max_sessions, idle=60 * idle_minutes,
            confirmation=confirmation, api_key=key, origins=tuple(allow_origin or ()),
            linker=reader, store=store, restock=restock,
        )  # fmt: skip
        typer.echo(f"{loaded.name}, {loaded.model}, guard {level}: {', '.join(worlds)}")
        typer.echo(f"sessions: {store.place}")
        typer.echo(f"http://{host}:{port}  (documentation: /docs; Ctrl-C stops it)")
        uvicorn.run(app, host=host, port=port, log_level="warning")
