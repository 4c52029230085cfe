"""Direct preference optimisation of a merchant on pairs of a right and a wrong answer.

    haggle preferences --config configs/data/preferences.yaml --out runs/data/preferences
    haggle train --config configs/train/smollm2_135m_dpo.yaml

Starts from a trained adapter (which stays the reference) or from the bare base model. What a run
directory holds and how a run is resumed stands in `training.run`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from haggle.weights.models import BaseModel
from training.config import DpoConfig, dpo_arguments
from training.loading import check_start, lora_config, naming_lora_layers, starting_model
from training.pairs import PairData, read_pairs, to_pair_columns, tokenize_pairs
from training.run import METRICS_FILE, TrainResult, carry_out, start

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from training.pair_trainer import PairTrainer
    from training.trainer import Clock


def train(
    config: DpoConfig, resume: bool = True, echo: Callable[[str], None] = print
) -> TrainResult:
    """Train as `config` says and save the adapter (bf16), or all weights.

    Resumes and refuses as `training.sft.train` does. Raises HaggleError as well when the adapter to
    start from does not belong to the base.
    """
    arguments = dpo_arguments(config)
    base, tokenizer = start(config, arguments, echo)
    facts: dict[str, Any] = {}
    if config.start_from is not None:
        facts["adapter_sha256"] = check_start(config.start_from, base)
        echo(f"Adapter: {config.start_from}")
    data = tokenize_pairs(read_pairs(config.dataset), tokenizer, max_length=config.max_length)
    echo(f"Data: {data.describe()}")

    def build(clock: Clock) -> PairTrainer:
        return build_trainer(config, base, tokenizer, data, clock, arguments)

    facts |= data.facts()
    return carry_out(config, base, tokenizer, facts, arguments, build, resume, echo)


def build_trainer(
    config: DpoConfig,
    base: BaseModel,
    tokenizer: PreTrainedTokenizerBase,
    data: PairData,
    clock: Clock,
    arguments: Any = None,
) -> PairTrainer:
    """Load the model and set up the trainer; nothing runs yet."""
    import datasets

    from training.pair_trainer import PairTrainer
    from training.trainer import RunLog

    arguments = arguments or dpo_arguments(config)
    new_adapter = config.start_from is None and not config.full_finetuning
    with naming_lora_layers():
        return PairTrainer(
            clock=clock,
            model=starting_model(config, base, arguments),
            args=arguments,
            train_dataset=datasets.Dataset.from_dict(to_pair_columns(data.pairs)),
            processing_class=tokenizer,
            peft_config=lora_config(config) if new_adapter else None,
            callbacks=[RunLog(config.output_dir / METRICS_FILE, clock)],
        )
