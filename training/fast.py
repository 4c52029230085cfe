"""Supervised training in plain PyTorch, for one GPU (or a CPU) with PyTorch and transformers alone.

The loss is that of `training.trainer`: the weighted mean over supervised tokens, the vocabulary
asked only there. Rows of similar length are padded on the right, so causal attention needs no mask
and takes PyTorch's fused kernels. Weights that are trained stay in float32; products run in bf16
where the machine has it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from haggle.core.errors import HaggleError
from haggle.core.storage import append_jsonl, atomic_write_text, read_jsonl
from training.arguments import has_bf16
from training.batches import Batch, BatchStream, Place, collate, weight_of, within
from training.checkpoints import METRICS_FILE
from training.clock import Clock
from training.data import Example
from training.fast_checkpoints import (
    OPTIMIZER,
    Identity,
    RunState,
    check_same,
    newest,
    read_state,
    read_weights,
    save_checkpoint,
)
from training.fast_config import FastConfig
from training.lora import add_lora, linear_layers, load_lora, merge_directory

if TYPE_CHECKING:
    from haggle.weights.models import BaseModel

Echo = Callable[[str], None]
CPU_TOKENS = 4096  # at once without a GPU: about 10 GB with 135 million weights


def load_trainable(config: FastConfig, base: BaseModel, device: torch.device) -> Any:
    """The base model as a run trains it: with new adapters, or with weights of its own."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from training import attention

    frozen_bf16 = has_bf16() and not config.full_finetuning
    kind = AutoConfig.from_pretrained(base.path).model_type
    blocked = device.type == "cpu" and kind in attention.ARCHITECTURES
    model = AutoModelForCausalLM.from_pretrained(
        base.path,
        dtype=torch.bfloat16 if frozen_bf16 else torch.float32,
        attn_implementation=attention.register() if blocked else None,
    ).to(device)
    torch.manual_seed(config.seed)
    if not config.full_finetuning:
        add_lora(model, config.lora)
        if config.start_from is not None:
            load_lora(model, config.start_from)
        return model
    if config.start_from is not None:
        merge_directory(model, config.start_from)
    if config.freeze_embeddings:
        model.requires_grad_(False)
        for _, layer in linear_layers(model):
            layer.weight.requires_grad_(True)
    return model


def trained(model: Any) -> dict[str, torch.nn.Parameter]:
    """What of a model is trained, by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


@dataclass
class FastRun:
    """A model under training, its data and where it stands.

    `identity` says what run it is, for checkpoints. `pass_tokens` goes through the model
    at once: `batch_tokens`, or less once memory has run out (the updates stay the same).
    """

    config: FastConfig
    model: Any
    stream: BatchStream
    run: Path
    pad_id: int
    identity: Identity
    held_out: Sequence[Example] = ()
    echo: Echo = print
    step: int = 0
    over: bool = False
    figures: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config = self.config
        self.device = self.model.device
        self.bf16 = has_bf16()
        self.pass_tokens = config.batch_tokens
        if self.device.type == "cpu":
            self.pass_tokens = min(self.pass_tokens, max(config.max_length, CPU_TOKENS))
        self.parameters = trained(self.model)
        self.clock = Clock(budget_s=config.minutes * 60)
        self.optimizer = torch.optim.AdamW(
            list(self.parameters.values()),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.body = self.model.base_model
        if config.compile:
            from torch import _dynamo

            _dynamo.config.suppress_errors = True  # what cannot be compiled runs as it is
            self.body = torch.compile(self.body, dynamic=True)
        self._unread: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._logged = (0, 0.0)  # tokens and seconds at the last line of the log
        self._next_save = self._next_check = 0.0

    # -- the run -----------------------------------------------------------------------------

    def go(self, until: Callable[[], bool] = lambda: False) -> bool:
        """Train until the run is over or, behind a step, `until` says stop; whether it is over.

        A checkpoint is saved at intervals and at the end. Raises HaggleError for a loss that is no
        number (the last checkpoint is from before) and where memory is too small.
        """
        self._resume()
        self.model.train()
        self.clock.start()
        config = self.config
        first = self.clock.elapsed_s
        self._next_save = first + 60 * config.save_minutes / (1 if self.step else 4)
        self._next_check = first + 60 * config.held_out.every_minutes
        while not self._over():
            self.take_step()
            if self.step % config.log_steps == 0:
                self._log()
            if self.clock.elapsed_s >= self._next_save:
                self._next_save = self.clock.elapsed_s + 60 * config.save_minutes
                self.save()
            if self.held_out and self.clock.elapsed_s >= self._next_check:
                self._next_check = self.clock.elapsed_s + 60 * config.held_out.every_minutes
                self._log(held_out_loss=self.held_out_loss())
            if until():
                break
        self.over = self._over()
        self.save()
        return self.over

    def take_step(self) -> None:
        """One update from `accumulate` batches."""
        batches = [self.stream.next() for _ in range(self.config.accumulate)]
        total = sum(weight_of(rows) for rows in batches)
        while (loss := self._gradients(batches, total)) is None:
            self._halve()
        norm = torch.nn.utils.clip_grad_norm_(
            list(self.parameters.values()), self.config.max_grad_norm
        )
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        self.clock.steps_here += 1
        self.clock.tokens += sum(row.tokens for rows in batches for row in rows)
        self._unread.append((loss, norm))

    def rate(self) -> float:
        """The learning rate of the next step: warmup, then steady, then down to nothing."""
        config, left = self.config, 1.0 - self._share()
        warm = min(1.0, (self.step + 1) / (config.warmup_steps + 1))
        late = min(1.0, left / config.decay) if config.decay else 1.0
        return config.learning_rate * warm * late

    def loss(self, batch: Batch) -> torch.Tensor:
        """The weighted sum of a batch's losses."""
        kind = self.device.type
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=self.bf16):
            hidden = self.body(input_ids=batch.ids, use_cache=False).last_hidden_state
            learnt = hidden.flatten(0, 1).index_select(0, batch.places)
            logits = self.model.get_output_embeddings()(learnt)
        losses = torch.nn.functional.cross_entropy(logits.float(), batch.targets, reduction="none")
        return (losses * batch.weights).sum()

    @torch.no_grad()
    def held_out_loss(self) -> float:
        """The weighted mean loss of the held-out rows."""
        self.model.eval()
        try:
            with self.clock.paused():
                total = torch.zeros((), device=self.device)
                for rows in within(self.held_out, self.pass_tokens):
                    total += self.loss(collate(rows, self.pad_id).to(self.device))
                return round(float(total) / weight_of(self.held_out), 6)
        finally:
            self.model.train()

    # -- inside ------------------------------------------------------------------------------

    def _gradients(self, batches: Sequence[list[Example]], total: float) -> torch.Tensor | None:
        """The loss of a step, its gradients left in the weights; None where memory ran out."""
        loss = torch.zeros((), device=self.device)
        try:
            for rows in batches:
                for part in within(rows, self.pass_tokens):
                    share = self.loss(collate(part, self.pad_id).to(self.device)) / total
                    share.backward()
                    loss += share.detach()
        except torch.OutOfMemoryError:
            return None
        return loss

    def _halve(self) -> None:
        """Let half as many tokens through the model at once, and forget the step begun."""
        self.optimizer.zero_grad(set_to_none=True)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        if self.pass_tokens <= self.config.max_length:
            raise HaggleError(
                f"out of memory with {self.pass_tokens} tokens at once",
                where=str(self.run),
                hint="lower max_length, or take a smaller base",
            )
        self.pass_tokens //= 2
        self.echo(f"Memory ran out: {self.pass_tokens:,} tokens at once from here (same updates)")

    def _share(self) -> float:
        """How much of the run is done, by whichever limit is nearest."""
        config, done = self.config, [self.clock.share()]
        if config.max_tokens:
            done.append(self.clock.tokens / config.max_tokens)
        if config.max_steps:
            done.append(self.step / config.max_steps)
        return min(1.0, max(done))

    def _over(self) -> bool:
        return self._share() >= 1.0 or self.clock.exhausted()

    def _log(self, **more: float) -> None:
        """Read what the steps since the last line came to, check and write it."""
        elapsed, tokens = self.clock.elapsed_s, self.clock.tokens
        record: dict[str, Any] = {"step": self.step, **more}
        if self._unread:
            losses, norms = (torch.stack(list(v)).tolist() for v in zip(*self._unread, strict=True))
            self._check_finite([*losses, *norms])
            before = self._logged
            record["loss"] = round(sum(losses) / len(losses), 6)
            record["losses"] = [round(loss, 6) for loss in losses]
            record["grad_norm"] = round(norms[-1], 4)
            speed = (tokens - before[0]) / max(1e-9, elapsed - before[1])
            record["tokens_per_s"] = round(speed, 1)
            self._logged, self._unread = (tokens, elapsed), []
        record |= {"lr": self.rate(), "tokens": tokens, "elapsed_s": round(elapsed, 2)}
        self.figures |= {k: v for k, v in record.items() if isinstance(v, int | float)}
        append_jsonl(self.run / METRICS_FILE, record)
        told = ("loss", "held_out_loss", "tokens_per_s")
        shown = ", ".join(f"{name} {record[name]:,.4g}" for name in told if name in record)
        self.echo(f"step {self.step}: {shown}, {tokens:,} tokens, {elapsed / 60:.1f} min")

    def _check_finite(self, values: Sequence[float]) -> None:
        if all(abs(value) < float("inf") for value in values):  # false for NaN too
            return
        raise HaggleError(
            f"training broke down before step {self.step}: the loss is no number any more",
            where=str(self.run),
            hint="the last checkpoint is from before; lower learning_rate, in another --run",
        )

    def save(self) -> None:
        """Write a checkpoint, unless the newest is of this step."""
        if self._unread:
            self._log()
        found = newest(self.run)
        if found is not None and read_state(found).step == self.step and not self.over:
            return
        state = RunState(
            step=self.step,
            tokens=self.clock.tokens,
            elapsed_s=self.clock.elapsed_s,
            place=self.stream.place.record(),
            model=self.identity.model,
            data=self.identity.data,
            over=self.over,
        )
        weights = dict(self.parameters.items())
        save_checkpoint(self.run, state, weights, self.optimizer.state_dict(), self.config.average)

    def _resume(self) -> None:
        """Go on from the newest checkpoint, if there is one."""
        path = self.run / METRICS_FILE
        found = newest(self.run)
        state = read_state(found) if found is not None else None
        if found is not None and state is not None:
            check_same(state, self.identity, self.run)
            set_weights(self.model, read_weights(found))
            self.optimizer.load_state_dict(
                torch.load(found / OPTIMIZER, map_location=self.device, weights_only=True)
            )
            self.step, self.over = state.step, state.over
            self.clock.tokens, self.clock.before_s = state.tokens, state.elapsed_s
            self._logged = (state.tokens, state.elapsed_s)
            self.stream.go_to(Place(**state.place))
            self.echo(f"Going on from step {self.step} ({state.tokens:,} tokens)")
        if path.is_file():  # lines of steps that are taken again go
            kept = [r for r in read_jsonl(path, drop_torn_tail=True) if r["step"] <= self.step]
            atomic_write_text(path, "")
            for record in kept:
                append_jsonl(path, record)


@torch.no_grad()
def set_weights(model: Any, weights: dict[str, torch.Tensor]) -> None:
    """Give a model the trained weights of a checkpoint. Raises HaggleError where they differ."""
    own = trained(model)
    for name in sorted(own.keys() | weights.keys()):
        if name not in own or name not in weights or own[name].shape != weights[name].shape:
            raise HaggleError(f"the checkpoint does not fit the model: {name}")
        own[name].copy_(weights[name])


def deadline(minutes: float | None, started: float) -> Callable[[], bool]:
    """Whether so many minutes have gone since `started` (of `time.monotonic`)."""
    if minutes is None:
        return lambda: False
    return lambda: time.monotonic() - started >= minutes * 60
