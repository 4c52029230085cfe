"""One training run, whatever its method: its directory, checkpoints, resumption and result.

A run directory holds config.resolved.yaml, metrics.jsonl, checkpoint-*/, adapter/ (or model/),
result.json, curves.png and curves.html.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from haggle.core.errors import HaggleError
from haggle.core.storage import atomic_dir, atomic_write_text, read_json, read_jsonl, write_json
from haggle.dataset import iter_rows
from haggle.grammar.json_text import to_json
from haggle.weights.adapters import ADAPTER_INFO, adapter_note, taught_method
from haggle.weights.models import BaseModel, resolve_base
from haggle.weights.saving import in_bf16, save_model_bf16
from training.arguments import check_machine, trainer_arguments
from training.checkpoints import (
    CONFIG_FILE,
    METRICS_FILE,
    PREFIX,
    RESULT_FILE,
    last_checkpoint,
    step_of,
)
from training.clock import Clock
from training.config import AnyConfig, RunSettings, TrainConfig, differing_keys, resolved_yaml
from training.curves import write_curves
from training.failures import explained
from training.heap import keep_freed_memory
from training.heldout import (
    best_evaluation,
    best_in_words,
    held_out_source,
    out_of_patience,
    read_held_out,
)
from training.loading import check_start, load_tokenizer
from training.memory import fitted
from training.methods import METHODS
from training.quantization import check_quantization

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from training.trainer import BoundedTrainer


@dataclass(frozen=True, slots=True)
class TrainResult:
    """What a run came to. `loss` is the last one logged; `minutes` of training alone.

    `figures` are what else its method measures, as last logged. `best` is the best held-out
    evaluation (step, joint accuracy with its 95% interval, turns), empty where there was none.
    `weights_step` is the step whose weights are saved.
    """

    output_dir: Path
    weights: Path
    base: str
    steps: int
    total_steps: int
    loss: float
    tokens: int
    minutes: float
    stopped: str
    figures: dict[str, float] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)
    weights_step: int | None = None

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / max(1e-9, self.minutes * 60)


def train(
    config: AnyConfig, resume: bool = True, echo: Callable[[str], None] = print
) -> TrainResult:
    """Train as `config` says and save the adapter (bf16), or all weights.

    With `resume` a run broken off in the same directory goes on from its last checkpoint, and a
    finished one is returned as it is; without, it starts afresh. Raises HaggleError when the
    directory holds a run with other settings or data, when data, base or the adapter to start from
    are unusable, when memory is too small, and when the loss is no longer a number (the last good
    checkpoint is kept).
    """
    keep_freed_memory()
    method = METHODS[config.method]
    arguments = trainer_arguments(config)
    check_quantization(config)
    check_machine(config, arguments)
    if config.evaluation is not None:
        held_out_source(config)  # a missing one is told before anything is read
    base = resolve_base(config.base, echo=echo)
    echo(f"Base: {base.describe()}")
    tokenizer = load_tokenizer(base)
    facts = _facts(base)
    if config.start_from is not None:
        facts["adapter_sha256"] = check_start(config.start_from, base)
        echo(f"Adapter: {config.start_from}")

    data = method.tokens(config, method.read(config), tokenizer)
    echo(f"Data: {data.describe()}")
    facts |= data.facts()
    held_out = None
    if config.evaluation is not None:
        held_out = read_held_out(config, tokenizer)
        echo(f"Held out: {held_out.describe()}")
        facts |= held_out.facts()

    arguments = fitted(config, arguments, base.path, partial(method.largest_batch, data), echo)
    with arguments.main_process_first(local=False):
        _claim(config.output_dir, config, facts, resume)
        if (done := _finished(config.output_dir, config)) is not None:
            echo(f"Already finished: {config.output_dir}")
            return done
        checkpoint = _resumed(config.output_dir)

    clock = _clock(config, checkpoint, echo)
    with explained(config):
        trainer = method.build_trainer(config, base, tokenizer, data, clock, arguments)
        if held_out is not None:
            trainer.watch(held_out)
    with explained(config, lambda: trainer.state.global_step):
        if not (checkpoint and _taken_from_its_end(config, trainer, checkpoint)):
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        result = _save_result(config, base, tokenizer, trainer, clock)
    if trainer.is_world_process_zero():
        _report(result, echo)
    return result


def _clock(config: RunSettings, checkpoint: Path | None, echo: Callable[[str], None]) -> Clock:
    """The run's clock, as the checkpoint left it."""
    from training.trainer import restore_clock

    clock = Clock(budget_s=config.max_minutes * 60 if config.max_minutes else None)
    if checkpoint is not None:
        echo(f"Resuming from {checkpoint}")
        restore_clock(clock, checkpoint)
    return clock


def _report(result: TrainResult, echo: Callable[[str], None]) -> None:
    """Say what was best, and draw the curves."""
    if result.best:
        step = result.weights_step or result.steps
        echo(best_in_words(result.best, result.weights, step, result.steps))
    try:
        write_curves([result.output_dir], result.output_dir)
    except HaggleError as error:  # the run itself is saved
        echo(f"No curves: {error}")


def _facts(base: BaseModel) -> dict[str, Any]:
    return {
        "base_source": base.source,
        "base_path": str(base.path),
        "licence": base.licence,
        "versions": {name: version(name) for name in ("torch", "transformers", "trl", "peft")},
    }


def _claim(run: Path, config: RunSettings, facts: dict[str, Any], resume: bool) -> None:
    """Make the run directory this run's own, or refuse when another one lives there."""
    path = run / CONFIG_FILE
    if path.is_file():
        stored = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        if keys := differing_keys(config, facts, stored):
            raise HaggleError(
                "holds a run with other settings: " + ", ".join(keys),
                where=str(run),
                hint="choose another output_dir, or delete this one",
            )
    elif last_checkpoint(run) is not None:
        raise HaggleError(
            f"holds checkpoints but no {CONFIG_FILE}",
            where=str(run),
            hint="choose another output_dir, or delete this one",
        )
    run.mkdir(parents=True, exist_ok=True)
    if not resume:
        for old in run.glob("checkpoint-*"):
            shutil.rmtree(old)
        for name in (METRICS_FILE, RESULT_FILE):
            (run / name).unlink(missing_ok=True)
    atomic_write_text(path, resolved_yaml(config, facts))


def _finished(run: Path, config: RunSettings) -> TrainResult | None:
    path = run / RESULT_FILE
    if not path.is_file():
        return None
    stored = read_json(path)
    stored.pop("tokens_per_s", None)
    result = TrainResult(
        **{**stored, "output_dir": run, "weights": run / Path(stored["weights"]).name}
    )
    if not result.weights.is_dir():
        return None
    more_time = config.max_minutes is None or config.max_minutes > result.minutes * 1.1
    return None if result.stopped == "time limit" and more_time else result


def _taken_from_its_end(config: RunSettings, trainer: BoundedTrainer, checkpoint: Path) -> bool:
    """Whether a run broke off behind its last step; its weights and state are then read back.

    Resumed there, the trainer would take a step too many.
    """
    from transformers import TrainerState

    state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))
    over = state.global_step >= state.max_steps
    over = over or out_of_patience(config.evaluation, state.log_history) is not None
    if not over or trainer.is_fsdp_enabled:
        return False
    trainer._load_from_checkpoint(str(checkpoint))
    trainer.state = state
    return True


def _resumed(run: Path) -> Path | None:
    """The checkpoint to go on from; metrics of steps that will be taken again are dropped."""
    checkpoint, path = last_checkpoint(run), run / METRICS_FILE
    if path.is_file():
        step = step_of(checkpoint) if checkpoint else 0
        kept = [line for line in read_jsonl(path, drop_torn_tail=True) if line["step"] <= step]
        atomic_write_text(path, "".join(to_json(line) + "\n" for line in kept))
    return checkpoint


def _save_result(
    config: RunSettings,
    base: BaseModel,
    tokenizer: PreTrainedTokenizerBase,
    trainer: BoundedTrainer,
    clock: Clock,
) -> TrainResult:
    run = config.output_dir
    weights = config.weights
    state = trainer.state
    best = best_evaluation(state.log_history) or {}
    weights_step = state.global_step
    with clock.paused():
        if best and config.evaluation is not None and config.evaluation.keep_best:
            weights_step = _take_best(trainer, run, best["step"])
        weights_now = trainer.accelerator.get_state_dict(trainer.model)  # gathered by all processes
        if trainer.is_world_process_zero():
            _save_weights(trainer, weights_now, tokenizer, base, config)
    losses = [line["loss"] for line in state.log_history if "loss" in line]
    result = TrainResult(
        output_dir=run,
        weights=weights,
        base=base.name,
        steps=state.global_step,
        total_steps=state.max_steps,
        loss=losses[-1] if losses else float("nan"),
        tokens=clock.tokens,
        minutes=round(clock.elapsed_s / 60, 3),
        stopped=_why_stopped(config, state),
        figures=trainer.figures(),
        best=best,
        weights_step=weights_step,
    )
    plain = {k: str(v) if isinstance(v, Path) else v for k, v in asdict(result).items()}
    if trainer.is_world_process_zero():
        write_json(run / RESULT_FILE, {**plain, "tokens_per_s": round(result.tokens_per_s, 1)})
    return result


def _why_stopped(config: RunSettings, state: Any) -> str:
    if state.global_step >= state.max_steps:
        return "finished"
    return out_of_patience(config.evaluation, state.log_history) or "time limit"


def _take_best(trainer: BoundedTrainer, run: Path, step: int) -> int:
    """Give the model the weights of the best evaluation; the step whose weights it has then."""
    now = int(trainer.state.global_step)
    checkpoint = run / f"{PREFIX}{step}"
    if step == now or not checkpoint.is_dir():  # someone may have deleted it
        return now
    trainer.state.best_model_checkpoint = str(checkpoint)
    trainer._load_best_model()
    return step


def _save_weights(
    trainer: BoundedTrainer,
    state: dict[str, Any],
    tokenizer: PreTrainedTokenizerBase,
    base: BaseModel,
    run: RunSettings,
) -> None:
    """Save adapter or model in bf16, with the tokenizer and a note on what it belongs to."""
    from training.trainer import causal_model

    model = trainer.accelerator.unwrap_model(trainer.model)
    config = causal_model(model).config
    info = adapter_note(base, config, _method_taught(run))
    with atomic_dir(run.weights) as directory:
        if hasattr(model, "peft_config"):
            # "auto" would ask the hub whether the vocabulary grew; it never does here.
            model.save_pretrained(directory, state_dict=in_bf16(state), save_embedding_layers=False)
            (directory / "README.md").unlink(missing_ok=True)
            # A path of this machine means nothing elsewhere.
            settings = read_json(directory / "adapter_config.json")
            settings["base_model_name_or_path"] = info["hub_id"] or base.name
            write_json(directory / "adapter_config.json", settings)
        else:
            save_model_bf16(model, directory, state)
        tokenizer.save_pretrained(directory)
        write_json(directory / ADAPTER_INFO, info)


def _method_taught(config: RunSettings) -> str | None:
    """The prompting method of a run's dialogues, or else of the adapter that it starts from."""
    if isinstance(config, TrainConfig):
        with suppress(HaggleError):  # dialogues of another program say nothing
            return str(next(iter_rows(config.dataset, columns=("method",)))["method"])
    return taught_method(config.start_from) if config.start_from else None
