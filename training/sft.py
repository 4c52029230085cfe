"""Supervised fine-tuning of a base model on merchant dialogues.

    haggle train --config configs/train/smollm2_135m.yaml

`training.run` calls the functions here in their order; `training.methods` says what each is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from haggle.weights.adapters import load_adapter
from haggle.weights.models import BaseModel
from training.clock import Clock
from training.config import TrainConfig
from training.data import Collator, Example, Tokenized, read_dialogues, to_columns, tokenize
from training.loading import load_model, lora_config, naming_lora_layers, trainer_parts
from training.templates import Messages

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from training.trainer import DialogueTrainer


def read(config: TrainConfig, limit: int | None = None) -> list[Messages]:
    """The dialogues of the train split."""
    return read_dialogues(config.dataset, limit)


def rows_in(dialogues: list[Messages]) -> list[Messages]:
    """Dialogues are what this method learns from."""
    return dialogues


def tokens(
    config: TrainConfig, rows: list[Messages], tokenizer: PreTrainedTokenizerBase
) -> Tokenized[Example]:
    """The dialogues in tokens, each with its weight in the loss."""
    return tokenize(
        rows,
        tokenizer,
        max_length=config.max_length,
        overlong=config.overlong,
        spoken_weight=config.spoken_weight,
    )


def largest_batch(data: Tokenized[Example], arguments: Any) -> tuple[int, int]:
    """Rows and tokens a row of the largest batch that goes through the model."""
    return arguments.per_device_train_batch_size, max(len(e.ids) for e in data.rows)


def build_trainer(
    config: TrainConfig,
    base: BaseModel,
    tokenizer: PreTrainedTokenizerBase,
    data: Tokenized[Example],
    clock: Clock,
    arguments: Any = None,
) -> DialogueTrainer:
    """Load the model and set up the trainer; nothing runs yet."""
    import datasets

    from training.trainer import DialogueTrainer

    parts = trainer_parts(config, tokenizer, clock, arguments)
    with naming_lora_layers():
        trainer = DialogueTrainer(
            model=load_model(config, base, parts["args"]),
            train_dataset=datasets.Dataset.from_dict(to_columns(data.rows)),
            data_collator=Collator(tokenizer.pad_token_id),
            peft_config=None if config.full_finetuning else lora_config(config.lora),
            **parts,
        )
        if config.start_from is not None:
            load_adapter(trainer.model, config.start_from)
        return trainer
