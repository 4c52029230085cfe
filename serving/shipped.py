"""The model that comes with Haggle: an adapter in `models/`, put on its base at first use.

Every room may name it in a serve config: `load_engine` puts its files in place. Only llama.cpp
needs a file that is made first; who can make it (the command line can) gives `build`.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from haggle.weights.models import DEFAULT_BASE, haggle_home

if TYPE_CHECKING:
    from serving.engines.config import EngineConfig

SHIPPED = "merchant-smollm2-135m"
QUANTIZATION = "Q8_0"

Build = Callable[[Path, Path], Path]
"""Makes the GGUF of an adapter (first directory) in a new directory (the second)."""


def with_shipped_model(config: EngineConfig, build: Build | None = None) -> EngineConfig:
    """The serve config with the shipped model's files in place, where it names that model.

    llama.cpp gets the merged GGUF, kept once per adapter in the haggle home; the other engines get
    base and adapter. Other configs come back unchanged. Raises HaggleError where this checkout has
    no adapter, or where the GGUF is not there yet and there is no `build`.
    """
    if config.model != SHIPPED or config.gguf is not None:
        return config
    if config.engine == "llamacpp":
        return config.model_copy(update={"gguf": shipped_gguf(build)})
    if config.engine in {"transformers", "vllm"}:
        return config.model_copy(update={"model": DEFAULT_BASE, "adapter": shipped_adapter()})
    return config


def shipped_adapter() -> Path:
    """The adapter's directory. Raises HaggleError where this checkout has none."""
    folder = ROOT / "models" / SHIPPED / "adapter"
    if not (folder / "adapter_model.safetensors").is_file():
        raise HaggleError(
            f"the model {SHIPPED!r} is not in this checkout",
            where=str(folder),
            hint="train one (`haggle demo`) and give its file with --gguf",
        )
    return folder


def shipped_gguf(build: Build | None = None) -> Path:
    """The shipped model as one GGUF file, made by `build` where it is not there yet."""
    adapter = shipped_adapter()
    digest = sha256((adapter / "adapter_model.safetensors").read_bytes()).hexdigest()[:12]
    target = haggle_home() / "merchants" / f"{SHIPPED}-{digest}"
    if found := sorted(target.glob(f"*{QUANTIZATION}.gguf")):
        return found[0]
    if build is None:
        raise HaggleError(
            f"the model {SHIPPED!r} has not been made into a GGUF on this machine yet",
            where=str(target),
            hint="start it once, e.g. with `haggle chat`, or use pipeline.shipped",
        )
    return build(adapter, target)
