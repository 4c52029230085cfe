"""Engines with weights that were just trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from haggle.core.errors import HaggleError
from serving.engines import open_engine, serve_config


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
