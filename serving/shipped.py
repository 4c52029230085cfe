"""The models that come with Haggle: adapters in `models/`, put on their base at first use.

Every room may name it in a serve config: `load_engine` puts its files in place. llama.cpp needs one
file of both, which is written at first use (half a minute) and kept; where a config has several
adapters on one base, the base and each adapter have a file of their own.
"""

from __future__ import annotations

from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING

from haggle.core.config import ROOT
from haggle.core.errors import HaggleError
from haggle.weights.adapters import folded
from haggle.weights.merging import write_base, write_lora, write_merged
from haggle.weights.models import DEFAULT_BASE, BaseModel, haggle_home, locate_base
from haggle.weights.saving import write_model

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
    if config.adapters:
        return _with_adapters(config)
    if config.model not in MODELS or config.gguf is not None:
        return config
    if config.engine == "llamacpp":
        return config.model_copy(update={"gguf": shipped_gguf(config.model)})
    if config.engine in {"transformers", "vllm"}:
        adapter = shipped_adapter(config.model)
        return config.model_copy(update={"model": DEFAULT_BASE, "adapter": adapter})
    return config


def adapter_dir(named: Path) -> Path:
    """The directory (or file) of an adapter, which may be that of a shipped model."""
    return shipped_adapter(str(named)) if str(named) in MODELS else named.expanduser()


def _with_adapters(config: EngineConfig) -> EngineConfig:
    adapters = {name: adapter_dir(named) for name, named in config.adapters.items()}
    if config.engine != "llamacpp":
        return config.model_copy(update={"adapters": adapters})
    files = {name: _lora_gguf(place, config.model) for name, place in adapters.items()}
    gguf = config.gguf or _base_gguf(config.model)
    return config.model_copy(update={"adapters": files, "gguf": gguf})


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
    file = f"{DEFAULT_BASE}-haggle-{QUANTIZATION}.gguf"
    path = _kept(name, adapter / "adapter_model.safetensors") / file
    if not path.is_file():
        base = locate_base(gguf_first=True)
        print(f"Building {name} from its adapter and {base.name} (once) ...", flush=True)
        write_merged(adapter, base, path, QUANTIZATION)
    return path


def merged_model(adapter: Path, base: BaseModel) -> Path:
    """A base with an adapter folded in, as a directory of bf16 weights, made where there is none.

    Adapters that stay apart are for several on one base: each token then pays for them.
    """
    path = _kept("merged", adapter / "adapter_model.safetensors") / base.name
    if not path.is_dir():
        from transformers import AutoTokenizer

        print(f"Putting {adapter} into {base.name} (once) ...", flush=True)
        write_model(path, folded(adapter, base), AutoTokenizer.from_pretrained(base.path))
    return path


def _lora_gguf(adapter: Path, model: str) -> Path:
    """An adapter as the LoRA GGUF that llama.cpp puts on a base; such a file is taken as it is."""
    if adapter.suffix == ".gguf":
        return adapter
    weights = adapter / "adapter_model.safetensors"
    if not weights.is_file():
        raise HaggleError(
            "no such adapter",
            where=str(adapter),
            hint=f"give a directory that `haggle train` wrote, or one of {', '.join(MODELS)}",
        )
    base = locate_base(model, gguf_first=True)
    path = _kept("lora", weights) / f"{base.name}-lora.gguf"
    if not path.is_file():
        print(f"Writing {adapter} for llama.cpp (once) ...", flush=True)
        write_lora(adapter, base, path)
    return path


def _base_gguf(model: str) -> Path:
    """A base as the merged models have it: unpacked as for training, then Q8_0."""
    base = locate_base(model, gguf_first=True)
    source = base.gguf_path or min(base.path.glob("*.safetensors"))
    path = _kept("base", source) / f"{base.name}-{QUANTIZATION}.gguf"
    if not path.is_file():
        print(f"Building {base.name} as {QUANTIZATION} (once) ...", flush=True)
        write_base(base, path, QUANTIZATION)
    return path


def _kept(name: str, source: Path) -> Path:
    """Where what is made of a file is kept: another file of the same name has another place."""
    with source.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()[:12]
    return haggle_home() / "merchants" / f"{name}-{digest}"
