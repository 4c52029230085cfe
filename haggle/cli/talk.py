"""`haggle eval talk`: free conversations of players with a goal, judged turn by turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from haggle.cli.options import Batch, Engine, Gguf, Guard, Method, Model, Quiet
from haggle.core.config import install_hint, located
from haggle.core.errors import HaggleError

talk_app = typer.Typer(invoke_without_command=True)

Out = Annotated[Path, typer.Option(help="Directory of the conversations.")]
Goals = Annotated[
    Path | None,
    typer.Option(help="Goals, a YAML file; the hand-written ones if nothing is named."),
]
World = Annotated[
    list[str] | None,
    typer.Option(help="Draw goals for this shop instead (name or file); as often as there are."),
]
Number = Annotated[int, typer.Option("--n", min=1, help="How many goals to draw for --world.")]
Seed = Annotated[int, typer.Option(help="Which goals are drawn, and what the player draws.")]
Limit = Annotated[int, typer.Option(min=1, max=100, help="Turns at the most.")]
Judge = Annotated[
    str | None, typer.Option(help="The engine of a judge: a serve config's name or file.")
]


@talk_app.callback()
def talk(
    context: typer.Context,
    out: Annotated[
        Path | None, typer.Option(help="Directory to write to; the conversations resume there.")
    ] = None,
    goals: Goals = None,
    world: World = None,
    n: Number = 40,
    seed: Seed = 0,
    player: Annotated[
        str | None, typer.Option(help="The engine that plays: a serve config's name or file.")
    ] = None,
    lines: Annotated[
        Path | None,
        typer.Option(help='Written lines instead of a player: {"goal": ..., "lines": [...]}.'),
    ] = None,
    judge: Judge = None,
    engine: Engine = "llamacpp_batch",
    guard: Guard = "state",
    gguf: Gguf = None,
    model: Model = None,
    method: Method = None,
    limit: Limit = 12,
    batch: Batch = 8,
    quiet: Quiet = False,
) -> None:
    """Free conversations of a player who has a goal with a merchant, judged turn by turn; resumes.

    The player is a model (--player) or written lines (--lines). People play with `talk step` and
    judge with `talk form`.
    """
    if context.invoked_subcommand is not None:
        return
    if out is None:
        raise HaggleError("is missing: where to write to", where="--out")
    if (player is None) == (lines is None):
        raise HaggleError(
            "say who plays: --player ENGINE or --lines FILE, one of them", where="haggle eval talk"
        )
    from eval.talk.players import WrittenPlayer, read_written

    chosen = _goals(goals, world, n, seed)
    speaker = None
    if lines is not None:
        written = read_written(lines, chosen)
        chosen, speaker = chosen.only(list(written)), WrittenPlayer(written)
    merchant = _Merchant(engine, guard, gguf, model, method, limit)
    merchant.play(out, chosen, player, speaker, seed, batch, quiet)
    if judge is not None:
        _judge(out, judge, None, batch, quiet)
    _report(out)


@talk_app.command()
def step(
    out: Out,
    say: Annotated[
        Path | None,
        typer.Option(help='What the players say: {"conversation": ..., "line": ...} a line.'),
    ] = None,
    goals: Goals = None,
    world: World = None,
    n: Number = 40,
    seed: Seed = 0,
    engine: Engine = "llamacpp_batch",
    guard: Guard = "state",
    gguf: Gguf = None,
    model: Model = None,
    method: Method = None,
    limit: Limit = 12,
) -> None:
    """Play by hand, many conversations at once. The first call opens them and writes open.jsonl.

    Fill in "line" there ("end": true leaves), pass the file to --say, and the merchant's answers
    are printed. Later calls need --out and --say alone. Without --say it prints what is open.
    """
    from eval.talk.conversation import SETTING, load_table
    from eval.talk.run import step as take
    from eval.talk.run import write_open
    from haggle.core.storage import read_jsonl
    from haggle.grammar.json_text import to_json

    if not (out / SETTING).exists():
        if say is not None:
            raise HaggleError(
                "holds no conversations yet", where=str(out), hint="open them first, without --say"
            )
        _Merchant(engine, guard, gguf, model, method, limit).open(
            out, _goals(goals, world, n, seed)
        )
    table = load_table(out)
    if say is None:
        told = read_jsonl(write_open(table))
    else:
        told = take(table, say, _again(table.setting))
    for answer in told:
        typer.echo(to_json(answer))
    typer.echo(f"{len(table.open())} open: {out / 'open.jsonl'}", err=True)


@talk_app.command()
def judge(
    out: Out,
    judge: Judge = None,
    name: Annotated[
        str | None, typer.Option(help="What the judge is called; else as the model.")
    ] = None,
    judgements: Annotated[
        Path | None, typer.Option(help="Take over judgements from JSON Lines instead.")
    ] = None,
    batch: Batch = 8,
    quiet: Quiet = False,
) -> None:
    """Have a model judge every turn, or take over judgements from a file; then measure."""
    if (judge is None) == (judgements is None):
        raise HaggleError(
            "say who judges: --judge ENGINE or --judgements FILE, one of them",
            where="haggle eval talk judge",
        )
    from eval.talk.conversation import load_table
    from eval.talk.judgements import import_judgements

    if judge is not None:
        _judge(out, judge, name, batch, quiet)
    else:
        assert judgements is not None
        typer.echo(f"{import_judgements(load_table(out), judgements)} judgements taken over")
    _report(out)


@talk_app.command()
def form(
    out: Out,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8010,
) -> None:
    """Judge in a web form, turn by turn with the keys 1 2 3 4; kept at once. Ctrl-C stops it."""
    try:
        import uvicorn

        from eval.talk.form import make_form
    except ModuleNotFoundError as error:
        raise HaggleError(
            f"{error.name} is not installed",
            where="haggle eval talk form",
            hint=install_hint("serve"),
        ) from None
    from eval.talk.conversation import load_table
    from serving.openai_server import check_port

    app = make_form(load_table(out))
    check_port(host, port)
    typer.echo(f"http://{host}:{port}  (then: haggle eval talk report --out {out})")
    uvicorn.run(app, host=host, port=port, log_level="warning")


@talk_app.command()
def label(
    draft: Annotated[Path, typer.Option(help="The draft: written, or read with --corpus.")],
    out: Annotated[Path | None, typer.Option(help="Conversations to make a draft of.")] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="The corpus file to make of a labelled draft.")
    ] = None,
) -> None:
    """Label conversations for training: write a draft, then make a corpus file of it.

    In the draft set each `right` to yes, to drop, or to the right answer.
    """
    from eval.talk.conversation import load_table
    from eval.talk.labels import write_corpus, write_draft

    if (out is None) == (corpus is None):
        raise HaggleError(
            "say what is to be made: a draft of --out, or a --corpus file of the draft",
            where="haggle eval talk label",
        )
    if out is not None:
        typer.echo(f"{draft}: {write_draft(load_table(out), draft)} turns to label")
    if corpus is not None:
        dialogues, turns = write_corpus(draft, corpus)
        typer.echo(f"{corpus}: {dialogues} dialogues, {turns} turns")
        typer.echo(f"check it: python -m data_gen.corpus_io {corpus}", err=True)


@talk_app.command()
def report(out: Out) -> None:
    """Measure the conversations and judgements that are there; writes metrics.json."""
    _report(out)


class _Merchant:
    """The options of the merchant's side."""

    def __init__(
        self,
        engine: str,
        guard: str,
        gguf: Path | None,
        model: str | None,
        method: str | None,
        limit: int,
    ) -> None:
        from haggle.cli.levels import check_level, check_method
        from serving.engines import ask_below_of

        self.level = check_level(guard)
        self.method, self.limit = check_method(method, engine, gguf, model), limit
        self.engine, self.gguf, self.model = engine, gguf, model
        self.ask_below = ask_below_of(engine, gguf, model)
        self.serve = {
            "engine": engine, "gguf": str(gguf) if gguf else None, "model": model
        }  # fmt: skip

    def setting(self, goals: Any, loaded: Any, player: str) -> Any:
        from eval.talk.run import setting_of

        return setting_of(
            goals, loaded, self.level, player, method=self.method, limit=self.limit,
            serve=self.serve, ask_below=self.ask_below,
        )  # fmt: skip

    def open(self, out: Path, goals: Any) -> None:
        """Begin conversations that people play."""
        from eval.talk.conversation import begin
        from eval.talk.run import PEOPLE
        from serving.engines import open_engine

        loaded = open_engine(self.engine, self.gguf, self.model)
        try:
            begin(out, self.setting(goals, loaded, PEOPLE), goals)
        finally:
            loaded.close()

    def play(
        self, out: Path, goals: Any, player: str | None, speaker: Any, seed: int, batch: int,
        quiet: bool,
    ) -> None:  # fmt: skip
        """Play conversations with a model, or with written lines."""
        from eval.talk.players import GoalPlayer
        from eval.talk.run import play
        from serving.engines import open_engine, serve_config

        playing = None
        if player is not None:
            serve_config(player, "--player")  # a wrong name is told before a model is loaded
        loaded = open_engine(self.engine, self.gguf, self.model)
        try:
            if player is not None:
                playing = open_engine(player, None)
                speaker = GoalPlayer(playing, goals, seed)
            play(
                out, self.setting(goals, loaded, speaker.name), goals, loaded, speaker,
                player_engine=playing, batch=batch, progress=not quiet,
            )  # fmt: skip
        finally:
            loaded.close()
            if playing is not None:
                playing.close()


def _again(setting: Any) -> Callable[[], Any]:
    """How the engine of kept conversations is started again. Raises HaggleError when it has become
    another one."""

    def start() -> Any:
        from serving.engines import open_engine

        serve = setting.serve
        gguf = Path(serve["gguf"]) if serve["gguf"] else None
        loaded = open_engine(serve["engine"], gguf, serve["model"])
        if (loaded.name, loaded.model) != (setting.engine, setting.model):
            loaded.close()
            raise HaggleError(
                f"is {loaded.model!r} now; the conversations began with {setting.model!r}",
                where=f"engine {serve['engine']}",
                hint="bring the first one back, or begin in another --out",
            )
        return loaded

    return start


def _goals(path: Path | None, worlds: list[str] | None, n: int, seed: int) -> Any:
    """The goals that options name."""
    from eval.talk.drawing import draw_goals
    from eval.talk.goals import HAND_WRITTEN, load_goals
    from haggle.trade.world_io import named_world

    if path is not None and worlds:
        raise HaggleError("give --goals or --world, not both", where="--world")
    if not worlds:
        return load_goals(path or HAND_WRITTEN)
    with located("--world"):
        return draw_goals([named_world(name) for name in worlds], n, seed)


def _judge(out: Path, engine: str, name: str | None, batch: int, quiet: bool) -> None:
    from eval.talk.conversation import load_table
    from eval.talk.judge import run_judge
    from serving.engines import open_engine, serve_config

    table = load_table(out)
    serve_config(engine, "--judge")
    loaded = open_engine(engine, None)
    try:
        run_judge(table, loaded, name=name, batch=batch, progress=not quiet)
    finally:
        loaded.close()


def _report(out: Path) -> None:
    from eval.talk.conversation import load_table
    from eval.talk.measures import write_measures
    from haggle.cli.talk_tables import print_measures

    print_measures(write_measures(load_table(out)))
    typer.echo(f"figures: {out / 'metrics.json'}")
