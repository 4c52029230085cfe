"""What a serve config says about the engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from haggle.core.config import Record
from haggle.core.errors import HaggleError, nearest
from haggle.trade.methods import get_method
from haggle.weights.models import DEFAULT_BASE

SEVERAL_ADAPTERS = ("llamacpp", "vllm")
ENGINES = ("gemini", "llamacpp", "openai", "scripted", "transformers", "vllm")


class ScriptedOptions(Record):
    """The answers of the scripted engine, first one first; with `again` from the start once more
    when they are used up. Each takes `seconds`."""

    answers: tuple[str, ...] = ()
    again: bool = False
    seconds: Annotated[float, Field(ge=0)] = 0.0


class LlamaCppOptions(Record):
    """Options of llama.cpp.

    `grammar`: llguidance costs least and keeps to the tokens the model was trained on; gbnf is
    llama.cpp's own. `template`: how messages become text; auto takes the family's markup as
    training does, told by the GGUF's own template, and that template itself for other families
    (`model`: for any). `cache_mib` bounds the memory for prompts put aside, `gpu_layers` -1
    offloads all that fit.
    """

    grammar: Literal["auto", "llguidance", "gbnf"] = "auto"
    template: Literal["auto", "chatml", "gemma", "llama3", "model"] = "auto"
    cache_mib: Annotated[int, Field(ge=0)] = 256
    gpu_layers: int = -1
    adapter_scale: float = 1.0


class TransformersOptions(Record):
    """Options of transformers. `batch` is the number of prompts decoded together."""

    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    batch: Annotated[int, Field(ge=1)] = 8


class VllmOptions(Record):
    """Options of vLLM. `kv_cache_gib` applies to CPU, `gpu_memory` (a share) to GPU."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    backend: Literal["outlines", "guidance", "xgrammar"] = "outlines"
    eager: bool = False
    kv_cache_gib: Annotated[int, Field(ge=1)] = 1
    gpu_memory: Annotated[float, Field(gt=0, le=1)] = 0.8
    max_lora_rank: Annotated[int, Field(ge=1)] = 16


class Prices(Record):
    """What a service takes for a million tokens, and when that was looked up.

    `cached_input` is the price of prompt tokens the service had in its own cache; without it they
    are counted at the full price. Thoughts cost what `output` costs.
    """

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    cached_input: Annotated[float, Field(ge=0)] | None = None
    currency: str = "USD"
    as_of: Annotated[str, Field(pattern=r"^20\d\d-\d\d(-\d\d)?$")]


class RemoteOptions(Record):
    """Options of every engine that asks a service over HTTP.

    The key is read from the environment variable `api_key_env` and kept nowhere else. `structured`
    is what a constrained request asks for: its JSON Schema, any JSON object, or nothing.
    `thought_room` is added to a request's max_tokens for models whose thoughts count towards it.
    An attempt may take `timeout_s`; one that may succeed later is repeated up to `attempts` times,
    after waits from `first_wait_s` up to `longest_wait_s`, or as long as the service asks for.
    `cache` is a file that keeps answers by request. `on_version_change`: whether another version of
    the model answering halfway is an error or a warning that `usage()` reports.
    """

    base_url: str | None = None
    api_key_env: str | None = None
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    thought_room: Annotated[int, Field(ge=0)] = 0
    timeout_s: Annotated[float, Field(gt=0)] = 120.0
    attempts: Annotated[int, Field(ge=1, le=100)] = 6
    first_wait_s: Annotated[float, Field(gt=0)] = 1.0
    longest_wait_s: Annotated[float, Field(gt=0)] = 120.0
    cache: Path | None = None
    prices: Prices | None = None
    on_version_change: Literal["stop", "record"] = "stop"


class OpenAIOptions(RemoteOptions):
    """Options of an OpenAI-compatible endpoint; `base_url` ends before `/chat/completions`.

    `strict` asks for strict schemas. `limit_field` is the name the service has for the longest
    answer, `omit` names fields it refuses, `extra_body` is added to every request as it is.
    """

    strict: bool = True
    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    omit: tuple[Literal["seed", "temperature", "stream_options"], ...] = ()
    extra_body: dict[str, Any] = {}


class GeminiOptions(RemoteOptions):
    """Options of Gemini. Without `base_url` it is Google's own service; models in preview may need
    the `api_version` v1beta.

    `thinking_budget` is in tokens (0 off, -1 as the model likes) for the 2.5 models, newer ones
    take a `thinking_level`; without either the service decides.
    """

    api_key_env: str | None = "GEMINI_API_KEY"
    api_version: str | None = None
    thinking_budget: Annotated[int, Field(ge=-1)] | None = None
    thinking_level: Literal["minimal", "low", "medium", "high"] | None = None

    @model_validator(mode="after")
    def _one_way_to_think(self) -> GeminiOptions:
        if self.thinking_budget is not None and self.thinking_level is not None:
            raise ValueError("give thinking_budget or thinking_level, not both")
        return self


class EngineConfig(Record):
    """Which engine runs which model, and how.

    `model` is a base model (short name, hub id or directory), or what a service calls its model;
    `method` is how it is asked to answer; where it is left out, as the model's own files say.
    `ask_below` is the probability of an order below which the merchant asks (0: never).
    `gguf` is a file for llama.cpp instead of `model`, `adapter` a LoRA directory (a LoRA GGUF for
    llama.cpp). `adapters` are several on one base, by name, chosen for each request: shipped
    models, directories or files. Merchants ask for the first one, characters with a procedure for
    `character` where there is one. `threads` None means the physical cores; `context` is the length
    of one dialogue in tokens, `parallel` the number of dialogues held ready (llama.cpp), requests
    sent (APIs) or answers made at once (vLLM). llama.cpp on a processor answers two a thread at a
    time. `seed` seeds the engine itself; every request carries its own.
    """

    engine: str
    model: str = DEFAULT_BASE
    method: str | None = None
    ask_below: Annotated[float, Field(ge=0, le=1)] = 0.0
    adapter: Path | None = None
    adapters: dict[str, Path] = {}
    gguf: Path | None = None
    threads: Annotated[int, Field(ge=1)] | None = None
    context: Annotated[int, Field(ge=64)] = 4096
    parallel: Annotated[int, Field(ge=1, le=256)] = 1
    seed: Annotated[int, Field(ge=0)] = 0
    verbose: bool = False
    scripted: ScriptedOptions = ScriptedOptions()
    llamacpp: LlamaCppOptions = LlamaCppOptions()
    transformers: TransformersOptions = TransformersOptions()
    vllm: VllmOptions = VllmOptions()
    openai: OpenAIOptions = OpenAIOptions()
    gemini: GeminiOptions = GeminiOptions()

    @field_validator("engine")
    @classmethod
    def _engine_is_known(cls, name: str) -> str:
        if name not in ENGINES:
            raise HaggleError(f"unknown engine {name!r}", hint=nearest(name, ENGINES))
        return name

    @field_validator("method")
    @classmethod
    def _method_is_known(cls, name: str | None) -> str | None:
        return None if name is None else get_method(name).name

    @model_validator(mode="after")
    def _adapters_can_be_loaded(self) -> EngineConfig:
        if self.adapters and self.adapter is not None:
            raise ValueError("give adapter or adapters, not both")
        if self.adapters and self.engine not in SEVERAL_ADAPTERS:
            raise ValueError(f"adapters: {self.engine} holds one; take llamacpp or vllm")
        return self

    @property
    def thread_count(self) -> int:
        """`threads`, or the physical cores this process may use."""
        return self.threads or physical_cores()


def physical_cores() -> int:
    """Cores without their hyperthreads, at most as many as this process may run on."""
    allowed = set(range(os.cpu_count() or 1))
    if hasattr(os, "sched_getaffinity"):
        allowed = os.sched_getaffinity(0)
    siblings = set()
    for cpu in allowed:
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        if path.is_file():
            siblings.add(path.read_text(encoding="utf-8").strip())
    if siblings:
        return len(siblings)
    hyperthreads = sys.platform == "win32"
    return max(1, len(allowed) // 2 if hyperthreads else len(allowed))
