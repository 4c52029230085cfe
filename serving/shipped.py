"""The models that come with Haggle: adapters in `models/`, put on their base at first use.

Every room may name it in a serve config: `load_engine` puts its files in place. llama.cpp needs one
file of both, which is written at first use (half a minute) and kept.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from haggle.weights.merging import write_merged
from haggle.weights.models import DEFAULT_BASE, haggle_home, locate_base

if TYPE_CHECKING:
    from serving.engines.config import EngineConfig

SHIPPED = "merchant-smollm2-135m-stepwise"
ONE_OUTPUT = "merchant-smollm2-135m"  # its forerunner, which writes decision and line at once
CHARACTER = "character-smollm2-135m"  # of characters that keep to a procedure
MODELS = (SHIPPED, ONE_OUTPUT, CHARACTER)
QUANTIZATION = "Q8_0"


def with_shipped_model(config: EngineConfig) -> EngineConfig:
    """The serve config with a shipped model's files in place, where it names one.

    llama.cpp gets the merged GGUF, kept once per adapter in the haggle home; the other engines get
    base and adapter. Other configs come back unchanged. Raises HaggleError where the adapter or the
    base model is not there.
    """
    if config.model not in MODELS or config.gguf is not None:
        return config
    if config.engine == "llamacpp":
        return config.model_copy(update={"gguf": shipped_gguf(config.model)})
    if config.engine in {"transformers", "vllm"}:
        adapter = shipped_adapter(config.model)
        return config.model_copy(update={"model": DEFAULT_BASE, "adapter": adapter})
    return config


def shipped_adapter(name: str = SHIPPED) -> Path:
    """The adapter's directory. Raises HaggleError where there is none."""
    folder = ROOT / "models" / name / "adapter"
    if not (folder / "adapter_model.safetensors").is_file():
        raise HaggleError(
            f"the model {name!r} is not in this copy of Haggle",
            where=str(folder),
            hint="train one (`haggle demo`) and give its file with --gguf",
        )
    return folder


def shipped_gguf(name: str = SHIPPED) -> Path:
    """A shipped model as one GGUF file, written where it is not there yet."""
    adapter = shipped_adapter(name)
    digest = sha256((adapter / "adapter_model.safetensors").read_bytes()).hexdigest()[:12]
    folder = haggle_home() / "merchants" / f"{name}-{digest}"
    path = folder / f"{DEFAULT_BASE}-haggle-{QUANTIZATION}.gguf"
    if not path.is_file():
        base = locate_base(gguf_first=True)
        print(f"Building {name} from its adapter and {base.name} (once) ...", flush=True)
        write_merged(adapter, base, path, QUANTIZATION)
    return path
