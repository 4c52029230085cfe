"""Go once through all that a recipe does: model, template, data, one step, a checkpoint, reload.

Run it with `haggle train --config configs/train/smollm2_135m.yaml --dry-run`. Where the base model
is not on this machine, or with --tiny, tiny random weights of its architecture stand in for it; where
the data set is absent, four dialogues that come with the package. Nothing is fetched, and nothing is
left behind.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haggle.dataset import dataset_files, located_rows
from haggle.errors import HaggleError
from haggle.models import BaseModel, resolve_base
from training.architectures import known_shape, make_tiny_base, read_shape
from training.config import TrainConfig, sft_arguments
from training.data import Collator, Messages, TokenizedData, checked_messages, to_columns, tokenize
from training.estimate import estimate
from training.quantization import check_quantization, loading_arguments
from training.sft import build_trainer, last_checkpoint, load_tokenizer
from training.templates import tokenizer_family

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    from training.trainer import DialogueTrainer

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


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a dry run found. `weights` is real or tiny; parameters are those of the model stepped.

    `reload_difference` is the largest between the log-probabilities of a dialogue before and after
    the checkpoint was read back; `estimate` is of the full recipe, not of the dry run.
    """

    base: str
    weights: str
    architecture: str
    template: str
    data: str
    parameters: int
    trained: int
    tokens: int
    supervised: int
    loss: float
    reload_difference: float
    seconds: float
    estimate: str


def dry_run(
    config: TrainConfig, *, tiny: bool = False, echo: Callable[[str], None] = print
) -> DryRun:
    """Take one step of a recipe and read its checkpoint back.

    Raises HaggleError for whatever would stop the real run: an unusable base, template or data set,
    a setting that TRL refuses, a checkpoint that does not answer as the trained model did.
    """
    from training.trainer import Clock

    started = time.monotonic()
    config = _without_gpu_settings(config, echo)
    dialogues, data_from = _dialogues(config, echo)
    with tempfile.TemporaryDirectory(prefix="haggle-dry-run-") as folder:
        work = Path(folder)
        base, shape, real = _base(config, tiny, dialogues, work / "base", echo)
        step = config.model_copy(
            update={
                "output_dir": work / "run",
                "max_minutes": None,
                "trainer": {**config.trainer, **ONE_STEP},
            }
        )
        tokenizer = load_tokenizer(base)
        data = tokenize(
            dialogues,
            tokenizer,
            max_length=config.max_length,
            overlong=config.overlong,
            spoken_weight=config.spoken_weight,
        )
        family = tokenizer_family(tokenizer)
        echo(f"Template: {family.name if family else 'its own'}; data: {data.describe()}")
        clock = Clock()
        trainer = build_trainer(step, base, tokenizer, data, clock, sft_arguments(step))
        parameters, trained = _sizes(trainer)
        echo(f"Model: {parameters:,} parameters, {trained:,} of them trained")
        trainer.train()
        loss = next(line["loss"] for line in trainer.state.log_history if "loss" in line)
        checkpoint = last_checkpoint(step.output_dir)
        if checkpoint is None:
            raise HaggleError("no whole checkpoint was written", where=str(step.output_dir))
        difference = _reload_difference(step, base, tokenizer, data, trainer, checkpoint)
        echo(f"One step: loss {loss:.3f}; checkpoint read back, difference {difference:.1g}")
        told = estimate(config, shape)
    return DryRun(
        base=base.name if real else config.base,
        weights="real" if real else "tiny, random",
        architecture=str(shape["model_type"]),
        template=family.name if family else "its own",
        data=data_from,
        parameters=parameters,
        trained=trained,
        tokens=clock.tokens,
        supervised=data.supervised,
        loss=float(loss),
        reload_difference=difference,
        seconds=round(time.monotonic() - started, 2),
        estimate=told.describe(),
    )


def _without_gpu_settings(config: TrainConfig, echo: Callable[[str], None]) -> TrainConfig:
    """The recipe as far as this machine can run it."""
    try:
        check_quantization(config)
    except HaggleError as error:
        echo(f"Left out: {error.where} ({error.message})")
        return config.model_copy(update={"quantization": None})
    return config


def _dialogues(config: TrainConfig, echo: Callable[[str], None]) -> tuple[list[Messages], str]:
    """The first dialogues of the recipe's data set, or those that come with the package."""
    try:
        dataset_files(config.dataset)
        path, origin = Path(config.dataset), str(config.dataset)
    except HaggleError as error:
        if Path(config.dataset).exists():
            raise
        echo(f"Data set: {error.message} ({config.dataset}); using the package's sample")
        path, origin = Path(str(files("training").joinpath(SAMPLE))), "sample of the package"
    found = []
    for where, row in located_rows(path, columns=["messages"]):
        found.append(checked_messages(row, where))
        if len(found) == DIALOGUES:
            break
    if not found:
        raise HaggleError("dataset is empty", where=origin, hint="generate more dialogues")
    return found, origin


def _base(
    config: TrainConfig,
    tiny: bool,
    dialogues: list[Messages],
    target: Path,
    echo: Callable[[str], None],
) -> tuple[BaseModel, dict[str, Any], bool]:
    """The base model to step, the shape of the recipe's own, and whether they are the same."""
    found: BaseModel | None = None
    try:
        found = resolve_base(config.base, echo=echo, download=False)
    except HaggleError as error:
        if Path(config.base).is_dir():
            raise
        if not tiny:
            echo(f"Base: {error.message}; tiny random weights stand in for it")
    shape = read_shape(found.path) if found else known_shape(config.base)
    if found is not None and not tiny:
        echo(f"Base: {found.describe()}")
        return found, shape, True
    tokenizer = None
    if found is not None:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(found.path)
    texts = [message["content"] for messages in dialogues for message in messages]
    path = make_tiny_base(target, shape, tokenizer, texts, seed=config.seed)
    return resolve_base(str(path), echo=echo), shape, False


def _sizes(trainer: DialogueTrainer) -> tuple[int, int]:
    parameters = list(trainer.model.parameters())
    trained = sum(p.numel() for p in parameters if p.requires_grad)
    return sum(p.numel() for p in parameters), trained


def _reload_difference(
    config: TrainConfig,
    base: BaseModel,
    tokenizer: PreTrainedTokenizerBase,
    data: TokenizedData,
    trainer: DialogueTrainer,
    checkpoint: Path,
) -> float:
    """How far a model read back from a checkpoint is from the one that was trained.

    Raises HaggleError when a weight came back changed, or the answers do.
    """
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from training.trainer import causal_model

    plain = trainer.accelerator.unwrap_model(trainer.model)
    causal = causal_model(plain)
    source = checkpoint if config.full_finetuning else base.path
    again = AutoModelForCausalLM.from_pretrained(
        source,
        dtype=causal.get_input_embeddings().weight.dtype,
        attn_implementation=causal.config._attn_implementation,
        **loading_arguments(config, trainer.args.bf16),
    )
    if not config.full_finetuning:
        again = PeftModel.from_pretrained(again, str(checkpoint))
    again = again.to(trainer.args.device)
    now = dict(again.named_parameters())
    for name, weight in plain.named_parameters():
        if weight.requires_grad and not torch.equal(now[name].to(weight.dtype), weight):
            raise HaggleError(
                f"weight {name} was read back with other values", where=str(checkpoint), hint=REPORT
            )
    columns = to_columns(data.examples[:1])
    batch = Collator(tokenizer.pad_token_id)([{k: v[0] for k, v in columns.items()}])
    before, after = _answers(plain, batch), _answers(again, batch)
    difference = float((before - after).abs().max())
    if not difference <= TOLERANCE:
        raise HaggleError(
            f"the checkpoint read back answers otherwise: log-probabilities differ by "
            f"{difference:.3g}",
            where=str(checkpoint),
            hint=REPORT,
        )
    return difference


def _answers(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Log-probabilities of a dialogue's answers."""
    import torch

    from training.trainer import causal_model, supervised_log_probs

    model.eval()
    device = next(model.parameters()).device
    ids, labels = batch["input_ids"].to(device), batch["labels"].to(device)
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
        return supervised_log_probs(causal_model(model), ids, labels)[0].float()
