"""How the C library hands out memory, from the start of a run to the end of its process.

glibc maps each large tensor anew and gives it back to the kernel when it is freed, so that every
page of it faults again in the next layer: half of a step went into the kernel (docs/training.md).
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of glibc's malloc.h
NEVER = -1


def keep_freed_memory() -> bool:
    """Let the C library keep freed memory for the next tensor; returns whether it can be told so
    (glibc alone)."""
    mallopt = _of_glibc("mallopt")
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, NEVER))


def give_back_memory() -> None:
    """Give the kernel what an earlier run of this process has kept, where the C library can."""
    gc.collect()
    if trim := _of_glibc("malloc_trim"):
        trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    return function
