"""Engines for the commands: by name, with the shipped model built where it is missing, or with
weights that were just trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from haggle.core.config import located, named_config
from haggle.core.errors import HaggleError
from pipeline.shipped import with_shipped_model


def start_run(run: Any) -> Any:
    """Start the engine of an experiment's run, be it the shipped model's."""
    from eval.experiment import engine_config
    from serving.engines import load_engine

    return load_engine(with_shipped_model(engine_config(run)))


def serve_config(name: str, where: str) -> Any:
    """A serve config by its name or file; `where` says which option names it."""
    from serving.engines import read_engine_config

    with located(where):
        path = named_config("serve", name)
    with located(str(path)):
        return read_engine_config(path)


def open_engine(engine: str, gguf: Path | None, model: str | None = None) -> Any:
    """The engine of a serve config, with another GGUF file or model directory if one is given."""
    from serving.engines import load_engine

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
    return load_engine(with_shipped_model(config))


def kind_of_weights(engine: str) -> str:
    """The kind of an engine, which has to be one for weights on this machine."""
    kind = str(serve_config(engine, "--engine").engine)
    if kind not in {"llamacpp", "transformers", "vllm"}:
        raise HaggleError(
            f"engine {kind!r} does not read weights from this machine",
            where="--engine",
            hint="take a serve config of llama.cpp, transformers or vLLM",
        )
    return kind


def open_weights(engine: str, weights: Path, target: Path, base: str | None = None) -> Any:
    """An engine with an adapter's or a checkpoint's weights, written to `target` in its form."""
    from training.export import export

    gguf = kind_of_weights(engine) == "llamacpp"
    types = ("Q8_0",) if gguf else ()
    result = export(weights, target, base, quantizations=types, verify=False, echo=lambda _: None)
    if gguf:
        return open_engine(engine, result.ggufs["Q8_0"])
    return open_engine(engine, None, str(result.merged))
