"""Options that name a guard level and a method, checked."""

from __future__ import annotations

from typing import Any

from haggle.core.config import located


def check_level(guard: str, method: str) -> Any:
    """The guard level, when both it and the method are known."""
    from haggle.trade.merchant import check_guard
    from haggle.trade.methods import get_method

    with located("--method"):
        get_method(method)
    with located("--guard"):
        return check_guard(guard)
