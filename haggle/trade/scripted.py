"""An engine that is never asked: for answers that were written, not generated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from haggle.core.engine import Generation, GenerationRequest


class NullEngine:
    """Stands for a writer (the oracle, a corpus) where a merchant needs an engine's name."""

    model = "scripted"

    def __init__(self, name: str = "oracle") -> None:
        self.name = name

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """Always raises: written answers go through `Merchant.complete`."""
        raise NotImplementedError("written answers go through Merchant.complete")

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        """Always raises: written answers go through `Merchant.complete`."""
        raise NotImplementedError("written answers go through Merchant.complete")

    def close(self) -> None:
        """Nothing to free."""
