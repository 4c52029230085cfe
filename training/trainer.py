"""TRL's SFTTrainer, with the loss computed only where there is something to learn.

TRL 1.16 projects every position to the vocabulary when it runs on a CPU (its compact path needs
Triton); with dialogues in which less than half of the tokens are answers that is most of the work
of the output layer, done for nothing.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import (
    PreTrainedModel,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_callback import ExportableState
from trl import SFTTrainer

from haggle.agreement import agreement
from haggle.core.errors import HaggleError
from haggle.grammar.json_text import to_json
from training.checkpoints import METRICS_FILE
from training.clock import Clock
from training.config import EvaluationSettings
from training.data import IGNORED, BucketSampler
from training.heldout import MEASURES, PREFIX, HeldOut, answer, out_of_patience, score
from training.rewards import REWARDS

# What other methods log beside the loss, and its name in metrics.jsonl. Of pairs: how far the right
# answers stand before the wrong ones (in units of 1 / beta), the share that do, and each by itself.
FIGURES = {
    "rewards/margins": "margin",
    "rewards/accuracies": "accuracy",
    "rewards/chosen": "reward_chosen",
    "rewards/rejected": "reward_rejected",
    "logps/chosen": "logp_chosen",
    "logps/rejected": "logp_rejected",
    # Of answers drawn (GRPO): the weighed sum of their rewards and each by itself, the share of
    # prompts whose answers all earned the same, tokens, and the share that never ended.
    "reward": "reward",
    "reward_std": "reward_std",
    **{f"rewards/{name}/mean": f"reward_{name}" for name in REWARDS},
    "frac_reward_zero_std": "no_spread",
    "completions/mean_length": "answer_tokens",
    "completions/clipped_ratio": "cut_off",
    "answers/entropy": "entropy",
    "kl": "kl",
}


class NonFiniteError(Exception):
    """Loss or gradients are no longer numbers."""


def supervised_log_probs(
    model: PreTrainedModel, input_ids: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of the next tokens at supervised positions, and the mask of these.

    `model` is a causal language model (LoRA layers may sit inside), `input_ids` and `labels` are
    (batch, length), padded on the right: causal attention then never looks at padding, and no
    attention mask is needed. Returns (n,) in float32 and (batch, length - 1).
    """
    hidden = model.base_model(input_ids=input_ids, use_cache=False).last_hidden_state[:, :-1]
    targets = labels[:, 1:]
    mask = targets != IGNORED
    head = model.get_output_embeddings()
    logits = head(hidden[mask]).float()
    losses = torch.nn.functional.cross_entropy(logits, targets[mask], reduction="none")
    return -losses, mask


class BoundedTrainer(Trainer):
    """What all our trainers add to TRL's: a clock, a stop at numbers that are none, batches of
    similar lengths, a schedule that keeps to the time, held-out accuracy as its evaluation. Stands
    before TRL's trainer among the bases.

    `bucket` rows of similar length lie together. It is the batch that the config asks for: the
    order of rows is the same where memory allows only a part of it at a time.
    """

    lr_scheduler: Any
    control: TrainerControl
    held_out: HeldOut | None = None

    def __init__(self, *args: Any, clock: Clock, bucket: int, **kwargs: Any) -> None:
        self.clock = clock
        self.bucket = bucket
        log = RunLog(Path(kwargs["args"].output_dir) / METRICS_FILE, clock)
        super().__init__(*args, callbacks=[log], **kwargs)
        if self.args.bf16:
            # Autocast casts what the adapters multiply; PEFT would cast to float32 and back first.
            for module in self.model.modules():
                if hasattr(module, "cast_input_dtype_enabled"):
                    module.cast_input_dtype_enabled = False

    def save_own_adapter_only(self) -> None:
        """Leave the frozen reference out of checkpoints; it is made again on resuming. Saved
        beside, it would be all that is loaded: transformers then reads subdirectories alone."""
        self.model.save_pretrained = partial(
            self.model.save_pretrained,
            selected_adapters=["default"],
            save_embedding_layers=False,  # else PEFT asks the hub whether the vocabulary grew
        )

    def row_lengths(self, rows: Any) -> list[int]:
        """Tokens of each row of a data set."""
        return [len(ids) for ids in rows["input_ids"]]

    def figures(self) -> dict[str, float]:
        """What the method measures beside the loss, as last logged."""
        logged = (line for line in reversed(self.state.log_history) if "loss" in line)
        last: dict[str, Any] = next(logged, {})
        return {n: last[key] for key, n in FIGURES.items() if last.get(key) is not None}

    def check_loss(self, loss: torch.Tensor) -> None:
        """Raise NonFiniteError for a loss that is no number."""
        if not torch.isfinite(loss):
            raise NonFiniteError(f"loss is {loss.item()}")

    def _clip_grad_norm(self, model: Any) -> Any:
        norm = super()._clip_grad_norm(model)
        if norm is not None and not math.isfinite(float(norm)):
            raise NonFiniteError(f"gradient norm is {float(norm)}")
        return norm

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows = train_dataset if train_dataset is not None else self.train_dataset
        return BucketSampler(self.row_lengths(rows), self.bucket, self.args.seed)

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> Any:
        """With a time budget, the linear schedule runs on whichever is further: steps or time."""
        made = self.lr_scheduler
        if self.clock.budget_s is None or made is not None:
            return super().create_scheduler(num_training_steps, optimizer)
        warmup = self.args.get_warmup_steps(num_training_steps) / max(1, num_training_steps)

        def factor(step: int) -> float:
            done = max(step / max(1, num_training_steps), self.clock.share())
            if done < warmup:
                return done / warmup
            return max(0.0, (1.0 - done) / max(1e-9, 1.0 - warmup))

        target = optimizer if optimizer is not None else self.optimizer
        self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(target, factor)
        self._created_lr_scheduler = True
        return self.lr_scheduler

    def watch(self, held_out: HeldOut) -> None:
        """Evaluate on these turns while training, as their settings say.

        Raises HaggleError where no process has a whole model to answer with.
        """
        if self.is_fsdp_enabled:
            raise HaggleError(
                "evaluation needs a whole model in each process, and FSDP shards it",
                hint="leave evaluation out, or launch with DDP",
            )
        self.held_out = held_out
        self.add_callback(HeldOutSchedule(held_out.settings))

    def evaluate(self, *args: Any, metric_key_prefix: str = "eval", **kwargs: Any) -> Any:
        """Held-out accuracy as `eval_joint` and so on; it moves neither clock nor random numbers.

        Each process answers its share of the turns.
        """
        if self.held_out is None:
            return super().evaluate(*args, metric_key_prefix=metric_key_prefix, **kwargs)
        was_training = self.model.training
        self.model.eval()  # until behind the log: TRL's keeps figures of the steps while training
        try:
            with self.clock.paused():
                metrics = self._measure(self.held_out)
                self.log(dict(metrics))
                self.control = self.callback_handler.on_evaluate(
                    self.args, self.state, self.control, metrics
                )
        finally:
            self.model.train(was_training)
        return metrics

    def _measure(self, held_out: HeldOut) -> dict[str, float]:
        from accelerate.utils import gather_object
        from transformers.utils.logging import tqdm

        started = time.monotonic()
        turns = held_out.turns[self.args.process_index :: self.args.world_size]
        model = causal_model(self.accelerator.unwrap_model(self.model))
        quiet = self.args.disable_tqdm or not self.is_world_process_zero()
        with (
            tqdm(total=len(turns), desc="held-out", leave=False, disable=quiet) as bar,
            self.accelerator.autocast(),
        ):
            answers = answer(model, self.processing_class, held_out, turns, bar.update)
        verdicts = [
            agreement(t.right, text, t.line) for t, text in zip(turns, answers, strict=True)
        ]
        figures = score(gather_object(verdicts))
        figures["seconds"] = round(time.monotonic() - started, 1)
        return {f"{PREFIX}{name}": v for name, v in figures.items() if v is not None}

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """No model card: the run directory explains itself."""


class DialogueTrainer(BoundedTrainer, SFTTrainer):
    """SFTTrainer over `training.data` columns: weighted loss where there is something to learn."""

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | None = None,
    ) -> Any:
        ids, labels = inputs["input_ids"], inputs["labels"]
        weights = inputs["loss_weights"][:, 1:]
        if self.accelerator.num_processes == 1 and ids.device.type == "cpu":
            with self.accelerator.autocast():
                log_probs, mask = supervised_log_probs(causal_model(model), ids, labels)
            loss = -(log_probs * weights[mask]).sum()
        else:
            outputs = model(input_ids=ids, labels=labels, use_cache=False, fused_lm_head=True)
            loss = -(outputs.log_probs * weights).sum()
        total = weights.sum() if num_items_in_batch is None else num_items_in_batch
        loss = loss / torch.as_tensor(total).clamp(min=1e-6)
        if self.args.average_tokens_across_devices and num_items_in_batch is not None:
            loss = loss * self.accelerator.num_processes
        if self.model.training:
            self.check_loss(loss)
            # Every row ends with a supervised token, so its length is its last label's place.
            last = (labels != IGNORED).int().cumsum(1).argmax(1) + 1
            # Batches of similar lengths go to the processes together, so one stands for all.
            self.clock.tokens += int(last.sum()) * self.accelerator.num_processes
        return (loss, None) if return_outputs else loss

    def _get_num_items_in_batch(
        self, batch_samples: list[dict[str, torch.Tensor]], device: torch.device
    ) -> torch.Tensor | None:
        if not batch_samples:
            return None
        total = torch.stack([b["loss_weights"][:, 1:].sum() for b in batch_samples]).sum()
        total = total.to(device)
        if self.args.world_size > 1:
            total = self.accelerator.gather(total).sum()
        return total


def causal_model(model: Any) -> PreTrainedModel:
    """The causal language model inside a PEFT wrapper, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@dataclass
class RunLog(TrainerCallback, ExportableState):
    """Writes metrics.jsonl, watches the clock, and keeps its figures in each checkpoint."""

    path: Path
    clock: Clock
    last_tokens: int = 0
    last_s: float = 0.0

    def state(self) -> dict[str, Any]:
        figures = {"elapsed_s": self.clock.elapsed_s, "tokens": self.clock.tokens}
        return {"args": {}, "attributes": figures}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.clock.start()
        self.last_tokens, self.last_s = self.clock.tokens, self.clock.elapsed_s

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self.clock.steps_here += 1
        if self.clock.exhausted():
            control.should_training_stop = True
            control.should_save = True
            control.should_log = True

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        evaluated = f"{PREFIX}joint"
        if not state.is_world_process_zero or not logs or not {"loss", evaluated} & logs.keys():
            return
        record: dict[str, Any] = {"step": state.global_step}
        names = {"learning_rate": "lr", "loss": "loss", "grad_norm": "grad_norm", "epoch": "epoch"}
        names |= FIGURES
        known = ((names[key], value) for key, value in logs.items() if key in names)
        record |= {name: value for name, value in known if value is not None}
        elapsed, tokens = self.clock.elapsed_s, self.clock.tokens
        record |= {"tokens": tokens, "elapsed_s": round(elapsed, 2)}
        if "loss" in logs:
            seconds = max(1e-9, elapsed - self.last_s)
            record["tokens_per_s"] = round((tokens - self.last_tokens) / seconds, 1)
            self.last_tokens, self.last_s = tokens, elapsed
        if evaluated in logs:
            record["heldout"] = {name: logs.get(f"{PREFIX}{name}") for name in MEASURES}
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(to_json(record) + "\n")


@dataclass
class HeldOutSchedule(TrainerCallback):
    """Says when to evaluate, and when it has not become better for long enough.

    Each evaluation stands at a checkpoint, so that a resumed run comes to the same ones.
    """

    settings: EvaluationSettings

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        every = self.settings.every_steps or max(1, state.save_steps)
        if state.global_step % every == 0 or control.should_training_stop:
            control.should_evaluate = True
            control.should_save = True

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        if out_of_patience(self.settings, state.log_history):
            control.should_training_stop = True


def restore_clock(clock: Clock, checkpoint: Path) -> None:
    """Take up the time and token counts that a checkpoint was saved with."""
    state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    saved = (state.get("stateful_callbacks") or {}).get(RunLog.__name__) or {}
    figures = saved.get("attributes") or {}
    clock.before_s = float(figures.get("elapsed_s", 0.0))
    clock.tokens = int(figures.get("tokens", 0))
