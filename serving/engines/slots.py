"""Which of llama.cpp's slots answers whom, so that each conversation finds its own prompt again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

A_THREAD = 2


def answers_at_once(slots: int, threads: int, on_gpu: bool) -> int:
    """How many answers are made together; the others wait in the order they came.

    On a processor two a thread: more take longer each and end no sooner in all.
    """
    return slots if on_gpu else min(slots, A_THREAD * threads)


class Slots:
    """A slot is held for a whole answer. It goes to the conversation that it served last, else to
    the one that was idle longest, so a newcomer takes nobody's prompt while there is room."""

    def __init__(self, count: int) -> None:
        self._texts = [""] * count
        self._free = list(range(count))  # the longest idle first
        self._changed = threading.Condition()

    @contextmanager
    def held(self, prompt: str) -> Iterator[int]:
        """Hold a slot while an answer to `prompt` is made; waits where all are busy."""
        with self._changed:
            self._changed.wait_for(lambda: self._free)
            slot = self._best(prompt)
            self._free.remove(slot)
        with self._kept(slot, prompt):
            yield slot

    @contextmanager
    def taken(self, prompt: str) -> Iterator[int | None]:
        """Hold the slot that was idle longest for a newcomer's `prompt`; None where all are
        busy."""
        with self._changed:
            slot = self._free.pop(0) if self._free else None
        if slot is None:
            yield None
            return
        with self._kept(slot, prompt):
            yield slot

    @contextmanager
    def _kept(self, slot: int, prompt: str) -> Iterator[None]:
        try:
            yield
        finally:
            with self._changed:
                self._texts[slot] = prompt
                self._free.append(slot)
                self._changed.notify()

    def _best(self, prompt: str) -> int:
        def continued(slot: int) -> int:
            text = self._texts[slot]
            return len(text) if prompt.startswith(text) else 0

        return max(self._free, key=continued)
