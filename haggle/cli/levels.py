"""Options that name a guard level and a method, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from haggle.core.config import located


def linker(embeddings: str) -> Any:
    """The reader of players' lines for a value of `--embeddings`."""
    from haggle.core.errors import HaggleError, nearest
    from haggle.language.english.linker import load_english
    from haggle.language.onnx_encoder import Wanted

    choices: dict[str, Wanted] = {"off": False, "on": True, "auto": "auto"}
    with located("--embeddings"):
        if embeddings not in choices:
            raise HaggleError(f"unknown value {embeddings!r}", hint=nearest(embeddings, choices))
        return load_english(choices[embeddings])


def check_method(
    method: str | None, engine: str, gguf: Path | None, model: str | None = None
) -> str:
    """The method named, or else that of the engine's model. Raises HaggleError for one unknown."""
    from haggle.trade.methods import get_method
    from serving.engines import method_of

    with located("--method"):
        return get_method(method).name if method else method_of(engine, gguf, model)


def check_level(guard: str) -> Any:
    """The guard level, when it is known."""
    from haggle.trade.merchant import check_guard

    with located("--guard"):
        return check_guard(guard)


def check_planner(planner: str) -> str:
    """The planner's method, when it is known; "" for none."""
    from haggle.planning.planner import check_method as known

    with located("--planner"):
        return known(planner) if planner else ""
