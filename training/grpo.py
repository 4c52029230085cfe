"""Reinforcement learning with verifiable rewards: a merchant drawn against its own other answers.

    haggle train --config configs/train/smollm2_135m_grpo.yaml

The scripted players' dialogues are the environment: each turn of theirs is a prompt, a group of
answers to it is drawn, and code says what each is worth (`training.rewards`). What earns more than
its group's mean becomes likelier (GRPO, Shao et al. 2024). Starts from a trained adapter, or from
the bare base model. What a run directory holds and how a run is resumed stands in `training.run`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from haggle.core.errors import HaggleError
from haggle.weights.models import BaseModel
from training.config import GrpoConfig, grpo_arguments
from training.loading import check_start, lora_config, naming_lora_layers, starting_model
from training.rewards import reward_functions
from training.run import METRICS_FILE, TrainResult, carry_out, start
from training.turn_data import TurnData, read_turns, to_turn_columns, tokenize_turns

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from training.group_trainer import GroupTrainer
    from training.trainer import Clock


def train(
    config: GrpoConfig, resume: bool = True, echo: Callable[[str], None] = print
) -> TrainResult:
    """Train as `config` says and save the adapter (bf16), or all weights.

    Resumes and refuses as `training.sft.train` does. Raises HaggleError as well when the adapter to
    start from does not belong to the base, and when no turn fits the lengths.
    """
    arguments = grpo_arguments(config)
    base, tokenizer = start(config, arguments, echo)
    facts: dict[str, Any] = {}
    if config.start_from is not None:
        facts["adapter_sha256"] = check_start(config.start_from, base)
        echo(f"Adapter: {config.start_from}")
    data = tokenize_turns(
        read_turns(config.dataset, config.turns, config.seed),
        tokenizer,
        max_length=config.max_length,
        max_completion_length=arguments.max_completion_length,
    )
    echo(f"Data: {data.describe()}")
    check_batch(data, arguments)

    def build(clock: Clock) -> GroupTrainer:
        return build_trainer(config, base, tokenizer, data, clock, arguments)

    facts |= data.facts()
    return carry_out(config, base, tokenizer, facts, arguments, build, resume, echo)


def check_batch(data: TurnData, arguments: Any) -> None:
    """Raise HaggleError when there are fewer turns than answers are drawn to at once."""
    prompts = arguments.generation_batch_size // arguments.num_generations
    if len(data.turns) < prompts:
        raise HaggleError(
            f"{len(data.turns)} turns are fewer than the {prompts} of one batch",
            hint="lower trainer.gradient_accumulation_steps or per_device_train_batch_size, or "
            "take more data",
        )


def build_trainer(
    config: GrpoConfig,
    base: BaseModel,
    tokenizer: PreTrainedTokenizerBase,
    data: TurnData,
    clock: Clock,
    arguments: Any = None,
) -> GroupTrainer:
    """Load the model and set up the trainer; nothing runs yet."""
    import datasets

    from training.group_trainer import GroupTrainer
    from training.trainer import RunLog

    arguments = arguments or grpo_arguments(config)
    new_adapter = config.start_from is None and not config.full_finetuning
    with naming_lora_layers():
        return GroupTrainer(
            clock=clock,
            lengths=[len(turn.prompt) for turn in data.turns],
            model=starting_model(config, base, arguments),
            reward_funcs=reward_functions(),
            args=arguments,
            train_dataset=datasets.Dataset.from_dict(to_turn_columns(data.turns)),
            processing_class=tokenizer,
            peft_config=lora_config(config) if new_adapter else None,
            callbacks=[RunLog(config.output_dir / METRICS_FILE, clock)],
        )
