"""`haggle serve`: characters over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import typer

from haggle.cli.options import Confirmation, Embeddings, Engine, Gguf, Guard, Method
from haggle.cli.serve_keys import keys_app
from haggle.cli.serve_options import (
    AllowOrigin,
    ApiKeyEnv,
    AtOnce,
    Character,
    Database,
    DrainSeconds,
    Host,
    IdleMinutes,
    MaxRequestKib,
    MaxSessions,
    Migrate,
    Port,
    Queue,
    RateLimit,
    Restock,
    Ui,
    World,
    needs_http,
)
from haggle.core.errors import HaggleError

serve_app = typer.Typer(
    invoke_without_command=True,
    help="Serve characters over HTTP: sessions, turns (whole or streamed), shops; see /docs.",
)
serve_app.add_typer(keys_app, name="keys")


@serve_app.callback()
def serve(
    context: typer.Context,
    world: World = None,
    character: Character = None,
    engine: Engine = "llamacpp",
    guard: Guard = "state",
    gguf: Gguf = None,
    method: Method = None,
    confirmation: Confirmation = None,
    embeddings: Embeddings = "auto",
    host: Host = "127.0.0.1",
    port: Port = 8000,
    max_sessions: MaxSessions = 1000,
    idle_minutes: IdleMinutes = 60.0,
    at_once: AtOnce = None,
    queue: Queue = 64,
    rate_limit: RateLimit = 600,
    max_request_kib: MaxRequestKib = 1024,
    drain_seconds: DrainSeconds = 60.0,
    database: Database = "",
    migrate: Migrate = False,
    restock: Restock = False,
    api_key_env: ApiKeyEnv = None,
    allow_origin: AllowOrigin = None,
    ui: Ui = False,
) -> None:
    """Serve characters over HTTP: sessions, turns (whole or streamed), shops; see /docs."""
    if context.invoked_subcommand is not None:
        return
    from haggle.cli.levels import check_level, check_method, linker
    from serving.engines import ask_below_of, open_engine, serve_config

    with needs_http():
        from serving.http.app import Limits, make_app
        from serving.http.process import serve as run
        from serving.store.repository import Store
    from serving.engines.common import read_key
    from serving.openai_server import check_port

    level, spoken = check_level(guard), check_method(method, engine, gguf)
    worlds, tasks = _worlds(world, confirmation), _tasks(character)
    reader = linker(embeddings)
    key = read_key(api_key_env, "--api-key-env")
    limits = Limits(
        sessions=max_sessions, idle_s=60 * idle_minutes, queue=queue, per_minute=rate_limit,
        at_once=at_once or serve_config(engine, "--engine").parallel, body=1024 * max_request_kib,
    )  # fmt: skip
    check_port(host, port)
    with (
        closing(Store(database, migrate=migrate)) as store,
        closing(open_engine(engine, gguf)) as loaded,
        _for_characters(engine, gguf, tasks, loaded) as talking,
    ):
        app = make_app(
            loaded, worlds, level, tasks=tasks, characters=talking, method=spoken,
            limits=limits, store=store, ask_below=ask_below_of(engine, gguf),
            confirmation=confirmation, api_key=key, origins=tuple(allow_origin or ()),
            linker=reader, restock=restock,
        )  # fmt: skip
        if ui:
            _mount_page(app)
        typer.echo(f"{loaded.name}, {loaded.model}, guard {level}: {', '.join(store.shops())}")
        typer.echo(f"characters: merchant, {', '.join(tasks)}" if tasks else "characters: merchant")
        typer.echo(f"sessions: {store.place}")
        page = "page: /, " if ui else ""
        typer.echo(f"http://{host}:{port}  ({page}documentation: /docs; Ctrl-C stops it)")
        run(app, host, port, drain_s=drain_seconds, most=limits.body)


@contextmanager
def _for_characters(
    engine: str, gguf: Path | None, tasks: dict[str, Any], loaded: Any
) -> Iterator[Any]:
    """What plays characters beside merchants: an adapter on the same base, or the shipped file.

    None where one engine plays all.
    """
    from serving.engines import CHARACTERS, for_characters, open_engine

    if tasks and (own := for_characters(loaded)) is not loaded:
        yield own
        return
    if not tasks or engine != "llamacpp" or gguf is not None:
        yield None
        return
    with closing(open_engine(CHARACTERS, None)) as loaded:
        yield loaded


def _worlds(names: list[str] | None, confirmation: str | None) -> dict[str, Any]:
    """The shops that options name. Raises HaggleError where two have one name."""
    from haggle.core.config import located
    from haggle.trade.world_io import named_world, with_confirmation

    with located("--world"):
        shops = [named_world(name) for name in names or ["frontier_shop"]]
    with located("--confirmation"):
        worlds = {shop.name: with_confirmation(shop, confirmation) for shop in shops}
    if len(worlds) < len(shops):
        raise HaggleError("two shops have the same name", where="--world")
    return worlds


def _tasks(names: list[str] | None) -> dict[str, Any]:
    """The characters with a procedure that are served; all that Haggle brings without a name."""
    from haggle.characters import MERCHANT
    from haggle.core.config import located
    from haggle.sop.task import TASKS, load_task

    chosen = names if names is not None else sorted(path.stem for path in TASKS.glob("*.yaml"))
    with located("--character"):
        tasks = [load_task(name) for name in chosen if name != MERCHANT]
        found = {task.task: task for task in tasks}
        if len(found) < len(tasks):
            raise HaggleError("two characters have the same name")
    return found


def _mount_page(app: Any) -> None:
    """Put the page at `/`, where it is installed."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("serving.ui") is None:
        raise HaggleError("this Haggle has no page", where="--ui", hint="leave --ui out; see /docs")
    import_module("serving.ui").mount(app)
