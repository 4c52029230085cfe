"""What a serve config says about the engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from haggle.config import Record
from haggle.errors import HaggleError, nearest
from haggle.models import DEFAULT_BASE

ENGINES = ("llamacpp", "scripted", "transformers", "vllm")


class ScriptedOptions(Record):
    """The answers of the scripted engine, first one first."""

    answers: tuple[str, ...] = ()


class LlamaCppOptions(Record):
    """Options of llama.cpp.

    `grammar`: llguidance costs least and keeps to the tokens the model was trained on; gbnf is
    llama.cpp's own. `template`: how messages become text; auto takes ChatML where the GGUF's own
    template is ChatML, otherwise that template. `cache_mib` bounds the memory for prompts put
    aside, `gpu_layers` -1 offloads all that fit.
    """

    grammar: Literal["auto", "llguidance", "gbnf"] = "auto"
    template: Literal["auto", "chatml", "model"] = "auto"
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
    max_sequences: Annotated[int, Field(ge=1)] = 32


class EngineConfig(Record):
    """Which engine runs which model, and how.

    `model` is a base model (short name, hub id or directory), `gguf` a file for llama.cpp instead
    of it, `adapter` a LoRA directory (a LoRA GGUF for llama.cpp). `threads` None means the
    physical cores; `context` is the length of one dialogue in tokens, `parallel` how many are
    served at once. `seed` seeds the engine itself; every request carries its own.
    """

    engine: str
    model: str = DEFAULT_BASE
    adapter: Path | None = None
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

    @field_validator("engine")
    @classmethod
    def _engine_is_known(cls, name: str) -> str:
        if name not in ENGINES:
            raise HaggleError(f"unknown engine {name!r}", hint=nearest(name, ENGINES))
        return name

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
