"""The `haggle` command. Rooms are imported inside the commands, so that `--help` is instant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from haggle.cli.ablate import ablate
from haggle.cli.compare import compare
from haggle.cli.curves import curves
from haggle.cli.export import card, export
from haggle.cli.generate import generate
from haggle.cli.inspect import inspect, stats
from haggle.cli.learning import learning_curve
from haggle.cli.options import Confirmation, Engine, Gguf, Guard, Method, Quiet
from haggle.cli.preferences import preferences
from haggle.cli.serve import serve
from haggle.cli.turns import turns
from haggle.core.errors import HaggleError

INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Small language models as merchants that a game can trust.",
)
eval_app = typer.Typer(
    invoke_without_command=True, help="Measure models: whole dialogues, or hand-written turns."
)
app.add_typer(eval_app, name="eval")


app.command()(generate)
app.command()(inspect)
app.command()(stats)
app.command()(preferences)
app.command()(serve)
app.command()(curves)
app.command()(ablate)
app.command()(export)
app.command()(card)
eval_app.command()(turns)
eval_app.command()(compare)
eval_app.command()(learning_curve)


@app.command()
def train(
    config: Annotated[str, typer.Option(help="A train config (name or file).")],
    stage: Annotated[
        str | None, typer.Option(help="This stage of a config that has several alone.")
    ] = None,
    dataset: Annotated[Path | None, typer.Option(help="Data set instead of the config's.")] = None,
    out: Annotated[Path | None, typer.Option(help="Output instead of the config's.")] = None,
    max_minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Stop and save after this time.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Do not resume from a checkpoint.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="One step and a checkpoint; fetches nothing.")
    ] = False,
    tiny: Annotated[
        bool, typer.Option("--tiny", help="In a dry run: tiny random weights of the architecture.")
    ] = False,
) -> None:
    """Fit a small model to dialogues, or to preference pairs; resumes."""
    from training.recipes import check_sources, load_stages
    from training.run import train as run

    if tiny and not dry_run:
        raise HaggleError("goes with --dry-run alone", where="--tiny")
    stages = load_stages(_config("train", config), stage)
    given = {"dataset": dataset, "output_dir": out, "max_minutes": max_minutes}
    changes = {key: value for key, value in given.items() if value is not None}
    if changes and len(stages) > 1:
        raise HaggleError(
            f"{', '.join(changes)}: cannot be the same for every stage",
            where="haggle train",
            hint="choose one with --stage: " + ", ".join(one.name for one in stages),
        )
    stages = [replace(one, config=one.config.model_copy(update=changes)) for one in stages]
    if dry_run:
        from training.dry_run import dry_run as rehearse

        for one in stages:
            print_table(f"dry run {one.name}", rehearse(one.config, tiny=tiny, echo=typer.echo))
        return
    check_sources(stages)
    for one in stages:
        print_table(f"trained {one.name}", run(one.config, resume=not fresh))


@app.command()
def chat(
    world: Annotated[str, typer.Option(help="A shop: name or YAML, JSON, CSV file.")] = (
        "frontier_shop"
    ),
    engine: Engine = "llamacpp",
    guard: Guard = "state",
    gguf: Gguf = None,
    method: Method = "astp-compact",
    confirmation: Confirmation = None,
) -> None:
    """Talk to a merchant in the terminal."""
    from haggle.trade.world_io import named_world, with_confirmation
    from serving.chat import chat as run

    level = check_level(guard, method)
    with located("--world"):
        shop = named_world(world)
    with located("--confirmation"):
        shop = with_confirmation(shop, confirmation)
    loaded = open_engine(engine, gguf)
    try:
        run(shop, loaded, level, method=method)
    finally:
        loaded.close()


@eval_app.callback()
def evaluate(
    context: typer.Context,
    config: Annotated[str, typer.Option(help="An eval config (name or file).")] = "default",
    out: Annotated[Path, typer.Option(help="Directory to write to.")] = Path("runs/eval/default"),
    dialogues: Annotated[
        int | None, typer.Option(min=1, help="Dialogues per scenario and run.")
    ] = None,
    gguf: Gguf = None,
    model: Annotated[str | None, typer.Option(help="A model directory or hub id.")] = None,
    quiet: Quiet = False,
) -> None:
    """Play dialogues against models and write dialogues, metrics.json and report.html; resumes."""
    if context.invoked_subcommand is not None:
        return
    from eval.experiment import AUTO, close_engines, load_eval_config, run_experiment
    from eval.usage import describe

    path = _config("eval", config)
    with located(str(path)):
        loaded = load_eval_config(path)
    files = {k: v for k, v in {"gguf": gguf, "model": model}.items() if v is not None}
    runs = [run.model_copy(update=files) for run in loaded.runs]
    for run in runs:  # told before anything is written to `out`
        if run.engine != AUTO:
            serve_config(run.engine, f"{path}: run {run.name!r}")
        if run.gguf is not None and not run.gguf.expanduser().is_file():
            raise HaggleError(
                "no such model file", where=str(run.gguf), hint="check `gguf`, or give --gguf"
            )
    changes = {"dialogues": dialogues} if dialogues is not None else {}
    loaded = loaded.model_copy(update={"runs": runs, **changes})
    try:
        metrics = run_experiment(loaded, out, start=start_run, progress=not quiet)
    finally:
        close_engines()
    print_experiment(metrics)
    for result in metrics["results"]:
        if used := "; ".join(describe(result.get("usage", {}))):
            typer.echo(f"{result['run']['name']}: {used}")
    typer.echo(f"report: {out / 'report.html'}")


@eval_app.command()
def cases(
    cases: Annotated[Path, typer.Option(help="Cases, one JSON object a line.")],
    worlds: Annotated[Path, typer.Option(help="Directory of their worlds.")],
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    engine: Engine = "llamacpp",
    guard: Guard = "state",
    gguf: Gguf = None,
    method: Method = "astp-compact",
    batch: Annotated[int, typer.Option(min=1, help="Cases at once; 1 for honest latencies.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Answer hand-written turns and write metrics.json and predictions.jsonl; resumes."""
    from eval.cases import load_cases, run_cases
    from haggle.trade.world_io import load_worlds

    level = check_level(guard, method)
    load_cases(cases, load_worlds(worlds))  # bad input is told before a model is loaded
    loaded = open_engine(engine, gguf)
    try:
        metrics = run_cases(
            cases, worlds, loaded, level, out, method=method, batch=batch, progress=not quiet
        )
    finally:
        loaded.close()
    print_table("cases", {k: v for k, v in metrics.items() if k != "by_tag"})


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Directory to write to.")] = Path("runs/demo"),
    train_minutes: Annotated[float, typer.Option(min=0.01, help="Minutes of training.")] = 6.0,
    dialogues: Annotated[int, typer.Option(min=1, help="Dialogues per scenario and run.")] = 2,
) -> None:
    """The whole pipeline, small: generate, train, export, evaluate, report; resumes."""
    from haggle.cli.demo import run_demo

    run_demo(out, train_minutes=train_minutes, dialogues=dialogues)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Say where an error lies that does not say so itself."""
    try:
        yield
    except HaggleError as error:
        if error.where:
            raise
        raise HaggleError(error.message, where=where, hint=error.hint) from error


def _config(kind: str, name: str, where: str = "--config") -> Path:
    from haggle.core.config import named_config

    with located(where):
        return named_config(kind, name)


def check_level(guard: str, method: str) -> Any:
    """The guard level, when both it and the method are known."""
    from haggle.trade.merchant import check_guard
    from haggle.trade.methods import get_method

    with located("--method"):
        get_method(method)
    with located("--guard"):
        return check_guard(guard)


def start_run(run: Any) -> Any:
    """Start the engine of an experiment's run, be it the shipped model's."""
    from eval.experiment import engine_config
    from haggle.cli.shipped import with_shipped_model
    from serving.engines import load_engine

    return load_engine(with_shipped_model(engine_config(run)))


def serve_config(name: str, where: str) -> Any:
    """A serve config by its name or file; `where` says which option names it."""
    from serving.engines import read_engine_config

    path = _config("serve", name, where)
    with located(str(path)):
        return read_engine_config(path)


def open_engine(engine: str, gguf: Path | None, model: str | None = None) -> Any:
    """The engine of a serve config, with another GGUF file or model directory if one is given."""
    from haggle.cli.shipped import with_shipped_model
    from serving.engines import load_engine

    config = serve_config(engine, "--engine")
    if gguf is not None and config.engine != "llamacpp":
        raise HaggleError(
            f"engine {config.engine!r} reads no GGUF",
            where="--gguf",
            hint="leave --gguf out, or take --engine llamacpp",
        )
    if model is not None and config.engine not in {"transformers", "vllm"}:
        raise HaggleError(
            f"engine {config.engine!r} reads no model directory",
            where="--model",
            hint="take --engine transformers or vllm_cpu; llama.cpp takes a file with --gguf",
        )
    config = config.model_copy(update={"gguf": gguf} if gguf else {})
    if model is not None:
        config = config.model_copy(update={"model": model, "adapter": None})
    return load_engine(with_shipped_model(config))


def print_table(title: str, values: Any) -> None:
    """Print a flat or nested result as a table of keys and values."""
    from dataclasses import asdict, is_dataclass

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if is_dataclass(values) and not isinstance(values, type):
        values = asdict(values)
    elif hasattr(values, "model_dump"):
        values = values.model_dump(mode="json")
    table = Table(title=title, show_header=False)
    for key, value in values.items():
        table.add_row(Text(str(key)), Text(_shown(value)))  # a path may look like markup
    Console().print(table)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_shown(v)}" for k, v in value.items())
    return str(value)


def print_experiment(metrics: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="evaluation (all scenarios)")
    columns = ("run", "guard", "STCR", "price OS", "price others", "SIRR", "valid JSON", "state",
               "cart", "joint", "p50 s")  # fmt: skip
    for column in columns:
        table.add_column(column)
    for result in metrics["results"]:
        m = result["all"]
        rates = (
            m["stcr"], m["price_accuracy"]["offer"], m["price_accuracy"]["others"], m["sirr"],
            m["valid_json"], m["accuracy"]["state"], m["accuracy"]["cart"], m["accuracy"]["joint"],
        )  # fmt: skip
        table.add_row(
            result["run"]["name"], result["run"]["guard"], *map(_rate, rates),
            _shown(m["latency_s"]["p50"]),
        )  # fmt: skip
    Console().print(table)


def _rate(rate: dict[str, Any]) -> str:
    if rate["value"] is None:
        return "n/a"
    return f"{100 * rate['value']:.1f}% ({rate['n']})"


def main() -> None:
    """Run the command; what a person can act on is printed without a traceback."""
    import sys

    try:
        app()
    except HaggleError as error:
        typer.secho(f"error: {error}", err=True, fg=typer.colors.RED)
        sys.exit(2)
    except OSError as error:
        if error.filename is None:
            raise
        message = f"error: {error.filename}: {error.strerror}"
        typer.secho(message, err=True, fg=typer.colors.RED)
        sys.exit(2)
    except (SystemExit, KeyboardInterrupt) as stop:
        if isinstance(stop, SystemExit) and stop.code != INTERRUPTED:  # typer's answer to Ctrl-C
            raise
        typer.echo("interrupted; run the same command again to go on", err=True)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
