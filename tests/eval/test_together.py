"""Threads at one engine: one batch for all that wait; who is done or fails holds up nobody."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from eval.together import Together
from haggle.core.engine import Generation, GenerationRequest, Message


class Echo:
    """Answers with the last line, and remembers how many were asked at once."""

    name, model = "echo", "echo"

    def __init__(self, fails: str = "") -> None:
        self.batches: list[int] = []
        self.fails = fails

    def generate(self, requests):
        self.batches.append(len(requests))
        if self.fails and any(request.messages[-1].content == self.fails for request in requests):
            raise RuntimeError("too long")
        return [Generation(request.messages[-1].content) for request in requests]

    def stream(self, request):
        raise NotImplementedError

    def close(self) -> None:
        pass


def ask(text: str) -> list[GenerationRequest]:
    return [GenerationRequest((Message("user", text),))]


def test_threads_share_batches_and_get_their_own_answers():
    engine = Echo()
    together, start = Together(engine), Barrier(4)

    def talk(number: int) -> list[str]:
        with together.taking_part():
            start.wait()
            asked = [f"{number}/{turn}" for turn in range(3 + number)]
            return [together.generate(ask(text))[0].text for text in asked]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(talk, range(4)))
    assert found == [[f"{n}/{turn}" for turn in range(3 + n)] for n in range(4)]
    assert engine.batches == [4, 4, 4, 3, 2, 1], "who is done is not waited for"


def test_a_request_that_fails_fails_alone():
    together, start = Together(Echo(fails="bad")), Barrier(2)

    def talk(text: str) -> str:
        with together.taking_part():
            start.wait()
            try:
                return together.generate(ask(text))[0].text
            except RuntimeError as error:
                return str(error)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(talk, ["good", "bad"])) == ["good", "too long"]
