"""Reinforcement learning with verifiable rewards: a merchant drawn against its own other answers.

    haggle train --config configs/train/smollm2_135m_grpo.yaml

The scripted players' dialogues are the environment: each turn of theirs is a prompt, a group of
answers to it is drawn, and code says what each is worth (`training.rewards`). What earns more than
its group's mean becomes likelier (GRPO, Shao et al. 2024). Starts from a trained adapter, or from
the bare base model. `training.run` calls the functions here in their order; `training.methods` says
what each is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.weights.models import BaseModel
from training.clock import Clock
from training.config import GrpoConfig
from training.data import Tokenized, read_dialogues
from training.loading import naming_lora_layers, starting_parts, trainer_parts
from training.rewards import reward_functions
from training.templates import Messages
from training.turn_data import (
    TextTurn,
    Turn,
    read_turns,
    to_turn_columns,
    tokenize_turns,
    turns_in,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from training.group_trainer import GroupTrainer


def read(config: GrpoConfig, limit: int | None = None) -> list[TextTurn]:
    """The turns of the train split, as many as the config draws, or those of the first `limit`
    dialogues."""
    if limit is not None:
        return rows_in(read_dialogues(config.dataset, limit))
    return read_turns(config.dataset, config.turns, config.seed)


def rows_in(dialogues: list[Messages]) -> list[TextTurn]:
    """Every turn of the dialogues."""
    return [turn for messages in dialogues for turn in turns_in(messages)]


def tokens(
    config: GrpoConfig, rows: list[TextTurn], tokenizer: PreTrainedTokenizerBase
) -> Tokenized[Turn]:
    """The turns in tokens. Raises HaggleError when no turn fits the lengths."""
    longest = config.settings["max_completion_length"]
    return tokenize_turns(
        rows, tokenizer, max_length=config.max_length, max_completion_length=longest
    )


def largest_batch(data: Tokenized[Turn], arguments: Any) -> tuple[int, int]:
    """Rows and tokens a row of the largest batch that goes through the model. On a CPU the answers
    to a prompt share a row.

    Raises HaggleError when there are fewer turns than answers are drawn to at once.
    """
    prompts = arguments.generation_batch_size // arguments.num_generations
    if len(data.rows) < prompts:
        raise HaggleError(
            f"{len(data.rows)} turns are fewer than the {prompts} of one batch",
            hint="lower trainer.gradient_accumulation_steps or per_device_train_batch_size, or "
            "take more data",
        )
    size, answer = arguments.per_device_train_batch_size, arguments.max_completion_length
    beside = min(size, arguments.num_generations) if arguments.use_cpu else 1
    return -(-size // beside), max(len(t.prompt) for t in data.rows) + beside * answer


def build_trainer(
    config: GrpoConfig,
    base: BaseModel,
    tokenizer: PreTrainedTokenizerBase,
    data: Tokenized[Turn],
    clock: Clock,
    arguments: Any = None,
) -> GroupTrainer:
    """Load the model and set up the trainer; nothing runs yet."""
    import datasets

    from training.group_trainer import GroupTrainer

    parts = trainer_parts(config, tokenizer, clock, arguments)
    with naming_lora_layers():
        return GroupTrainer(
            lengths=[len(turn.prompt) for turn in data.rows],
            reward_funcs=reward_functions(),
            train_dataset=datasets.Dataset.from_dict(to_turn_columns(data.rows)),
            **starting_parts(config, base, parts["args"]),
            **parts,
        )
