"""A stand-in model that knows what the player meant, and spoils its answers as a test asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from data_gen.play import Play
from eval import experiment
from haggle.engine import Generation, GenerationRequest
from haggle.wire import encode_compact

Spoil = Callable[[int, str], str]


@dataclass
class OracleEngine:
    """Answers with the oracle's proposal; `spoil` gets the number of the call and the text."""

    spoil: Spoil = lambda call, text: text
    name: str = "oracle"
    model: str = "scripted"
    plays: list[Play] = field(default_factory=list)
    calls: int = 0
    lines: list[str] = field(default_factory=list)
    closed: bool = False

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        return [self._answer(request) for request in requests]

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        yield self._answer(request)

    def close(self) -> None:
        self.closed = True

    def _answer(self, request: GenerationRequest) -> Generation:
        self.calls += 1
        self.lines.append(request.messages[-1].content)
        for play in self.plays:
            if play._pending and play.session.messages(play._pending[0]) == request.messages:
                text = encode_compact(play.oracle, play.session.procedure)
                text = self.spoil(self.calls, text)
                return Generation(text, 300, len(text) // 4, latency_s=0.01 * self.calls)
        raise AssertionError("no dialogue is waiting for this request")


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., OracleEngine]]:
    """Makes engines that know every dialogue the experiment starts."""
    plays: list[Play] = []
    make_play = experiment.make_play

    def watched(*args: object) -> Play:
        plays.append(make_play(*args))  # type: ignore[arg-type]
        return plays[-1]

    monkeypatch.setattr(experiment, "make_play", watched)
    yield lambda spoil=lambda call, text: text: OracleEngine(spoil, plays=plays)
    experiment.close_engines()
