"""Dialogues that ask models: each is a coroutine, and many of them share every engine call.

A dialogue yields what it wants to know and is sent the answers; `drive` keeps several under way and
puts the questions of all of them into one batch.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from data_gen.teachers.report import RoleTally
from haggle.core.engine import Generation, GenerationRequest, Message
from haggle.core.storage import writable

Role = Literal["teacher", "player", "rewriter", "judge"]
T = TypeVar("T")
AHEAD = 4  # finished dialogues that may wait for an earlier one, in multiples of those under way
ECHO = 5
MAX_QUOTED = 1200  # characters of a rejected answer that are shown to the model again


@dataclass(frozen=True, slots=True)
class Ask:
    """One question of a dialogue to the model in a role."""

    role: Role
    request: GenerationRequest


Asking = Generator[list[Ask], list[Generation], T]
"""A part of a dialogue: yields questions, is sent their answers, returns a T."""


class Rejected(Exception):
    """An answer that cannot be used. `reason` is counted, `message` is what the model reads."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        self.message = message
        super().__init__(f"{reason}: {message}")


@cache
def environment() -> Environment:
    """The jinja environment of this room's prompts; a missing variable is an error."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "prompts"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def prompt(name: str, **values: Any) -> str:
    """The prompt template `prompts/<name>.jinja`, filled."""
    return environment().get_template(f"{name}.jinja").render(values).strip()


def again(
    request: GenerationRequest, answer: Generation, rejected: Rejected, attempt: int
) -> GenerationRequest:
    """The request once more, with the rejected answer and why it was rejected behind it.

    Both are in this request only: no history keeps them.
    """
    said = writable(answer.text.strip())[:MAX_QUOTED] or "(nothing)"
    correction = prompt("again", reason=rejected.message)
    messages = (*request.messages, Message("assistant", said), Message("user", correction))
    return replace(request, messages=messages, seed=request.seed + attempt)


def until_accepted(
    role: Role,
    requests: Sequence[GenerationRequest],
    accept: Callable[[int, Generation], T],
    max_attempts: int,
    tally: RoleTally,
) -> Asking[dict[int, T]]:
    """What `accept` makes of an answer to each request, by index; without those given up.

    `accept` raises Rejected for an answer that cannot be used; it is asked for again with the
    reason, `max_attempts` times in all. All requests still open are asked together.
    """
    tally.turns += len(requests)
    accepted: dict[int, T] = {}
    left = dict(enumerate(requests))
    for attempt in range(max_attempts):
        if not left:
            break
        answers = yield [Ask(role, request) for request in left.values()]
        for index, answer in zip(list(left), answers, strict=True):
            tally.answered(answer)
            try:
                accepted[index] = accept(index, answer)
            except Rejected as rejected:
                tally.reject(rejected.reason)
                left[index] = again(requests[index], answer, rejected, attempt + 1)
            else:
                tally.accept(attempt)
                del left[index]
    return accepted


def checked_ending(answer: Generation) -> str:
    """The text of an answer that came to its end. Raises Rejected for none, or one cut off."""
    text = answer.text.strip()
    if not text:
        raise Rejected("empty", "it was empty")
    if answer.finish_reason == "length":
        raise Rejected("truncated", "it was too long and was cut off; be shorter")
    return text


def refuse_echo(text: str, request: GenerationRequest, allowed: str = "") -> None:
    """Raise Rejected when a line repeats its instructions: `ECHO` words of the system message in a
    row that are not in `allowed`."""
    spoken = _words(text)
    told, free = (f" {' '.join(_words(t))} " for t in (request.messages[0].content, allowed))
    for at in range(len(spoken) - ECHO + 1):
        piece = f" {' '.join(spoken[at : at + ECHO])} "
        if piece in told and piece not in free:
            raise Rejected("echo", "it repeated the instructions; write the line itself")


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


@dataclass
class _Talk(Generic[T]):
    """One coroutine and the questions it waits on; `result` once `done`."""

    talk: Asking[T]
    asks: list[Ask] = field(default_factory=list)
    done: bool = False
    result: T | None = None

    def go_on(self, answers: list[Generation] | None = None) -> None:
        try:
            self.asks = self.talk.send(answers) if answers is not None else next(self.talk)
        except StopIteration as stop:
            self.asks, self.done, self.result = [], True, stop.value


def drive(
    talks: Iterable[Asking[T]],
    answer: Callable[[Sequence[Ask]], list[Generation]],
    width: int,
) -> Iterator[T]:
    """The results of `talks`, in order, with up to `width` of them under way at once.

    Whatever `answer` raises goes through; the dialogues under way are then lost, the results
    yielded before are not.
    """
    coming = iter(talks)
    line: deque[_Talk[T]] = deque()
    more = True
    try:
        while True:
            while line and line[0].done:
                yield line.popleft().result  # type: ignore[misc]
            while more and len(line) < AHEAD * width and _open(line) < width:
                coroutine = next(coming, None)
                if coroutine is None:
                    more = False
                    break
                line.append(_Talk(coroutine))
                line[-1].go_on()
            waiting = [talk for talk in line if not talk.done]
            if waiting:
                answers = iter(answer([ask for talk in waiting for ask in talk.asks]))
                for talk in waiting:
                    talk.go_on([next(answers) for _ in talk.asks])
            elif not line and not more:
                return
    finally:
        for left in line:
            left.talk.close()


def _open(line: Iterable[_Talk[T]]) -> int:
    return sum(not talk.done for talk in line)
