"""The `haggle` command. Rooms are imported inside the commands, so that `--help` is instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from haggle.cli.ablate import ablate
from haggle.cli.bench import bench_app
from haggle.cli.bundle import bundle
from haggle.cli.character import character
from haggle.cli.coherence import coherence
from haggle.cli.compare import compare
from haggle.cli.curves import curves
from haggle.cli.export import card, export
from haggle.cli.generate import generate
from haggle.cli.inspect import inspect, stats
from haggle.cli.learning import learning_curve
from haggle.cli.levels import check_level, check_method, check_planner, linker
from haggle.cli.options import (
    Confirmation,
    Embeddings,
    Engine,
    Gguf,
    Guard,
    Method,
    Planner,
    Quiet,
    given,
)
from haggle.cli.planner import planner as planner_command
from haggle.cli.preferences import preferences
from haggle.cli.serve import serve_app
from haggle.cli.sop import sop, sop_app
from haggle.cli.tables import print_experiment, print_table
from haggle.cli.talk import talk_app
from haggle.cli.turns import turns
from haggle.core.config import located
from haggle.core.errors import HaggleError

INTERRUPTED = 130
ROOMS = {"data_gen", "eval", "pipeline", "training"}  # in a checkout, not in the wheel

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Small language models as merchants that a game can trust.",
)
eval_app = typer.Typer(
    invoke_without_command=True, help="Measure models: dialogues, turns, free conversations."
)
app.add_typer(eval_app, name="eval")
eval_app.add_typer(talk_app, name="talk")
app.add_typer(sop_app, name="sop")
app.add_typer(serve_app, name="serve")
app.add_typer(bench_app, name="bench")


app.command()(generate)
app.command()(inspect)
app.command()(stats)
app.command()(preferences)

app.command()(curves)
app.command()(ablate)
app.command()(bundle)
app.command()(export)
app.command()(card)
eval_app.command()(turns)
eval_app.command()(character)
eval_app.command()(sop)
eval_app.command(name="planner")(planner_command)
eval_app.command()(coherence)
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
    context: typer.Context,
    world: Annotated[str, typer.Option(help="A shop: name or YAML, JSON, CSV file.")] = (
        "frontier_shop"
    ),
    engine: Engine = "llamacpp",
    guard: Guard = "state",
    gguf: Gguf = None,
    method: Method = None,
    confirmation: Confirmation = None,
    embeddings: Embeddings = "auto",
    character: Annotated[
        str, typer.Option(help="merchant, a task (haggle sop list), or a task file of your own.")
    ] = "merchant",
    profile: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE: who you are to a character with a procedure; repeatable."),
    ] = None,
    planner: Planner = "",
) -> None:
    """Talk to a character in the terminal."""
    from haggle.characters import MERCHANT, check_options
    from haggle.trade.world_io import named_world, with_confirmation
    from serving.chat import chat as run

    level = check_level(guard)
    if character != MERCHANT:
        named = given(context, "world", "method", "confirmation", "embeddings")
        converse(character, engine, level, gguf, check_planner(planner), profile or [], named)
        return
    check_options(character, "--", profile=profile)
    spoken = check_method(method, engine, gguf)
    with located("--world"):
        shop = named_world(world)
    with located("--confirmation"):
        shop = with_confirmation(shop, confirmation)
    reader = linker(embeddings)
    from serving.engines import ask_below_of, open_engine

    doubt, plans = ask_below_of(engine, gguf), check_planner(planner)
    loaded = open_engine(engine, gguf)
    try:
        run(shop, loaded, level, method=spoken, ask_below=doubt, linker=reader, planner=plans)
    finally:
        loaded.close()


def converse(
    character: str,
    engine: str,
    guard: Any,
    gguf: Path | None,
    planner: str = "",
    profile: Sequence[str] = (),
    named: Mapping[str, Any] | None = None,
) -> None:
    """Talk to a character that keeps to a procedure; by default with the model for that.

    `named` are options of other characters that the command line has; they are refused.
    """
    from haggle.characters import check_options
    from haggle.sop.task import load_task, with_profile
    from serving.chat import chat_by_task

    with located("--character"):
        task = load_task(character)
    check_options(character, "--", **(named or {}))
    with located("--profile"):
        if odd := [pair for pair in profile if "=" not in pair]:
            hint = f"write for instance --profile {next(iter(task.user_profile), 'Name')}=VALUE"
            raise HaggleError(f"no KEY=VALUE: {odd[0]!r}", hint=hint)
        task = with_profile(task, dict(pair.split("=", 1) for pair in profile))
    from serving.engines import CHARACTERS, for_characters, open_engine

    chosen = CHARACTERS if engine == "llamacpp" and gguf is None else engine
    loaded = open_engine(chosen, gguf)
    try:
        chat_by_task(task, for_characters(loaded), guard, planner=planner)
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
    from eval.experiment import (
        AUTO,
        close_engines,
        load_eval_config,
        run_experiment,
        with_methods,
    )
    from eval.usage import describe
    from serving.engines import serve_config

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
        metrics = run_experiment(with_methods(loaded), out, progress=not quiet)
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
    method: Method = None,
    batch: Annotated[int, typer.Option(min=1, help="Cases at once; 1 for honest latencies.")] = 1,
    embeddings: Embeddings = "off",
    quiet: Quiet = False,
) -> None:
    """Answer hand-written turns and write metrics.json and predictions.jsonl; resumes."""
    from eval.cases import load_cases, run_cases
    from haggle.trade.world_io import load_worlds

    level, spoken = check_level(guard), check_method(method, engine, gguf)
    reader = linker(embeddings) if embeddings != "off" else None
    load_cases(cases, load_worlds(worlds), spoken)  # bad input is told before a model is loaded
    from serving.engines import ask_below_of, open_engine

    loaded = open_engine(engine, gguf)
    try:
        metrics = run_cases(
            cases,
            worlds,
            loaded,
            level,
            out,
            method=spoken,
            batch=batch,
            progress=not quiet,
            linker=reader,
            ask_below=ask_below_of(engine, gguf),
        )
    finally:
        loaded.close()
    print_table("cases", {k: v for k, v in metrics.items() if k != "by_tag"})


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Directory to write to.")] = Path("runs/demo"),
    minutes: Annotated[
        float, typer.Option(min=0.02, help="About how long it may take; training gets its share.")
    ] = 9.0,
    dialogues: Annotated[int, typer.Option(min=1, help="Dialogues per scenario and run.")] = 1,
) -> None:
    """A conversation, then the whole pipeline, small; resumes."""
    from pipeline.demo import run_demo

    run_demo(out, minutes=minutes, dialogues=dialogues)


def _config(kind: str, name: str, where: str = "--config") -> Path:
    from haggle.core.config import named_config

    with located(where):
        return named_config(kind, name)


def main() -> None:
    """Run the command; what a person can act on is printed without a traceback."""
    import sys

    try:
        app()
    except HaggleError as error:
        _fail(error)
    except ModuleNotFoundError as error:
        if (room := (error.name or "").split(".")[0]) not in ROOMS:
            raise
        hint = "run it in a checkout of Haggle; installed alone it can `chat` and `serve`"
        _fail(HaggleError(f"this command needs {room}/, which is not installed", hint=hint))
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{error.filename}: {error.strerror}")
    except (SystemExit, KeyboardInterrupt) as stop:
        if isinstance(stop, SystemExit) and stop.code != INTERRUPTED:  # typer's answer to Ctrl-C
            raise
        typer.echo("interrupted; run the same command again to go on", err=True)
        sys.exit(INTERRUPTED)


def _fail(error: object) -> NoReturn:
    typer.secho(f"error: {error}", err=True, fg=typer.colors.RED)
    raise SystemExit(2)


if __name__ == "__main__":
    main()
