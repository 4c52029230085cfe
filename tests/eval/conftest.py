"""A stand-in model that knows what the player meant, and spoils its answers as a test asks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from data_gen.play import Play
from eval import experiment
from eval.turns import turns_of
from haggle.core.engine import Generation, GenerationRequest
from haggle.trade.wire import encode_compact

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


class Memory:
    """An engine that knows the right answers to a data set's turns, but for every `worse`-th one;
    what `spoil` makes of them is what it says."""

    name = "memory"

    def __init__(
        self,
        path: Path,
        worse: int = 0,
        split: str = "test",
        spoil: Callable[[str], str] = lambda text: text,
    ) -> None:
        self.model = f"memory-{worse}"
        self.worse = worse
        self.spoil = spoil
        self.asked = 0
        self.right = {json.dumps(t["messages"]): t["right"] for t in turns_of(path, split)}

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        answers = []
        for request in requests:
            self.asked += 1
            assert request.constraint is None and request.temperature == 0
            text = self.right[json.dumps([asdict(m) for m in request.messages])]
            bad = self.worse and self.asked % self.worse == 0
            answers.append(Generation("oops" if bad else self.spoil(text)))
        return answers

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        raise NotImplementedError

    def close(self) -> None:
        pass


@pytest.fixture(scope="session")
def memory() -> type[Memory]:
    """The class of engines that know a data set's answers."""
    return Memory
