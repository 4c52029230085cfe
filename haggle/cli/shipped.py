"""The model that comes with Haggle: an adapter in `models/`, put on its base at first use."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from haggle.config import ROOT
from haggle.errors import HaggleError

if TYPE_CHECKING:
    from serving.engines import EngineConfig

SHIPPED = "merchant-smollm2-135m"
QUANTIZATION = "Q8_0"


def with_shipped_model(config: EngineConfig) -> EngineConfig:
    """The serve config with the shipped model's files in place, where it names that model.

    llama.cpp gets the merged GGUF, built once per adapter in the haggle home (about half a minute);
    the other engines get base and adapter. Other configs come back unchanged.
    """
    if config.model != SHIPPED or config.gguf is not None:
        return config
    adapter = shipped_adapter()
    if config.engine == "llamacpp":
        return config.model_copy(update={"gguf": shipped_gguf()})
    if config.engine in {"transformers", "vllm"}:
        from haggle.models import DEFAULT_BASE

        return config.model_copy(update={"model": DEFAULT_BASE, "adapter": adapter})
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


def shipped_gguf() -> Path:
    """The shipped model as one GGUF file, built where it is not there yet."""
    from haggle.models import haggle_home

    adapter = shipped_adapter()
    digest = sha256((adapter / "adapter_model.safetensors").read_bytes()).hexdigest()[:12]
    target = haggle_home() / "merchants" / f"{SHIPPED}-{digest}"
    found = sorted(target.glob(f"*{QUANTIZATION}.gguf"))
    if found:
        return found[0]
    from training.export import export

    print(f"Building {SHIPPED} from its adapter (once) ...", flush=True)
    result = export(adapter, target, quantizations=(QUANTIZATION,), verify=False)
    return result.ggufs[QUANTIZATION]
