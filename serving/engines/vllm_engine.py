"""vLLM: answers of many dialogues made together, on a GPU or (Linux) on a CPU.

The model runs in a process of its own, and its requests in an event loop in a thread of this one.
Whoever asks meanwhile joins the batch that is under way.
"""

from __future__ import annotations

import copy
import itertools
import math
import os
import queue
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from haggle.core.codec import ActionSpec, is_regular, to_gbnf, to_lark, to_regex, to_schema
from haggle.core.engine import Generation, GenerationRequest
from haggle.core.errors import HaggleError
from haggle.weights.adapters import check_adapter
from haggle.weights.models import BaseModel, resolve_base
from serving.engines.common import adapter_name, check_output, hf_prompt, special_tokens
from serving.engines.config import EngineConfig
from serving.engines.loop_thread import LoopThread
from serving.shipped import merged_model

# vLLM caches prefixes by adapter name and keeps weights by number: a name has one number for ever.
_ADAPTER_NUMBERS: dict[str, int] = {}


class VllmEngine:
    """A model with prefix caching and structured outputs; `parallel` answers are made at once.

    One `adapter` is folded into its base. Of several `adapters` the first one answers;
    `with_adapter` lets another one answer.
    """

    name = "vllm"
    _llm: Any = None  # vLLM's AsyncLLM, as soon as it is made

    def __init__(self, config: EngineConfig) -> None:
        base = resolve_base(config.model)
        adapters = {name: _adapter_dir(place, base) for name, place in config.adapters.items()}
        weights, names = base.path, [place.name for place in adapters.values()]
        if config.adapter is not None:
            own = _adapter_dir(config.adapter, base)
            weights, names = merged_model(own, base), [own.name]
        _set_environment(config)
        self.config = config
        self.model = "+".join([base.name, *names])
        self._numbers = itertools.count()
        self._loop = LoopThread(self.name)
        try:
            self._loop.submit(self._start(weights)).result()
            self._tokenizer = self._llm.get_tokenizer()
            self._special = special_tokens(self._tokenizer)
            self._adapters = {name: _lora_request(place) for name, place in adapters.items()}
        except BaseException:
            self.close()
            raise
        self._adapter = next(iter(self._adapters.values()), None)

    def with_adapter(self, name: str) -> VllmEngine:
        """The same model, loaded once, where the adapter `name` answers; closed with this one."""
        other = copy.copy(self)
        other._adapter = self._adapters[adapter_name(self.config, name)]
        return other

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """Answer all requests together, and with whatever else is asked meanwhile.

        Raises HaggleError when a prompt does not fit the context, or vLLM has stopped.
        """
        prompts = [self._prompt(request) for request in requests]
        answers = [self._loop.submit(work) for work in map(self._answer, requests, prompts)]
        try:
            return [_result(answer) for answer in answers]
        finally:
            for answer in answers:
                answer.cancel()

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        """Yield the answer as it is made, then the Generation. Closing the iterator stops it."""
        pieces: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        answer = self._loop.submit(self._answer(request, self._prompt(request), pieces.put))
        answer.add_done_callback(lambda _: pieces.put(None))
        try:
            while (piece := pieces.get()) is not None:
                yield piece
            yield _result(answer)
        finally:
            answer.cancel()

    def close(self) -> None:
        """Stop vLLM, with all that is under way, and free the model.

        Who waits for an answer is told that there will be none.
        """
        self._loop.close(self._shutdown)

    def _shutdown(self) -> None:
        if self._llm is not None:
            self._llm.shutdown()

    async def _start(self, weights: Path) -> None:
        """Start vLLM in the event loop that it will answer in."""
        try:
            self._llm = _async_llm(self.config, weights)
        except (ValueError, RuntimeError) as error:
            raise HaggleError(
                f"vLLM cannot start: {error}",
                where=str(weights),
                hint="see the reason with `verbose: true`; lower `context`, `gpu_memory` or "
                "`kv_cache_gib` where memory is short; a script of your own needs "
                '`if __name__ == "__main__":`, because vLLM starts a process',
            ) from error

    async def _answer(
        self,
        request: GenerationRequest,
        prompt: dict[str, Any],
        emit: Callable[[str], None] | None = None,
    ) -> Generation:
        """Answer one request; each piece of text goes to `emit`. A cancelled one is aborted."""
        from vllm.exceptions import VLLMError

        start, said = time.perf_counter(), 0
        parameters = self._parameters(request, streamed=emit is not None)
        number = str(next(self._numbers))
        try:
            async for output in self._llm.generate(
                prompt, parameters, number, lora_request=self._adapter
            ):
                text = output.outputs[0].text
                if emit and text[said:]:
                    emit(text[said:])
                said = len(text)
        except VLLMError as error:
            raise self._failed(str(error.__cause__ or error)) from error
        if output.outputs[0].finish_reason not in ("stop", "length"):
            raise self._failed("it broke the answer off")
        return self._generation(request, text, output, time.perf_counter() - start)

    def _failed(self, reason: str) -> HaggleError:
        dead = self._llm.errored
        return HaggleError(
            "vLLM has stopped" if dead else f"vLLM failed: {reason}",
            where=self.model,
            hint="see the reason with `verbose: true`" + "; start Haggle anew" * dead,
        )

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

    def _parameters(self, request: GenerationRequest, streamed: bool) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

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
            output_kind=RequestOutputKind.CUMULATIVE if streamed else RequestOutputKind.FINAL_ONLY,
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
            read_tokens=len(output.prompt_token_ids) - (output.num_cached_tokens or 0),
            latency_s=latency_s,
            finish_reason="length" if finish == "length" else "stop",
            probability=math.exp(answer.cumulative_logprob) if request.scored else None,
        )


def _async_llm(config: EngineConfig, weights: Path) -> Any:
    """vLLM, started with all that the config says."""
    # vLLM's process has the signals of the thread that starts it: Ctrl-C is for this process alone,
    # which stops the other when it has ended what it does. The tracker would unblock it once more.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    options, adapters = config.vllm, len(config.adapters)
    lora = {"max_lora_rank": options.max_lora_rank, "max_loras": adapters}
    return AsyncLLM.from_engine_args(
        AsyncEngineArgs(
            model=str(weights),
            dtype=options.dtype,
            max_model_len=config.context,
            max_num_seqs=config.parallel,
            seed=config.seed,
            enforce_eager=options.eager,
            gpu_memory_utilization=options.gpu_memory,
            enable_prefix_caching=True,
            enable_lora=bool(adapters),
            structured_outputs_config={"backend": options.backend},
            disable_log_stats=True,
            **(lora if adapters else {}),
        )
    )


def _result(answer: Future[Generation]) -> Generation:
    try:
        return answer.result()
    except CancelledError:
        raise HaggleError("the engine was closed", where=VllmEngine.name) from None


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
        # One process for the model and what plans its batches: a second one waits awake for it.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": str(config.vllm.kv_cache_gib),
        "VLLM_REGEX_COMPILATION_TIMEOUT_S": "60",
    }
    if not config.verbose:
        settings["VLLM_LOGGING_LEVEL"] = "ERROR"
    if config.threads:
        settings["OMP_NUM_THREADS"] = str(config.threads)
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
