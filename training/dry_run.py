"""Go once through all that a recipe does: model, template, data, one step, a checkpoint, reload.

Run it with `haggle train --config configs/train/smollm2_135m.yaml --dry-run`. Where the base model
is not on this machine, or with --tiny, tiny random weights of its architecture stand in for it;
where the data set is absent, four dialogues that come with the package. Nothing is fetched, and
nothing is left behind.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.dataset import dataset_files
from haggle.weights.chat_template import tokenizer_family
from haggle.weights.models import BaseModel, resolve_base
from training.architectures import known_shape, make_tiny_base, read_shape
from training.arguments import trainer_arguments
from training.checkpoints import last_checkpoint
from training.clock import Clock
from training.config import AnyConfig
from training.data import IGNORED, Tokenized, read_dialogues
from training.estimate import estimate
from training.loading import load_model, load_tokenizer
from training.memory import fitted
from training.methods import METHODS
from training.quantization import check_quantization
from training.templates import Messages

if TYPE_CHECKING:
    import torch

    from training.trainer import BoundedTrainer

DIALOGUES = 4  # of a data set: enough for a step
SAMPLE = "sample_dialogues.jsonl"
TOLERANCE = 0.05  # of a log-probability; the same sums in another order, in bf16
REPORT = "this architecture is not saved or loaded as it was trained; please report it"
# Settings that must not follow the recipe in a run of one step.
ONE_STEP = {
    "max_steps": 1,
    "num_train_epochs": 1,
    "gradient_accumulation_steps": 1,
    "warmup_steps": 0,
    "logging_steps": 1,
    "save_strategy": "steps",
    "save_steps": 1,
    "report_to": "none",
    "disable_tqdm": True,
}
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a dry run found. `weights` is real or tiny; parameters are those of the model stepped.

    `reload_difference` is the largest between the log-probabilities of an answer before and after
    the checkpoint was read back; `estimate` is of the full recipe, not of the dry run.
    """

    method: str
    base: str
    weights: str
    architecture: str
    template: str
    data: str
    parameters: int
    trained: int
    supervised_tokens: int
    loss: float
    reload_difference: float
    seconds: float
    estimate: str


def dry_run(config: AnyConfig, *, tiny: bool = False, echo: Say = print) -> DryRun:
    """Take one step of a recipe and read its checkpoint back.

    Raises HaggleError for whatever would stop the real run: an unusable base, template or data set,
    a setting that TRL refuses, a checkpoint that does not answer as the trained model did.
    """
    started = time.monotonic()
    there = _data_set(config, echo)
    with tempfile.TemporaryDirectory(prefix="haggle-dry-run-") as folder:
        work = Path(folder)
        base, shape, real = _base(config, tiny, work / "base", echo)
        step = _one_step(config, work / "run", real, echo)
        tokenizer = load_tokenizer(base)
        family = tokenizer_family(tokenizer)
        template = family.name if family else "its own"
        method = METHODS[config.method]
        rows = method.read(step, DIALOGUES) if there else method.rows_in(sample())
        data = method.tokens(step, rows, tokenizer)
        echo(f"Template: {template}; data: {data.describe()}")
        batch = partial(method.largest_batch, data)
        arguments = fitted(step, trainer_arguments(step), base.path, batch, echo)
        trainer = method.build_trainer(step, base, tokenizer, data, Clock(), arguments)
        sizes = [(p.numel(), p.requires_grad) for p in trainer.model.parameters()]
        parameters, trained = sum(n for n, _ in sizes), sum(n for n, learns in sizes if learns)
        echo(f"Model: {parameters:,} parameters, {trained:,} of them trained")
        trainer.train()
        loss = next(line["loss"] for line in trainer.state.log_history if "loss" in line)
        checkpoint = last_checkpoint(step.output_dir)
        if checkpoint is None:
            raise HaggleError("no whole checkpoint was written", where=str(step.output_dir))
        difference = _reload_difference(step, base, data, trainer, checkpoint)
        echo(f"One step: loss {float(loss):.3f}; checkpoint read back, difference {difference:.1g}")
    return DryRun(
        method=config.method,
        base=base.name if real else config.base,
        weights="real" if real else "tiny, random",
        architecture=str(shape["model_type"]),
        template=template,
        data=str(config.dataset) if there else "sample of the package",
        parameters=parameters,
        trained=trained,
        supervised_tokens=data.supervised,
        loss=float(loss),
        reload_difference=difference,
        seconds=round(time.monotonic() - started, 2),
        estimate=estimate(config, shape).describe(),
    )


def _one_step(config: AnyConfig, output_dir: Path, real: bool, echo: Say) -> AnyConfig:
    """The recipe cut down to one step, as far as this machine can run it."""
    changes: dict[str, Any] = {
        "output_dir": output_dir,
        "max_minutes": None,
        "trainer": {**config.trainer, **ONE_STEP},
    }
    try:
        check_quantization(config)
    except HaggleError as error:
        echo(f"Left out: {error.where} ({error.message})")
        changes["quantization"] = None
    if config.start_from is not None and not (real and config.start_from.is_dir()):
        why = "no such directory" if real else "it does not fit a tiny model"
        echo(f"Left out: start_from: {config.start_from} ({why})")
        changes["start_from"] = None
    return config.model_copy(update=changes)


def _data_set(config: AnyConfig, echo: Say) -> bool:
    """Whether the recipe's data set is there; else the sample that comes with the package is."""
    try:
        dataset_files(config.dataset)
    except HaggleError as error:
        if Path(config.dataset).exists():
            raise
        echo(f"Data set: {error.message} ({config.dataset}); the package's sample stands in")
        return False
    return True


def sample() -> list[Messages]:
    """The dialogues that come with the package, made by `haggle generate`."""
    return read_dialogues(Path(str(files("training").joinpath(SAMPLE))), DIALOGUES)


def _base(
    config: AnyConfig, tiny: bool, target: Path, echo: Say
) -> tuple[BaseModel, dict[str, Any], bool]:
    """The base model to step, the shape of the recipe's own, and whether they are the same."""
    found: BaseModel | None = None
    try:
        found = resolve_base(config.base, echo=echo, download=False)
    except HaggleError as error:
        if Path(config.base).is_dir():
            raise
        if not tiny:
            echo(f"Base: {error.message} on this machine; tiny random weights stand in for it")
    shape = read_shape(found.path) if found else known_shape(config.base)
    if found is not None and not tiny:
        echo(f"Base: {found.describe()}")
        return found, shape, True
    tokenizer = None
    if found is not None:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(found.path)
    texts = [message["content"] for messages in sample() for message in messages]
    path = make_tiny_base(target, shape, tokenizer, texts, seed=config.seed)
    return resolve_base(str(path), echo=echo), shape, False


def _reload_difference(
    config: AnyConfig,
    base: BaseModel,
    data: Tokenized[Any],
    trainer: BoundedTrainer,
    checkpoint: Path,
) -> float:
    """How far a model read back from a checkpoint is from the one that was trained.

    Raises HaggleError when a weight came back changed, or the answers do.
    """
    import torch
    from peft import PeftModel

    trained = trainer.accelerator.unwrap_model(trainer.model)
    source = replace(base, path=checkpoint) if config.full_finetuning else base
    again: Any = load_model(config, source, trainer.args)
    if not config.full_finetuning:
        again = PeftModel.from_pretrained(again, str(checkpoint))
    again = again.to(trainer.args.device)
    now = dict(again.named_parameters())
    for name, weight in trained.named_parameters():
        if weight.requires_grad and not torch.equal(now[name].to(weight.dtype), weight):
            raise HaggleError(
                f"weight {name} was read back with other values", where=str(checkpoint), hint=REPORT
            )
    before, after = _log_probs(trained, data), _log_probs(again, data)
    difference = float((before - after).abs().max())
    if not difference <= TOLERANCE:
        raise HaggleError(
            f"the checkpoint read back answers otherwise: log-probabilities differ by "
            f"{difference:.3g}",
            where=str(checkpoint),
            hint=REPORT,
        )
    return difference


def _log_probs(model: Any, data: Tokenized[Any]) -> torch.Tensor:
    """Log-probabilities of the right answers in the first row."""
    import torch

    from training.trainer import causal_model, supervised_log_probs

    ids, learnt = data.rows[0].answers()
    model.eval()
    device = next(model.parameters()).device
    inputs = torch.tensor([ids], device=device)
    labels = inputs.masked_fill(torch.tensor([learnt], device=device) == 0, IGNORED)
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
        return supervised_log_probs(causal_model(model), inputs, labels)[0].float()
