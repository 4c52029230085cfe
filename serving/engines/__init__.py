"""The engines behind `haggle.core.engine.Engine`. `load_engine` is the only way in."""

from __future__ import annotations

import importlib
from pathlib import Path

from haggle.core.config import install_hint, load_config, located, named_config
from haggle.core.engine import Engine
from haggle.core.errors import HaggleError
from haggle.trade.methods import DEFAULT_METHOD, METHODS
from haggle.weights.adapters import METHOD_KEY, taught_method
from haggle.weights.threads import brief_waits
from serving.engines.config import EngineConfig
from serving.engines.gguf import gguf_text
from serving.shipped import MODELS, adapter_dir, shipped_adapter, with_shipped_model

__all__ = [
    "CHARACTERS",
    "EngineConfig",
    "for_characters",
    "load_engine",
    "method_for",
    "open_engine",
    "read_engine_config",
    "serve_config",
]

CHARACTERS = "character"  # the serve config, or the adapter of one, that plays characters

# Per engine: its module, its class, and the extra of pyproject.toml that it needs.
_MODULES = {
    "scripted": ("serving.engines.scripted", "ScriptedEngine", ""),
    "llamacpp": ("serving.engines.llamacpp_engine", "LlamaCppEngine", "llamacpp"),
    "transformers": ("serving.engines.transformers_engine", "TransformersEngine", "serve"),
    "openai": ("serving.engines.openai_engine", "OpenAIEngine", "api"),
    "gemini": ("serving.engines.gemini_engine", "GeminiEngine", "api"),
    "vllm": ("serving.engines.vllm_engine", "VllmEngine", "vllm"),
}


def read_engine_config(name: str | Path) -> EngineConfig:
    """The config `configs/serve/<name>.yaml`, or the file `name`."""
    return load_config(named_config("serve", str(name)), EngineConfig)


def load_engine(config: EngineConfig) -> Engine:
    """Start the engine a config describes; its model may be the shipped one.

    Raises HaggleError when its packages are not installed, or a model file is missing or cut off.
    """
    module_name, class_name, extra = _MODULES[config.engine]
    try:
        config = with_shipped_model(config)
        with brief_waits():
            module = importlib.import_module(module_name)
            engine: Engine = getattr(module, class_name)(config)
    except ImportError as error:
        raise HaggleError(
            f"engine {config.engine!r} cannot be started: {error}",
            hint=install_hint(extra),
        ) from error
    return engine


def serve_config(name: str, where: str) -> EngineConfig:
    """A serve config by its name or file; `where` says which option names it."""
    with located(where):
        path = named_config("serve", name)
    with located(str(path)):
        return read_engine_config(path)


def method_of(engine: str, gguf: Path | None = None, model: str | None = None) -> str:
    """The method that a serve config names, or else that the files of its model say it was taught
    (`gguf` and `model` take its place); the default one where they say nothing."""
    config = serve_config(engine, "--engine")
    if gguf or model:
        config = config.model_copy(update={"gguf": gguf, "method": None, "adapter": None})
    return method_for(config if model is None else config.model_copy(update={"model": model}))


def method_for(config: EngineConfig) -> str:
    """The method that a config names, or else that its model was taught; the default one where
    nothing says it."""
    if config.method:
        return config.method
    told = _taught(config)
    return told if told in METHODS else DEFAULT_METHOD


def _taught(config: EngineConfig) -> str | None:
    """What the files of a config's model say of its method."""
    if config.gguf is not None:
        return gguf_text(config.gguf, METHOD_KEY) if config.gguf.is_file() else None
    if config.adapters:
        return taught_method(adapter_dir(next(iter(config.adapters.values()))))
    if config.model in MODELS and config.adapter is None:
        return taught_method(shipped_adapter(config.model))
    return taught_method(config.adapter or Path(config.model))


def ask_below_of(engine: str, gguf: Path | None = None, model: str | None = None) -> float:
    """Below which probability a serve config's model is asked about; 0 for another in its place."""
    return 0.0 if gguf or model else serve_config(engine, "--engine").ask_below


def for_characters(loaded: Engine) -> Engine:
    """The engine as characters with a procedure ask it: their adapter answers, where it has one."""
    with_adapter = getattr(loaded, "with_adapter", None)
    config = getattr(loaded, "config", None)
    if with_adapter is None or config is None or CHARACTERS not in config.adapters:
        return loaded
    own: Engine = with_adapter(CHARACTERS)
    return own


def open_engine(engine: str, gguf: Path | None, model: str | None = None) -> Engine:
    """The engine of a serve config, with another GGUF file or model directory if one is given."""
    config = serve_config(engine, "--engine")
    if gguf is not None and config.engine != "llamacpp":
        raise HaggleError(
            f"engine {config.engine!r} reads no GGUF",
            where="--gguf",
            hint="leave --gguf out, or take --engine llamacpp",
        )
    if model is not None and config.engine not in {"transformers", "vllm"}:
        raise HaggleError(
            f"engine {config.engine!r} reads no model directory",
            where="--model",
            hint="take --engine transformers or vllm_cpu; llama.cpp takes a file with --gguf",
        )
    config = config.model_copy(update={"gguf": gguf} if gguf else {})
    if model is not None:
        config = config.model_copy(update={"model": model, "adapter": None})
    return load_engine(config)
