"""TRL's GRPOTrainer on turns, made quick on a CPU.

TRL runs a prompt once for each of its answers, in drawing them and in training on them, and trains
on groups whose answers all earned the same, where every advantage, and with it every gradient, is
0. On a CPU the answers to a prompt share it here (`training.group_rollout`), and such groups are
drawn, scored and logged, but not trained on. Rewards, advantages and losses are TRL's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from trl import GRPOTrainer
from trl.trainer.utils import split_tensor_dict

from training.attention import ARCHITECTURES
from training.data import BucketSampler
from training.group_rollout import answer_logits, pack_group, sample_groups
from training.trainer import BoundedTrainer, causal_model
from training.turn_data import end_of_turn


class GroupSampler:
    """Row numbers for GRPO: prompts of similar lengths together, each `group` times in a row.

    The rows of a batch come `repeats` times, once for each pass over its answers. As with
    `BucketSampler`, the order depends on seed and epoch alone; an odd batch is left out.
    """

    def __init__(
        self, lengths: list[int], prompts: int, group: int, repeats: int, seed: int
    ) -> None:
        self.rows = BucketSampler(lengths, prompts, seed)
        self.prompts, self.group, self.repeats = prompts, group, repeats

    def set_epoch(self, epoch: int) -> None:
        self.rows.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.rows) // self.prompts * self.prompts * self.group * self.repeats

    def __iter__(self) -> Iterator[int]:
        order = list(self.rows)
        for first in range(0, len(order) - self.prompts + 1, self.prompts):
            for _ in range(self.repeats):
                for row in order[first : first + self.prompts]:
                    yield from [row] * self.group


class GroupTrainer(BoundedTrainer, GRPOTrainer):
    """GRPOTrainer over `training.turn_data` columns: bounded time, prompts shared by a group."""

    _buffered_inputs: Any

    def __init__(self, *args: Any, lengths: list[int], **kwargs: Any) -> None:
        self.lengths = lengths  # of the prompts, in tokens
        self.learning: torch.Tensor | None = None  # which rows of the batch have a gradient
        super().__init__(*args, **kwargs)
        end = end_of_turn(self.processing_class)
        if end not in self.eos_token_ids:
            self.eos_token_ids.append(end)
            self.generation_config.eos_token_id = self.eos_token_ids
        kind = causal_model(self.model).config.model_type
        alone = self.accelerator.num_processes == 1
        self.shared = self.args.use_cpu and alone and kind in ARCHITECTURES and not self.use_vllm
        if hasattr(self.model, "peft_config"):
            self.save_own_adapter_only()

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        return GroupSampler(
            self.lengths,
            self.args.generation_batch_size // self.num_generations,
            self.num_generations,
            self.num_iterations * self.args.steps_per_generation,
            self.args.seed,
        )

    def _tokenize_prompts(self, prompts: list[str]) -> Any:
        """Prompts are serving's text; TRL's would put a family's first token before it twice."""
        ids = self.processing_class(text=prompts, add_special_tokens=False)["input_ids"]
        return ids, None, {}

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        """As TRL's, but the answers to a prompt stay together; TRL shuffles them."""
        if not (self.shared and self.model.training):
            return super()._prepare_inputs(generation_batch)
        parts = self.args.steps_per_generation
        if self._step % (parts * self.num_iterations) == 0 or self._buffered_inputs is None:
            batch = self._generate_and_score_completions(generation_batch)
            self._buffered_inputs = split_tensor_dict(batch, parts)
        return self._buffered_inputs[self._step % parts]

    def _generate_single_turn(
        self, prompt_ids: list[list[int]], images: Any, fields: Any, number: int, *rest: Any
    ) -> Any:
        prompts = prompt_ids[::number]
        if self.shared:
            answers = self._sample(prompts, number)
        else:
            with self.accelerator.autocast():
                answers, _ = super()._generate_single_turn(
                    prompt_ids, images, fields, number, *rest
                )
        tokens = sum(map(len, prompts)) + sum(map(len, answers))
        self.clock.tokens += tokens * self.accelerator.num_processes
        return answers, None

    def _sample(self, prompts: list[list[int]], number: int) -> list[list[int]]:
        warpers = _warpers(self.args)

        def draw(logits: torch.Tensor) -> torch.Tensor:
            probs = warpers(None, logits).softmax(-1)
            return torch.multinomial(probs, 1)[:, 0]

        training = self.model.training
        self.model.eval()
        try:
            with self.accelerator.autocast():
                return sample_groups(
                    causal_model(self.accelerator.unwrap_model(self.model)),
                    prompts,
                    number,
                    longest=self.max_completion_length,
                    ends=self.eos_token_ids,
                    draw=draw,
                )
        finally:
            self.model.train(training)

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Log-probabilities and entropies (rows, logits_to_keep), 0 on padding and idle rows.

        Prompts are padded on the left, answers on the right, as TRL lays them out.
        """
        if not self.shared:
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, batch_size, compute_entropy,
                compute_aux_loss, **kwargs,
            )  # fmt: skip
        plain = causal_model(self.accelerator.unwrap_model(model))
        mask = attention_mask[:, -logits_to_keep:].bool()
        if self.learning is not None:
            mask = mask & self.learning[:, None]
        picked, entropies = [input_ids.new_zeros(0, dtype=torch.float32)], []
        for prompt, answers in _groups(input_ids, attention_mask, mask):
            with self.accelerator.autocast():
                logits = answer_logits(plain, pack_group(prompt, answers)) / self.temperature
            log_probs = logits.log_softmax(-1)
            targets = torch.tensor([token for answer in answers for token in answer])
            picked.append(log_probs.gather(1, targets[:, None])[:, 0])
            with torch.no_grad() if not self._entropy_bonus_enabled else torch.enable_grad():
                entropies.append(-(log_probs.exp() * log_probs).sum(-1))
        zeros = torch.zeros(mask.shape, requires_grad=torch.is_grad_enabled())
        placed = zeros.masked_scatter(mask, torch.cat(picked))
        if not compute_entropy:
            return placed, None, None
        spread = torch.cat([picked[0], *entropies])
        if self.learning is not None and len(spread):
            self._metrics["train"]["answers/entropy"].append(float(spread.mean()))
        return placed, zeros.masked_scatter(mask, spread), None

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | None = None,
    ) -> Any:
        # Nothing but the advantages moves the weights, and each answer's ratio is 1.
        bare = self.beta == 0.0 and not self._entropy_bonus_enabled
        if self.shared and bare and "old_per_token_logps" not in inputs:
            self.learning = inputs["advantages"] != 0
        try:
            loss = super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        finally:
            self.learning = None
        if self.model.training:
            self.check_loss(loss)
        return loss


def _groups(
    input_ids: torch.Tensor, attention_mask: torch.Tensor, mask: torch.Tensor
) -> Iterator[tuple[list[int], list[list[int]]]]:
    """Each prompt with those answers to it that are in `mask` (rows, tokens of an answer)."""
    start = input_ids.shape[1] - mask.shape[1]
    rows = [
        (
            ids[:start][seen[:start].bool()].tolist(),
            ids[start:][own].tolist(),
        )
        for ids, seen, own in zip(input_ids, attention_mask, mask, strict=True)
        if own.any()
    ]
    for prompt, group in groupby(rows, key=lambda row: row[0]):
        yield prompt, [answer for _, answer in group]


def _warpers(args: Any) -> LogitsProcessorList:
    """What a GRPOConfig asks for between the logits and the draw."""
    found = LogitsProcessorList()
    if args.temperature != 1.0:
        found.append(TemperatureLogitsWarper(float(args.temperature)))
    if args.top_k:
        found.append(TopKLogitsWarper(args.top_k))
    if args.top_p < 1.0:
        found.append(TopPLogitsWarper(args.top_p))
    if args.min_p:
        found.append(MinPLogitsWarper(args.min_p))
    return found
