"""How long the threads of llama.cpp and PyTorch wait for each other awake, before they sleep.

OpenMP's default is to wait awake for milliseconds: beside a game, or any other busy program, both
then drop to a tenth of their speed. Threads that sleep at once lose half of the speed on a machine
that does nothing else. A few microseconds awake keep nearly all of both (docs/training.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

# Read once, when OpenMP is loaded. GNU's goes by the count, other ones by the policy.
WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "300"}


def wait_briefly() -> None:
    """Set the waiting of libraries that are loaded later, where the user has not."""
    if not WAITING.keys() & os.environ.keys():
        os.environ.update(WAITING)


@contextmanager
def brief_waits() -> Iterator[None]:
    """Set the waiting of libraries that are loaded meanwhile, where the user has not."""
    before = {name: os.environ.get(name) for name in WAITING}
    wait_briefly()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
