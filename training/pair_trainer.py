"""TRL's DPOTrainer on ready token ids, made quick on a CPU.

TRL runs prompt and answer twice, once for each answer, and projects every position to the
vocabulary where there is no Triton. Prompts here are ten times as long as answers and the two
answers share theirs, so on a CPU a pair goes through the model as one row: prompt, right answer,
wrong answer, where the wrong one does not see the right one. Only what predicts an answer's token
is projected. The losses are TRL's own.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel
from trl import DPOTrainer
from trl.trainer.utils import FusedCausalLMOutput

from training.attention import ARCHITECTURES
from training.data import IGNORED
from training.trainer import BoundedTrainer, causal_model

REFERENCE = "ref"  # TRL's name for the frozen copy of the adapter that training starts from


@dataclass(frozen=True, slots=True)
class PackedPairs:
    """Pairs as rows of prompt, chosen and rejected answer.

    `input_ids` and `position_ids` are (pairs, width), `mask` is (pairs, 1, width, width) and true
    where a query may see a key. `predicting` are places in the flattened rows that predict the
    answers' tokens: all chosen answers, then all rejected ones, as DPOTrainer lays out a batch.
    """

    input_ids: torch.Tensor
    position_ids: torch.Tensor
    mask: torch.Tensor
    predicting: torch.Tensor


def pack(input_ids: torch.Tensor, labels: torch.Tensor) -> PackedPairs:
    """Lay the two halves of a DPO batch (2 x pairs, length), chosen and rejected, side by side.

    `labels` are -100 on prompts and padding (on the right); the two rows of a pair share a prompt.
    """
    supervised = labels != IGNORED
    starts = supervised.int().argmax(1).tolist()
    sizes = supervised.sum(1).tolist()
    number = len(starts) // 2
    width = max(starts[i] + sizes[i] + sizes[i + number] for i in range(number))
    ids = torch.zeros((number, width), dtype=torch.long)
    positions = torch.zeros((number, width), dtype=torch.long)
    mask = torch.ones((width, width), dtype=torch.bool).tril().repeat(number, 1, 1, 1)
    chosen_places: list[int] = []
    rejected_places: list[int] = []
    for row in range(number):
        prompt, chosen, rejected = starts[row], sizes[row], sizes[row + number]
        middle, end = prompt + chosen, prompt + chosen + rejected
        ids[row, :middle] = input_ids[row, :middle]
        ids[row, middle:end] = input_ids[row + number, prompt : prompt + rejected]
        positions[row, :middle] = torch.arange(middle)
        positions[row, middle:end] = torch.arange(prompt, prompt + rejected)
        mask[row, 0, middle:end, prompt:middle] = False
        first = row * width + prompt - 1  # the prompt's last token predicts either answer's first
        chosen_places += range(first, first + chosen)
        rejected_places += [first, *range(row * width + middle, row * width + end - 1)]
    return PackedPairs(ids, positions, mask, torch.tensor(chosen_places + rejected_places))


def add_answers_head(model: PreTrainedModel, packed: bool) -> None:
    """Let `model(..., fused_lm_head=True)` score answers alone, with what DPOTrainer asks for.

    Replaces the head that TRL has put there; see `trl.trainer.utils.add_fused_lm_head`. With
    `packed`, the batch goes through as `pack` lays it out.
    """
    usual = model.forward

    def forward(
        self: PreTrainedModel,
        *args: Any,
        fused_lm_head: bool = False,
        labels: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        if not fused_lm_head or labels is None:
            return usual(*args, fused_lm_head=fused_lm_head, labels=labels, **kwargs)
        if packed:
            pairs = pack(kwargs["input_ids"], labels)
            output = self.base_model(
                input_ids=pairs.input_ids,
                position_ids=pairs.position_ids,
                attention_mask=pairs.mask,
                use_cache=False,
            )
            hidden = output.last_hidden_state.flatten(0, 1)[pairs.predicting]
        else:
            hidden = self.base_model(*args, **kwargs).last_hidden_state[:, :-1]
            hidden = hidden[labels[:, 1:] != IGNORED]
        return _scored(self.get_output_embeddings()(hidden).float(), labels)

    model.forward = types.MethodType(forward, model)


def _scored(logits: torch.Tensor, labels: torch.Tensor) -> FusedCausalLMOutput:
    """What TRL's head gives, from the logits (n, vocabulary) that predict the supervised labels."""
    labels = labels[:, 1:]
    mask = labels != IGNORED
    targets = labels[mask]
    log_probs = logits.log_softmax(-1)
    picked = log_probs.gather(1, targets[:, None])[:, 0]
    with torch.no_grad():
        probs = log_probs.exp()
        figures = {
            "entropy": -(probs * log_probs).sum(-1),
            "log_sum_sq_probs": probs.square().sum(-1).log(),
            "mean_logits": logits.mean(-1),
            "is_top1": logits.argmax(-1) == targets,
        }

    def placed(values: torch.Tensor) -> torch.Tensor:
        return values.new_zeros(mask.shape).masked_scatter(mask, values)

    return FusedCausalLMOutput(
        loss=-picked.mean(),
        log_probs=placed(picked),
        label_mask=mask,
        **{name: placed(values) for name, values in figures.items()},
    )


class PairTrainer(BoundedTrainer, DPOTrainer):
    """DPOTrainer over `training.pairs` columns: batches of similar lengths, bounded time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.args.use_cpu:
            for model in (self.model, self.ref_model):
                if model is not None:
                    plain = causal_model(model)
                    add_answers_head(plain, packed=plain.config.model_type in ARCHITECTURES)
        if REFERENCE in getattr(self.model, "peft_config", {}):
            self.save_own_adapter_only()

    def _prepare_dataset(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """The ids are ready: TRL's would count the line break behind an answer to it."""
        return dataset

    def row_lengths(self, rows: Any) -> list[int]:
        """Tokens of each pair's prompt and answers."""
        columns = (rows["prompt_ids"], rows["chosen_ids"], rows["rejected_ids"])
        return [sum(map(len, parts)) for parts in zip(*columns, strict=True)]

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | None = None,
    ) -> Any:
        result = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if self.model.training:
            self.check_loss(result[0] if return_outputs else result)
            number = len(inputs["input_ids"]) // 2
            seen = inputs["attention_mask"][:number].sum()
            seen = seen + inputs["completion_mask"][number:].sum()
            self.clock.tokens += int(seen) * self.accelerator.num_processes
        return result
