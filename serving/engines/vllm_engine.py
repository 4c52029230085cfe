"""vLLM in this process: batches of many dialogues, on a GPU or (Linux) on a CPU."""

from __future__ import annotations

import copy
import itertools
import math
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from haggle.core.codec import ActionSpec, is_regular, to_gbnf, to_lark, to_regex, to_schema
from haggle.core.engine import Generation, GenerationRequest
from haggle.core.errors import HaggleError
from haggle.weights.adapters import check_adapter
from haggle.weights.models import BaseModel, resolve_base
from serving.engines.common import adapter_name, check_output, hf_prompt, special_tokens
from serving.engines.config import EngineConfig

# vLLM caches prefixes by adapter name and keeps weights by number: a name has one number for ever.
_ADAPTER_NUMBERS: dict[str, int] = {}


class VllmEngine:
    """A model with prefix caching, structured outputs and, where given, a LoRA adapter."""

    name = "vllm"

    def __init__(self, config: EngineConfig) -> None:
        options = config.vllm
        base = resolve_base(config.model)
        chosen = config.adapters or ({"": config.adapter} if config.adapter else {})
        adapters = {name: _adapter_dir(place, base) for name, place in chosen.items()}
        _set_environment(config)
        from vllm import LLM

        self.config = config
        self.model = "+".join([base.name, *(place.name for place in adapters.values())])
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        lora = {"max_lora_rank": options.max_lora_rank, "max_loras": len(adapters)}
        try:
            self._llm = LLM(
                model=str(base.path),
                dtype=options.dtype,
                max_model_len=config.context,
                max_num_seqs=options.max_sequences,
                seed=config.seed,
                enforce_eager=options.eager,
                gpu_memory_utilization=options.gpu_memory,
                enable_prefix_caching=True,
                enable_lora=bool(adapters),
                structured_outputs_config={"backend": options.backend},
                disable_log_stats=True,
                **(lora if adapters else {}),
            )
        except (ValueError, RuntimeError) as error:
            raise HaggleError(
                f"vLLM cannot start: {error}",
                where=str(base.path),
                hint="see the reason with `verbose: true`; lower `context`, `gpu_memory` or "
                "`kv_cache_gib` where memory is short",
            ) from error
        self._tokenizer = self._llm.get_tokenizer()
        self._special = special_tokens(self._tokenizer)
        self._adapters = {name: _lora_request(place) for name, place in adapters.items()}
        self._adapter = next(iter(self._adapters.values()), None)

    def with_adapter(self, name: str) -> VllmEngine:
        """The same model, loaded once, where the adapter `name` answers; closed with this one."""
        other = copy.copy(self)
        other._adapter = self._adapters[adapter_name(self.config, name)]
        return other

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """Answer all requests in one batch; the latency is the whole batch's.

        Raises HaggleError when a prompt does not fit the context.
        """
        if not requests:
            return []
        start = time.perf_counter()
        prompts = [self._prompt(request) for request in requests]
        parameters = [self._parameters(request) for request in requests]
        with self._lock:
            outputs = self._llm.generate(
                prompts, parameters, lora_request=self._adapter, use_tqdm=False
            )
        latency = time.perf_counter() - start
        return [
            self._generation(request, output.outputs[0].text, output, latency)
            for request, output in zip(requests, outputs, strict=True)
        ]

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        """Yield the answer as it is made, then the Generation. Closing the iterator stops it."""
        from vllm.sampling_params import RequestOutputKind

        start = time.perf_counter()
        parameters = self._parameters(request)
        parameters.output_kind = RequestOutputKind.CUMULATIVE
        engine = self._llm.llm_engine
        with self._lock:
            number = f"stream-{next(self._numbers)}"
            engine.add_request(
                number, self._prompt(request), parameters, lora_request=self._adapter
            )
            text, last = "", None
            try:
                while engine.has_unfinished_requests():
                    for output in engine.step():
                        last = output
                        piece = output.outputs[0].text[len(text) :]
                        text += piece
                        if piece:
                            yield piece
            finally:
                if engine.has_unfinished_requests():
                    engine.abort_request([number])
        yield self._generation(request, text, last, time.perf_counter() - start)

    def close(self) -> None:
        """Stop vLLM and free the model."""
        if self._llm is None:
            return
        self._llm.llm_engine.engine_core.shutdown()
        self._llm = None

    def _prompt(self, request: GenerationRequest) -> dict[str, Any]:
        text = hf_prompt(self._tokenizer, request.messages, self._special)
        tokens = self._tokenizer.encode(text, add_special_tokens=False)
        if len(tokens) + request.max_tokens > self.config.context:
            raise HaggleError(
                f"{len(tokens)} prompt tokens and {request.max_tokens} to answer exceed "
                f"{self.config.context}",
                where=self.model,
                hint="raise `context` in the serve config, or shorten the dialogue's history",
            )
        return {"prompt_token_ids": tokens}

    def _parameters(self, request: GenerationRequest) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams

        structured = None
        if request.constraint is not None:
            structured = StructuredOutputsParams(
                **structured_fields(request.constraint, self.config.vllm.backend)
            )
        return SamplingParams(
            temperature=request.temperature,
            seed=request.seed if request.temperature > 0 else None,
            max_tokens=request.max_tokens,
            structured_outputs=structured,
            logprobs=0 if request.scored else None,
        )

    def _generation(
        self, request: GenerationRequest, text: str, output: Any, latency_s: float
    ) -> Generation:
        answer = output.outputs[0]
        finish = "length" if answer.finish_reason == "length" else "stop"
        check_output(request, text, finish, self.name, bounded=False)
        return Generation(
            text=text,
            prompt_tokens=len(output.prompt_token_ids),
            completion_tokens=len(answer.token_ids),
            latency_s=latency_s,
            finish_reason="length" if finish == "length" else "stop",
            probability=math.exp(answer.cumulative_logprob) if request.scored else None,
        )


def structured_fields(constraint: ActionSpec, backend: str) -> dict[str, Any]:
    """A constraint in the form a structured-output backend of vLLM takes.

    Outlines builds the whole automaton beforehand, for every token of the vocabulary: with
    unbounded lists that takes a third of a second, with bounded ones many seconds and gigabytes.
    """
    if backend == "guidance":
        return {"grammar": to_lark(constraint)}
    if not is_regular(constraint):
        return {"json": to_schema(constraint, bounded=False)}
    if backend == "outlines":
        return {"regex": to_regex(constraint, bounded=False)}
    return {"grammar": to_gbnf(constraint)}


def _set_environment(config: EngineConfig) -> None:
    """What vLLM reads from the environment; anything set by the user stays."""
    settings = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # one process: no guard needed, nothing left over
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": str(config.vllm.kv_cache_gib),
        "VLLM_REGEX_COMPILATION_TIMEOUT_S": "60",
    }
    if not config.verbose:
        settings["VLLM_LOGGING_LEVEL"] = "ERROR"
    if config.threads:
        settings["VLLM_CPU_OMP_THREADS_BIND"] = f"0-{config.threads - 1}"
    for name, value in settings.items():
        os.environ.setdefault(name, value)


def _adapter_dir(adapter: Path, base: BaseModel) -> Path:
    adapter = adapter.expanduser().resolve()
    check_adapter(adapter, base)
    return adapter


def _lora_request(adapter: Path) -> Any:
    from vllm.lora.request import LoRARequest

    # The weights' time is part of the name: an adapter trained anew is another adapter.
    changed = (adapter / "adapter_model.safetensors").stat().st_mtime_ns
    name = f"{adapter}@{changed}"
    number = _ADAPTER_NUMBERS.setdefault(name, len(_ADAPTER_NUMBERS) + 1)
    return LoRARequest(name, number, str(adapter))
