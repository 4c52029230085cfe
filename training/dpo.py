"""Direct preference optimisation of a merchant on pairs of a right and a wrong answer.

    haggle preferences --config configs/data/preferences.yaml --out runs/data/preferences
    haggle train --config configs/train/smollm2_135m_dpo.yaml

Starts from a trained adapter (which stays the reference) or from the bare base model.
`training.run` calls the functions here in their order; `training.methods` says what each is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from haggle.weights.models import BaseModel
from training.clock import Clock
from training.config import DpoConfig
from training.data import Tokenized
from training.loading import naming_lora_layers, starting_parts, trainer_parts
from training.pairs import Pair, TextPair, read_pairs, to_pair_columns, tokenize_pairs
from training.templates import Messages

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from training.pair_trainer import PairTrainer


def read(config: DpoConfig, limit: int | None = None) -> list[TextPair]:
    """The pairs of the train split."""
    return read_pairs(config.dataset, limit)


def rows_in(dialogues: list[Messages]) -> list[TextPair]:
    """Each dialogue's first answer against its second, which comes too early there."""
    pairs = []
    for messages in dialogues:
        first, second = [i for i, m in enumerate(messages) if m["role"] == "assistant"][:2]
        chosen, early = messages[first]["content"], messages[second]["content"]
        pairs.append(TextPair(messages[:first], chosen, early))
    return pairs


def tokens(
    config: DpoConfig, rows: list[TextPair], tokenizer: PreTrainedTokenizerBase
) -> Tokenized[Pair]:
    """The pairs in tokens."""
    return tokenize_pairs(rows, tokenizer, max_length=config.max_length)


def largest_batch(data: Tokenized[Pair], arguments: Any) -> tuple[int, int]:
    """Rows and tokens a row of the largest batch that goes through the model. On a CPU both answers
    share a row."""
    size = arguments.per_device_train_batch_size
    if arguments.use_cpu:
        return size, max(pair.tokens for pair in data.rows)
    return 2 * size, max(pair.length for pair in data.rows)


def build_trainer(
    config: DpoConfig,
    base: BaseModel,
    tokenizer: PreTrainedTokenizerBase,
    data: Tokenized[Pair],
    clock: Clock,
    arguments: Any = None,
) -> PairTrainer:
    """Load the model and set up the trainer; nothing runs yet."""
    import datasets

    from training.pair_trainer import PairTrainer

    parts = trainer_parts(config, tokenizer, clock, arguments)
    with naming_lora_layers():
        return PairTrainer(
            train_dataset=datasets.Dataset.from_dict(to_pair_columns(data.rows)),
            **starting_parts(config, base, parts["args"]),
            **parts,
        )
