"""Play whole dialogues with scripted players against models, and measure (`haggle eval`).

    haggle eval --config configs/eval/demo.yaml --out runs/eval

Every run of a config meets the same players: the seed fixes who comes in and what is said first.
"""

from __future__ import annotations

import platform
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from data_gen.language.phrasebook import Split
from data_gen.play import Play, start_play
from data_gen.players.scripted import MAX_ROUNDS
from data_gen.worlds import Shop, sample_shop, shop_of
from eval.journal import USAGE
from eval.metrics import summarize
from eval.usage import Meter, kept_usage
from haggle import __version__
from haggle.core.config import CLAIM, Record, claim_directory, load_config, parse
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from haggle.core.storage import append_jsonl, read_jsonl, write_json
from haggle.trade.merchant import MAX_TOKENS, Guard, Merchant
from haggle.trade.methods import DEFAULT_METHOD, get_method
from haggle.trade.records import SCENARIOS, Dialogue, Scenario
from haggle.trade.world_io import named_world
from serving.engines import EngineConfig, load_engine, method_for, read_engine_config

SAMPLED = "sampled"
AUTO = "auto"
ENGINE = "engine.json"


def _unquoted_off(value: Any) -> Any:
    """YAML reads an unquoted `off` as false."""
    return "off" if value is False else value


class RunConfig(Record):
    """One model under one guard: a line of the report.

    `engine` is a serve config, or `auto`: vLLM on this CPU where it is installed, else llama.cpp.
    `model`, `gguf` and `adapter` replace the serve config's. Without a `method` the model is asked
    as it was taught (`with_methods`).
    """

    name: Annotated[str, Field(pattern=r"^[\w][\w .+-]*$", max_length=80)]
    engine: str
    guard: Annotated[Guard, BeforeValidator(_unquoted_off)] = "state"
    method: str | None = None
    model: str | None = None
    gguf: Path | None = None
    adapter: Path | None = None

    @property
    def gguf_only(self) -> bool:
        """Whether only a llama.cpp file of the model is at hand."""
        return self.gguf is not None and self.model is None and self.adapter is None


class EvalConfig(Record):
    """An experiment: every run plays `dialogues` dialogues per scenario with the same seeds.

    `worlds` are shipped names or files; `sampled` draws a random shop of the held-out genres per
    seed. `batch` dialogues are played side by side. `max_rounds` bounds a dialogue, `max_tokens` a
    compact answer.
    """

    runs: list[RunConfig] = Field(min_length=1)
    dialogues: Annotated[int, Field(ge=1, le=100_000)] = 20
    scenarios: list[Scenario] = list(SCENARIOS)
    worlds: list[str] = Field(default=["frontier_shop", SAMPLED], min_length=1)
    split: Split = "test"
    first_seed: Annotated[int, Field(ge=0)] = 0
    batch: Annotated[int, Field(ge=1)] = 1
    max_rounds: Annotated[int, Field(ge=2, le=100)] = MAX_ROUNDS
    max_tokens: Annotated[int, Field(ge=16, le=4096)] = MAX_TOKENS
    items: tuple[Annotated[int, Field(ge=1)], int] = (6, 20)

    @field_validator("items")
    @classmethod
    def _items_are_a_range(cls, items: tuple[int, int]) -> tuple[int, int]:
        if items[0] > items[1]:
            raise ValueError("is no range, write e.g. [6, 20]")
        return items


Starter = Callable[[RunConfig], Engine]


def load_eval_config(path: str | Path) -> EvalConfig:
    """An eval config. Raises HaggleError naming file and field."""
    config = load_config(path, EvalConfig)
    names = [run.name for run in config.runs]
    for name in names:
        if names.count(name) > 1:
            raise HaggleError(f"two runs are called {name!r}", where=str(path))
    for run in config.runs:
        get_method(run.method or DEFAULT_METHOD)
    for world in config.worlds:
        if world != SAMPLED:
            named_world(world)
    return config


def engine_config(run: RunConfig) -> EngineConfig:
    """The serve config of a run, with the run's own model files in place."""
    name = run.engine
    if name == AUTO:
        name = "vllm_cpu" if find_spec("vllm") and not run.gguf_only else "llamacpp_batch"
    config = read_engine_config(name)
    own = {"model": run.model, "gguf": run.gguf, "adapter": run.adapter}
    if config.engine != "llamacpp":
        own["gguf"] = None
    return config.model_copy(update={k: v for k, v in own.items() if v is not None})


def with_methods(config: EvalConfig) -> EvalConfig:
    """The experiment with the method of every run filled in, as its model was taught."""
    return _each(config, lambda run: run.method or method_for(engine_config(run)))


def _each(config: EvalConfig, method: Callable[[RunConfig], str]) -> EvalConfig:
    runs = [run.model_copy(update={"method": method(run)}) for run in config.runs]
    return config.model_copy(update={"runs": runs})


def start_engine(run: RunConfig) -> Engine:
    """Start the engine of a run."""
    return load_engine(engine_config(run))


def make_play(config: EvalConfig, scenario: Scenario, seed: int, method: str) -> Play:
    """The dialogue of a seed: the same shop, player and first line whatever the model."""
    name = config.worlds[seed % len(config.worlds)]
    if name == SAMPLED:
        rng = random.Random(f"eval/{seed}")
        shop: Shop = sample_shop(rng, config.split, config.items, invented=0.2)
    else:
        shop = shop_of(named_world(name))
    play = start_play(shop, scenario, seed, config.split, get_method(method))
    play.player.max_rounds = min(play.player.max_rounds, config.max_rounds)
    if scenario == SCENARIOS[0] and name != SAMPLED:
        world = shop.world
        play.player.speaker.sellable = len(world.inventory) / len(world.items)
    return play


def play_batch(plays: Sequence[Play], merchant: Merchant, done: Callable[[Play], None]) -> None:
    """Play dialogues side by side, a round at a time; `done` is told of each that ends."""
    open_plays = list(plays)
    while open_plays:
        lines = [(play, play.next_line()) for play in open_plays]
        for play, line in lines:
            if line is None:
                done(play)
        going = [(play, line) for play, line in lines if line is not None]
        if not going:
            return
        goals = [play.goal() for play, _ in going]
        turns = merchant.reply_batch([(play.session, line) for play, line in going])
        for (play, _), turn, goal in zip(going, turns, goals, strict=True):
            play.add(turn, goal)
        open_plays = [play for play, _ in going]


def run_experiment(
    config: EvalConfig, out: Path, *, start: Starter = start_engine, progress: bool = True
) -> dict[str, Any]:
    """Play every run, write dialogues, metrics.json and report.html to `out`, return the metrics.

    Finished dialogues are kept: an interrupted experiment resumes. `out` is claimed for the config
    only once a model has answered: an engine that cannot start leaves nothing behind. Raises
    HaggleError when `out` holds another experiment.
    """
    config = _each(config, lambda run: run.method or DEFAULT_METHOD)
    with _claimed(out, config):
        return _run(config, out, start, progress)


def _run(config: EvalConfig, out: Path, start: Starter, progress: bool) -> dict[str, Any]:
    from eval.report import write_report

    results = []
    played: dict[str, dict[str, list[Dialogue]]] = {}
    for run in config.runs:
        per_scenario = played[run.name] = {
            str(scenario): _play_scenario(config, run, scenario, out, start, progress)
            for scenario in config.scenarios
        }
        dialogues = [d for group in per_scenario.values() for d in group]
        usage = kept_usage(out / run.name / USAGE)
        results.append(
            {
                "run": run.model_dump(mode="json"),
                "model": _model_of(out, run),
                "scenarios": {name: summarize(group) for name, group in per_scenario.items()},
                "all": summarize(dialogues),
            }
            | ({"usage": usage} if usage else {})
        )
    metrics = {
        "version": __version__,
        "config": config.model_dump(mode="json"),
        "machine": machine(),
        "results": results,
    }
    write_json(out / "metrics.json", metrics)
    write_report(metrics, out / "report.html", played)
    return metrics


@contextmanager
def _claimed(out: Path, config: EvalConfig) -> Iterator[None]:
    """Claim `out` for a config; given back when the block fails before any model has answered."""
    there = out.exists()
    new = claim_directory(out, config, "another experiment")
    try:
        yield
    except BaseException:
        folders = [out / run.name for run in config.runs]
        if new and not any(_answered(folder) for folder in folders):
            for folder in folders:
                _remove(folder, ENGINE, USAGE)
            _remove(out, CLAIM, keep=there)
        raise


def _answered(folder: Path) -> bool:
    """Whether a run's model has answered anything."""
    return any(folder.glob("*.jsonl")) or bool(kept_usage(folder / USAGE).get("answers"))


def _remove(folder: Path, *names: str, keep: bool = False) -> None:
    """Delete these files, and the folder if nothing else is in it and it is not to be kept."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
    if not keep and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def machine() -> dict[str, Any]:
    """What a figure was measured on."""
    import os

    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "python": sys.version.split()[0],
    }


def _play_scenario(
    config: EvalConfig, run: RunConfig, scenario: Scenario, out: Path, start: Starter,
    progress: bool,
) -> list[Dialogue]:  # fmt: skip
    """Dialogues of one run and scenario; those a former call finished are read, not played."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    path = out / run.name / f"{scenario}.jsonl"
    seeds = range(config.first_seed, config.first_seed + config.dialogues)
    kept = read_jsonl(path, drop_torn_tail=True) if path.exists() else []
    finished = {d.seed: d for d in (parse(data, Dialogue, str(path)) for data in kept)}
    todo = [seed for seed in seeds if seed not in finished]
    if todo:
        engine = _engine(run, out, start)
        merchant = Merchant(engine, run.guard, max_tokens=config.max_tokens)
        meter = Meter(engine, out / run.name / USAGE)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, disable=not progress) as bar:
            task = bar.add_task(
                f"{run.name}: {scenario}", total=len(seeds), completed=len(finished)
            )

            def done(play: Play) -> None:
                dialogue = play.dialogue(merchant.engine.name, merchant.guard)
                append_jsonl(path, dialogue.model_dump())
                meter.keep()
                finished[dialogue.seed] = dialogue
                bar.advance(task)

            assert run.method is not None
            for first in range(0, len(todo), config.batch):
                group = todo[first : first + config.batch]
                plays = [make_play(config, scenario, seed, run.method) for seed in group]
                try:
                    play_batch(plays, merchant, done)
                finally:
                    meter.keep()
    return [finished[seed] for seed in seeds]


_ENGINES: dict[tuple[object, ...], Engine] = {}


def _engine(run: RunConfig, out: Path, start: Starter) -> Engine:
    """The engine of a run; one stays loaded, so runs of the same model share it."""
    key = (run.engine, run.model, run.gguf, run.adapter, start)
    if key not in _ENGINES:
        close_engines()
        _ENGINES[key] = start(run)
    engine = _ENGINES[key]
    write_json(out / run.name / ENGINE, {"engine": engine.name, "model": engine.model})
    return engine


def close_engines() -> None:
    """Free the model that is loaded."""
    for engine in _ENGINES.values():
        engine.close()
    _ENGINES.clear()


def _model_of(out: Path, run: RunConfig) -> str:
    from haggle.core.storage import read_json

    path = out / run.name / ENGINE
    return str(read_json(path)["model"]) if path.exists() else run.engine
