"""What an engine serves: players at once, what the guard costs, what changing adapters costs.

Every figure is taken beside what it is compared with, in turns, so that whatever else the machine
does falls on both. Turns are asked for as they are served: `ask_below` as the serve config has it,
the sentence model where it is installed.
"""

from __future__ import annotations

import random
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from data_gen.play import Play, start_play
from data_gen.worlds import Shop, sample_shop, shop_of
from haggle.core.engine import Engine, Generation, GenerationRequest, Message
from haggle.core.errors import HaggleError
from haggle.language.english.linker import load_english
from haggle.rates import percentiles
from haggle.trade.merchant import Guard, Merchant
from haggle.trade.methods import get_method
from haggle.trade.records import SCENARIOS, TurnRecord
from haggle.trade.session import Session
from haggle.trade.world import World
from haggle.trade.world_io import named_world

Tell = Callable[[str], None]
TALK = 12  # turns at the most
SPOKEN = re.compile(r'"say":"[^"]')
LINES = (
    "Good day! What have you got for a traveller?",
    "I will take two of the first one.",
    "And three more of the second, please.",
    "That is too much, could you do ten percent less?",
    "Tell me more about the first one.",
    "Make it four of the first one.",
)


@dataclass(frozen=True)
class Timed:
    """One turn: seconds in all, until the first spoken word, outside the engine (by the clock, of
    the processor), of reading and writing where the engine tells them (0 where not); tokens."""

    seconds: float
    first_word: float
    own: float
    processor: float
    read_s: float
    write_s: float
    prompt_tokens: int
    read_tokens: int
    made_tokens: int
    prompt: tuple[Message, ...]


class Watched:
    """An engine whose requests, answers and seconds are kept until they are asked for; for one
    thread."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.name, self.model = engine.name, engine.model
        self.requests: list[GenerationRequest] = []
        self.answers: list[Generation] = []
        self.seconds = self.processor = 0.0

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """As the engine does."""
        self.requests += requests
        with self._clock():
            answers = self.engine.generate(requests)
        self.answers += answers
        return answers

    def stream(self, request: GenerationRequest) -> Iterator[str | Generation]:
        """As the engine does."""
        self.requests.append(request)
        pieces = self.engine.stream(request)
        while True:
            with self._clock():
                piece = next(pieces, None)
            if piece is None:
                return
            if isinstance(piece, Generation):
                self.answers.append(piece)
            yield piece

    @contextmanager
    def _clock(self) -> Iterator[None]:
        start, processor = time.perf_counter(), time.thread_time()
        yield
        self.seconds += time.perf_counter() - start
        self.processor += time.thread_time() - processor

    def close(self) -> None:
        """The engine belongs to somebody else."""


def timed_turn(
    engine: Engine, guard: Guard, session: Session, line: str, ask_below: float
) -> tuple[Timed, TurnRecord]:
    """Answer a line as a player hears it, word by word."""
    watched = Watched(engine)
    processor, start, text, first = time.thread_time(), time.perf_counter(), "", 0.0
    for piece in Merchant(watched, guard, ask_below=ask_below).stream(session, line):
        if isinstance(piece, str):
            text += piece
            if not first and SPOKEN.search(text):
                first = time.perf_counter() - start
        elif isinstance(piece, TurnRecord):
            turn = piece
    seconds, processor = time.perf_counter() - start, time.thread_time() - processor
    answers = watched.answers
    return Timed(
        seconds=seconds,
        first_word=first or seconds,
        own=seconds - watched.seconds,
        processor=processor - watched.processor,
        read_s=sum(answer.read_s for answer in answers),
        write_s=sum(answer.write_s for answer in answers),
        prompt_tokens=answers[0].prompt_tokens,
        read_tokens=sum(answer.read_tokens for answer in answers),
        made_tokens=sum(answer.completion_tokens for answer in answers),
        prompt=watched.requests[0].messages,
    ), turn


def open_session(world: World, method: str) -> Session:
    return Session(world, method=get_method(method), linker=load_english("auto"))


def guard_beside_none(
    engine: Engine, method: str, ask_below: float, world: str, turns: int, tell: Tell
) -> dict[str, Any]:
    """The same turns guarded, unguarded and as bare text of the same length, one after another."""
    kept: list[tuple[Timed, Timed, float]] = []
    for number in range(1, turns + 1):
        if number % len(LINES) == 1:
            session = open_session(named_world(world), method)
        line = LINES[(number - 1) % len(LINES)]
        timed: dict[str, Timed] = {}
        before = session.branch()
        for guard in ("off", "state") if number % 2 else ("state", "off"):
            _forget(engine, before, line)
            copy = session if guard == "state" else before.branch()
            timed[guard], _ = timed_turn(engine, guard, copy, line, ask_below)  # type: ignore[arg-type]
        bare = _bare(engine, before, line, timed["state"].made_tokens)
        kept.append((timed["state"], timed["off"], bare))
        tell(f"guard: turn {number} of {turns}")
    return {
        "turns": turns,
        "guarded": summary([guarded for guarded, _, _ in kept]),
        "unguarded": summary([free for _, free, _ in kept]),
        "raw_s": statistics.median(bare for _, _, bare in kept),
        "turn_ratio": statistics.median(g.seconds / f.seconds for g, f, _ in kept),
        "first_word_ratio": statistics.median(g.first_word / f.seconds for g, f, _ in kept),
        "raw_ratio": statistics.median(g.seconds / bare for g, _, bare in kept),
    }


def _forget(engine: Engine, session: Session, line: str) -> None:
    """Leave only the dialogue before `line` in the engine's cache."""
    messages = Merchant(engine, "off").request(session, line).messages
    engine.generate([GenerationRequest(messages[:-1], max_tokens=1)])


def _bare(engine: Engine, session: Session, line: str, tokens: int) -> float:
    """Seconds for as many tokens behind the same prompt, without a grammar."""
    _forget(engine, session, line)
    messages = Merchant(engine, "off").request(session, line).messages
    start = time.perf_counter()
    made = engine.generate([GenerationRequest(messages, max_tokens=tokens)])[0].completion_tokens
    return (time.perf_counter() - start) * tokens / max(made, 1)


def players_at_once(
    engine: Engine,
    method: str,
    ask_below: float,
    world: str,
    players: Sequence[int],
    turns: int,
    tell: Tell,
) -> list[dict[str, Any]]:
    """Scripted players that each speak as soon as they are answered, for each number of them.

    Each number plays the same talks, as many as the most players. `raw_turns_per_s` is the engine
    alone, as many at once: the same prompts and as many tokens, without Haggle and any grammar.
    Both have the talk so far in the cache and read what is new (`read_tokens`, `raw_read_tokens`).
    """
    rows = []
    shop = shop_of(named_world(world))
    for number in players:
        plays = [_play(shop, method, seed) for seed in range(max(players))]
        # The first line of each, so that its prompt's beginning is there.
        openings = [_speak(engine, play, ask_below) for play in plays]
        with ThreadPoolExecutor(number) as pool:
            start = time.perf_counter()
            talks = list(pool.map(lambda play: _talk(engine, play, turns, ask_below), plays))
            elapsed = time.perf_counter() - start
            for opening in filter(None, openings):
                _bare_talk(engine, [opening])
            start = time.perf_counter()
            bare_talks = list(pool.map(lambda talk: _bare_talk(engine, talk), talks))
            bare = time.perf_counter() - start
        timed = [turn for talk in talks for turn in talk]
        answers = [answer for talk in bare_talks for answer in talk]
        made = sum(answer.completion_tokens for answer in answers)
        share = made / max(sum(turn.made_tokens for turn in timed), 1)
        rows.append(
            {"players": number, "turns_per_s": len(timed) / elapsed}
            | {"raw_turns_per_s": len(timed) * share / bare}
            | {"raw_read_tokens": statistics.median(answer.read_tokens for answer in answers)}
            | summary(timed)
        )
        tell(f"{number} players: {len(timed)} turns")
    return rows


def adapters_in_turns(
    engine: Any, method: str, world: str, turns: int, tell: Tell
) -> dict[str, Any]:
    """Requests that stay with one adapter of the engine's base beside requests that go to and fro.

    Both read the same prompts, which grow by a line a turn. Raises HaggleError where the engine has
    fewer than two adapters.
    """
    names = list(getattr(getattr(engine, "config", None), "adapters", {}))
    if len(names) < 2:
        raise HaggleError(
            "this engine has no two adapters", where="--part", hint="take --engine one_base"
        )
    voices = [engine.with_adapter(name) for name in names[:2]]
    session = open_session(named_world(world), method)
    kept: dict[str, list[tuple[float, int]]] = {"staying": [], "switching": []}
    for number in range(turns):
        line = LINES[number % len(LINES)]
        messages = Merchant(engine, "off").request(session, line).messages
        request = GenerationRequest(messages, max_tokens=32)
        for kind, before in (("staying", voices[0]), ("switching", voices[1])):
            before.generate([request])
            start = time.perf_counter()
            answer = voices[0].generate([request])[0]
            kept[kind].append((time.perf_counter() - start, answer.read_tokens))
        timed_turn(engine, "state", session, line, 0.0)
        tell(f"adapters: turn {number + 1} of {turns}")
    return {
        "turns": turns,
        "slots": engine.config.parallel,
        **{f"{kind}_s": statistics.median(s for s, _ in some) for kind, some in kept.items()},
        **{
            f"{kind}_read_tokens": statistics.median(read for _, read in some)
            for kind, some in kept.items()
        },
    }


def own_work(
    engine: Engine, method: str, ask_below: float, sizes: Sequence[int], turns: int, tell: Tell
) -> list[dict[str, Any]]:
    """Milliseconds of a turn that are not the engine's, in shops of several sizes: by the clock,
    and of the processor, which tell the truth on a busy machine.

    Scripted players, one after another; no sentence model. The first talk in a shop is not timed:
    it reads word lists and prompts.
    """
    rows = []
    for size in sizes:
        shop = sample_shop(random.Random(size), "test", (size, size))
        timed: list[Timed] = []
        for seed in count():
            talk = _talk(engine, _play(shop, method, seed), TALK, ask_below)
            timed += talk if seed else []
            tell(f"{size} items: {min(len(timed), turns)} of {turns} turns")
            if len(timed) >= turns:
                break
        kept = timed[:turns]
        own = percentiles([1000 * turn.own for turn in kept])
        processor = percentiles([1000 * turn.processor for turn in kept])
        rows.append(
            {"items": size, "turns": turns, "own_p50_ms": own["p50"], "own_p95_ms": own["p95"]}
            | {"cpu_p50_ms": processor["p50"], "cpu_p95_ms": processor["p95"]}
            | {"turn_p50_s": percentiles([turn.seconds for turn in kept])["p50"]}
        )
    return rows


def _play(shop: Shop, method: str, seed: int) -> Play:
    play = start_play(shop, SCENARIOS[0], seed, "test", get_method(method))
    play.player.max_rounds = 100
    return play


def _speak(engine: Engine, play: Play, ask_below: float) -> Timed | None:
    line = play.next_line()
    if line is None:
        return None
    goal = play.goal()
    timed, turn = timed_turn(engine, "state", play.session, line, ask_below)
    play.add(turn, goal)
    return timed


def _talk(engine: Engine, play: Play, turns: int, ask_below: float) -> list[Timed]:
    spoken = (_speak(engine, play, ask_below) for _ in range(turns))
    return [timed for timed in spoken if timed is not None]


def _bare_talk(engine: Engine, talk: Sequence[Timed]) -> list[Generation]:
    """Make as many tokens behind each prompt as its turn took, one after another.

    The prompts begin otherwise than those of the turns, which the engine may have in its cache.
    """
    answers = []
    for turn in talk:
        first, *others = turn.prompt
        prompt = (replace(first, content=f"Again.\n{first.content}"), *others)
        request = GenerationRequest(prompt, max_tokens=max(turn.made_tokens, 1))
        answers += engine.generate([request])
    return answers


def summary(timed: Sequence[Timed]) -> dict[str, Any]:
    """Percentiles of the seconds, and medians of the rest."""
    seconds = [t.seconds for t in timed]
    if not seconds:
        raise HaggleError("no turn was timed", hint="ask for more turns")
    medians = {
        name: statistics.median(getattr(t, name) for t in timed)
        for name in ("first_word", "prompt_tokens", "read_tokens", "made_tokens")
    }
    return (
        {f"{name}_s": value for name, value in percentiles(seconds, (50, 95, 99)).items()}
        | {"longest_s": max(seconds)}
        | medians
    )
