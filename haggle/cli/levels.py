"""Options that name a guard level and a method, checked."""

from __future__ import annotations

from typing import Any

from haggle.core.config import located


def linker(embeddings: str) -> Any:
    """The reader of players' lines for a value of `--embeddings`."""
    from haggle.core.errors import HaggleError, nearest
    from haggle.language.embeddings import Wanted, load_embedder
    from haggle.language.english.linker import English

    choices: dict[str, Wanted] = {"off": False, "on": True, "auto": "auto"}
    with located("--embeddings"):
        if embeddings not in choices:
            raise HaggleError(f"unknown value {embeddings!r}", hint=nearest(embeddings, choices))
        return English(load_embedder(choices[embeddings]))


def check_level(guard: str, method: str) -> Any:
    """The guard level, when both it and the method are known."""
    from haggle.trade.merchant import check_guard
    from haggle.trade.methods import get_method

    with located("--method"):
        get_method(method)
    with located("--guard"):
        return check_guard(guard)
