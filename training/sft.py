"""Supervised fine-tuning of a base model on merchant dialogues.

Run it with `haggle train --config configs/train/smollm2_135m.yaml`. What a run
directory holds and how a run is resumed stands in `training.run`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from haggle.weights.models import BaseModel
from training.config import TrainConfig, sft_arguments
from training.data import Collator, TokenizedData, read_dialogues, to_columns, tokenize
from training.loading import load_model, lora_config, naming_lora_layers
from training.run import METRICS_FILE, TrainResult, carry_out, start
from training.weights import load_adapter

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from training.trainer import Clock, DialogueTrainer


def train(
    config: TrainConfig, resume: bool = True, echo: Callable[[str], None] = print
) -> TrainResult:
    """Fine-tune as `config` says and save the adapter (bf16), or all weights.

    With `resume` a run broken off in the same directory goes on from its last checkpoint, and a
    finished one is returned as it is; without, it starts afresh. Raises HaggleError when the
    directory holds a run with other settings, when data or base are unusable, and when the loss is
    no longer a number (the last good checkpoint is kept).
    """
    arguments = sft_arguments(config)
    base, tokenizer = start(config, arguments, echo)
    data = tokenize(
        read_dialogues(config.dataset),
        tokenizer,
        max_length=config.max_length,
        overlong=config.overlong,
        spoken_weight=config.spoken_weight,
    )
    echo(f"Data: {data.describe()}")

    def build(clock: Clock) -> DialogueTrainer:
        return build_trainer(config, base, tokenizer, data, clock, arguments)

    return carry_out(config, base, tokenizer, data.facts(), arguments, build, resume, echo)


def build_trainer(
    config: TrainConfig,
    base: BaseModel,
    tokenizer: PreTrainedTokenizerBase,
    data: TokenizedData,
    clock: Clock,
    arguments: Any = None,
) -> DialogueTrainer:
    """Load the model and set up the trainer; nothing runs yet."""
    import datasets

    from training.trainer import DialogueTrainer, RunLog

    arguments = arguments or sft_arguments(config)
    with naming_lora_layers():
        trainer = DialogueTrainer(
            clock=clock,
            model=load_model(config, base, arguments),
            args=arguments,
            train_dataset=datasets.Dataset.from_dict(to_columns(data.examples)),
            processing_class=tokenizer,
            data_collator=Collator(tokenizer.pad_token_id),
            peft_config=None if config.full_finetuning else lora_config(config),
            callbacks=[RunLog(config.output_dir / METRICS_FILE, clock)],
        )
        if config.start_from is not None:
            load_adapter(trainer.model, config.start_from)
        return trainer
