"""Transformers through outlines: any model PyTorch runs, with or without a LoRA adapter."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from outlines import from_transformers
from outlines.backends.llguidance import LLGuidanceBackend
from outlines.processors import OutlinesLogitsProcessor
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
    TextIteratorStreamer,
)
from transformers.utils.logging import disable_progress_bar

from haggle.core.codec import CACHED, ActionSpec, to_lark
from haggle.core.engine import Generation, GenerationRequest
from haggle.core.errors import HaggleError
from haggle.weights.adapters import check_adapter
from haggle.weights.models import BaseModel, resolve_base
from serving.engines.common import check_output, hf_prompt, special_tokens
from serving.engines.config import EngineConfig

ANYTHING = "start: /(?s:.*)/\n"


class TransformersEngine:
    """A causal language model; prompts of a batch are padded on the left and decoded together."""

    name = "transformers"

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        if config.threads:
            torch.set_num_threads(config.threads)
        base = resolve_base(config.model)
        self.model = base.name if config.adapter is None else f"{base.name}+{config.adapter.name}"
        self.device = _device(config.transformers.device)
        if not config.verbose:
            disable_progress_bar()
        self._tokenizer = AutoTokenizer.from_pretrained(base.path)
        self._special = special_tokens(self._tokenizer)
        self._model = _load(base, config.adapter, _dtype(config, self.device), self.device)
        # Sets the padding side and, where a tokenizer has none, the padding token.
        self._outlines = from_transformers(self._model, self._tokenizer)
        self._backend = LLGuidanceBackend(self._outlines)
        self._matcher = lru_cache(maxsize=CACHED)(self._compile)
        self._lock = threading.Lock()

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """Answer a batch, `transformers.batch` prompts at a time.

        Raises HaggleError when a prompt does not fit the context.
        """
        size = self.config.transformers.batch
        batches = [requests[i : i + size] for i in range(0, len(requests), size)]
        with self._lock:
            return [generation for batch in batches for generation in self._batch(batch)]

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        """Yield the answer as it is made, then the Generation. Closing the iterator stops it."""
        streamer = TextIteratorStreamer(self._tokenizer, skip_prompt=True, skip_special_tokens=True)
        stop = threading.Event()
        result: list[Generation | Exception] = []

        def run() -> None:
            try:
                with self._lock:
                    result.extend(self._batch([request], streamer=streamer, stop=stop))
            except Exception as error:  # raised again where the stream is read
                result.append(error)
                streamer.end()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            for piece in streamer:
                if piece:
                    yield piece
        finally:
            stop.set()
            thread.join()
        if isinstance(result[0], Exception):
            raise result[0]
        yield result[0]

    def close(self) -> None:
        """Drop the model."""
        self._matcher.cache_clear()
        del self._model, self._outlines, self._backend

    def _compile(self, constraint: ActionSpec | None) -> Any:
        """A matcher to copy per answer; copies share what the automaton has learnt so far."""
        from llguidance import LLMatcher

        grammar = ANYTHING if constraint is None else to_lark(constraint)
        matcher = LLMatcher(
            self._backend.llg_tokenizer, self._backend.llg.grammar_from("lark", grammar)
        )
        if error := matcher.get_error():
            raise HaggleError(f"the grammar cannot be compiled: {error}", where=self.name)
        return matcher

    def _batch(
        self,
        requests: Sequence[GenerationRequest],
        *,
        streamer: TextIteratorStreamer | None = None,
        stop: threading.Event | None = None,
    ) -> list[Generation]:
        start = time.perf_counter()
        prompts = [hf_prompt(self._tokenizer, r.messages, self._special) for r in requests]
        inputs = self._tokenizer(
            prompts, add_special_tokens=False, padding=True, return_tensors="pt"
        ).to(self.device)
        length = inputs["input_ids"].shape[1]
        longest = max(request.max_tokens for request in requests)
        if length + longest > self.config.context:
            raise HaggleError(
                f"{length} prompt tokens and {longest} to answer exceed {self.config.context}",
                where=self.model,
                hint="raise `context` in the serve config, or shorten the dialogue's history",
            )
        processors = LogitsProcessorList()
        if any(request.constraint is not None for request in requests):
            processors.append(
                RowGrammars(
                    [self._matcher(r.constraint).deep_copy() for r in requests],
                    [r.max_tokens for r in requests],
                )
            )
        if any(request.temperature > 0 for request in requests):
            processors.append(RowSampling(requests, self.device))
        clock = RowClock([r.max_tokens for r in requests], length, stop)
        with torch.inference_mode():
            output = self._model.generate(
                **inputs,
                max_new_tokens=longest,
                do_sample=False,
                logits_processor=processors,
                stopping_criteria=StoppingCriteriaList([clock]),
                streamer=streamer,
                pad_token_id=self._tokenizer.pad_token_id,
            )
        rows = output[:, length:].tolist()
        sizes = inputs["attention_mask"].sum(dim=1).tolist()
        return [
            self._generation(request, row, size, start, clock, number)
            for number, (request, row, size) in enumerate(zip(requests, rows, sizes, strict=True))
        ]

    def _generation(
        self,
        request: GenerationRequest,
        row: list[int],
        prompt_tokens: int,
        start: float,
        clock: RowClock,
        number: int,
    ) -> Generation:
        ends = self._model.generation_config.eos_token_id
        stops = set(ends if isinstance(ends, list) else [ends]) | {self._tokenizer.eos_token_id}
        end = next((i for i, token in enumerate(row) if token in stops), None)
        tokens = row[: request.max_tokens] if end is None else row[:end]
        text = self._tokenizer.decode(tokens, skip_special_tokens=True)
        finish = "length" if end is None or end >= request.max_tokens else "stop"
        if not clock.aborted:
            check_output(request, text, finish, self.name)
        return Generation(
            text=text,
            prompt_tokens=int(prompt_tokens),
            completion_tokens=len(tokens) + (finish == "stop"),
            latency_s=clock.time_at(number, len(tokens)) - start,
            finish_reason="stop" if finish == "stop" else "length",
        )


class RowGrammars(OutlinesLogitsProcessor):
    """A grammar per row of the batch, where outlines has one for all rows.

    The mask is applied without torch.compile, which would want a C++ compiler on every machine.
    """

    def __init__(self, matchers: list[Any], limits: list[int]) -> None:
        super().__init__("torch")
        self.matchers = matchers
        self.limits = limits
        self.step = 0

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """Let each matcher take in the last token, then forbid what it cannot continue with."""
        last = input_ids[:, -1].tolist()
        for row, matcher in enumerate(self.matchers):
            if self.step >= self.limits[row]:
                continue  # this row is only padded now
            if self.step and not matcher.is_stopped():
                matcher.consume_token(last[row])
            allowed = np.frombuffer(matcher.compute_logit_bias(), dtype=np.uint8) != 0
            forbidden = torch.from_numpy(~allowed).to(logits.device)
            logits[row, : forbidden.shape[0]].masked_fill_(forbidden, -torch.inf)
            logits[row, forbidden.shape[0] :] = -torch.inf
        self.step += 1
        return logits


class RowSampling(OutlinesLogitsProcessor):
    """Temperature and seed per row, by adding Gumbel noise: the greatest logit is then a sample.

    So an answer does not depend on which other requests share its batch.
    """

    def __init__(self, requests: Sequence[GenerationRequest], device: torch.device) -> None:
        super().__init__("torch")
        self.temperatures = [request.temperature for request in requests]
        self.generators = [torch.Generator("cpu").manual_seed(request.seed) for request in requests]
        self.device = device

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """Replace the logits of sampled rows by logits / temperature + Gumbel noise."""
        for row, temperature in enumerate(self.temperatures):
            if temperature <= 0:
                continue
            uniform = torch.rand(logits.shape[1], generator=self.generators[row])
            noise = -torch.log(-torch.log(uniform.clamp_(1e-10, 1 - 1e-7)))
            logits[row] = logits[row].float() / temperature + noise.to(self.device)
        return logits


class RowClock(StoppingCriteria):
    """Stops each row at its own max_tokens and notes when each step was made."""

    def __init__(self, limits: list[int], prompt_length: int, stop: threading.Event | None) -> None:
        self.limits = torch.tensor(limits)
        self.prompt_length = prompt_length
        self.stop = stop
        self.times: list[float] = []

    @property
    def aborted(self) -> bool:
        """Whether the reader of a stream has left."""
        return self.stop is not None and self.stop.is_set()

    def time_at(self, row: int, tokens: int) -> float:
        """When row `row` had its `tokens` tokens and, if it stopped by itself, its end."""
        step = min(tokens, int(self.limits[row]) - 1, len(self.times) - 1)
        return self.times[max(step, 0)]

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        self.times.append(time.perf_counter())
        made = input_ids.shape[1] - self.prompt_length
        done = self.limits <= made
        return (done | self.aborted).to(input_ids.device)


def _device(wanted: str) -> torch.device:
    if wanted != "auto":
        try:
            return torch.device(wanted)
        except RuntimeError as error:
            raise HaggleError(
                f"unknown device {wanted!r}", where="transformers.device", hint="cpu, cuda, mps"
            ) from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _dtype(config: EngineConfig, device: torch.device) -> torch.dtype:
    """bfloat16 on a GPU, float32 on a CPU (many have no bfloat16 arithmetic)."""
    wanted = config.transformers.dtype
    if wanted == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    dtype: torch.dtype = getattr(torch, wanted)
    return dtype


def _load(base: BaseModel, adapter: Path | None, dtype: torch.dtype, device: torch.device) -> Any:
    if adapter is not None:
        adapter = adapter.expanduser()
        check_adapter(adapter, base)
    model = AutoModelForCausalLM.from_pretrained(base.path, dtype=dtype)
    if adapter is not None:
        from peft import PeftModel

        # Merged in memory: the adapter's own matrices would cost a third of the speed.
        model = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    model.eval()
    return model.to(device)
