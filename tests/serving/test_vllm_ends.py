"""How the vLLM engine ends, with another thing in vLLM's place: everyone is told, all is freed."""

from __future__ import annotations

import _thread
import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from haggle.core.engine import GenerationRequest, Message
from haggle.core.errors import HaggleError
from haggle.weights.models import DEFAULT_BASE, BaseModel
from serving.engines import EngineConfig, vllm_engine
from serving.engines.vllm_engine import VllmEngine

SECONDS = 10  # longer than anything here takes
ASKED = GenerationRequest((Message("user", "hello"),), max_tokens=4)


class Llm:
    """vLLM that never answers. `shutdown` waits until `go` is set."""

    errored = False

    def __init__(self) -> None:
        self.asked, self.stopping, self.go = threading.Event(), threading.Event(), threading.Event()
        self.go.set()
        self.shutdowns = 0

    def get_tokenizer(self) -> Any:
        return SimpleNamespace(encode=lambda text, add_special_tokens: [1, 2, 3])

    async def generate(self, *_: object, **__: object) -> AsyncIterator[Any]:
        self.asked.set()
        await asyncio.Event().wait()
        yield None

    def shutdown(self) -> None:
        self.shutdowns += 1
        self.stopping.set()
        assert self.go.wait(SECONDS)


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Llm:
    """What the engine starts in vLLM's place."""
    llm = Llm()
    base = BaseModel(Path("base"), "home", "MIT", None, DEFAULT_BASE)
    monkeypatch.setattr(vllm_engine, "resolve_base", lambda model: base)
    monkeypatch.setattr(vllm_engine, "_set_environment", lambda config: None)
    monkeypatch.setattr(vllm_engine, "_async_llm", lambda config, weights: llm)
    monkeypatch.setattr(vllm_engine, "hf_prompt", lambda *told: "hello")
    monkeypatch.setattr(VllmEngine, "_parameters", lambda *told, **more: None)
    errors = SimpleNamespace(VLLMError=ZeroDivisionError)
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(exceptions=errors))
    monkeypatch.setitem(sys.modules, "vllm.exceptions", errors)
    return llm


@pytest.fixture
def engine(llm: Llm) -> Iterator[VllmEngine]:
    engine = VllmEngine(EngineConfig(engine="vllm"))
    yield engine
    llm.go.set()
    engine.close()


def whole(engine: VllmEngine) -> object:
    return engine.generate([ASKED])


def streamed(engine: VllmEngine) -> object:
    return list(engine.stream(ASKED))


@pytest.mark.parametrize("ask", [whole, streamed])
def test_who_waits_when_the_engine_is_closed_is_told(
    engine: VllmEngine, llm: Llm, ask: Callable[[VllmEngine], object]
) -> None:
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(ask, engine)
        assert llm.asked.wait(SECONDS)
        engine.close()
        with pytest.raises(HaggleError, match="the engine was closed"):
            answer.result(SECONDS)


@pytest.mark.parametrize("ask", [whole, streamed])
def test_who_asks_while_vllm_stops_is_told(
    engine: VllmEngine, llm: Llm, ask: Callable[[VllmEngine], object]
) -> None:
    llm.go.clear()
    with ThreadPoolExecutor() as pool:
        closed = pool.submit(engine.close)
        assert llm.stopping.wait(SECONDS)
        answer = pool.submit(ask, engine)
        time.sleep(0.05)
        llm.go.set()
        closed.result(SECONDS)
        with pytest.raises(HaggleError, match="the engine was closed"):
            answer.result(SECONDS)
    assert not llm.asked.is_set()


@pytest.mark.parametrize("ask", [whole, streamed])
def test_who_asks_later_is_told(
    engine: VllmEngine, llm: Llm, ask: Callable[[VllmEngine], object]
) -> None:
    engine.close()
    engine.close()
    with pytest.raises(HaggleError, match="the engine was closed"):
        ask(engine)
    assert llm.shutdowns == 1


def test_ctrl_c_while_vllm_starts_stops_what_was_started(
    llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(config: EngineConfig, weights: Path) -> Llm:
        _thread.interrupt_main()
        time.sleep(0.1)
        return llm

    monkeypatch.setattr(vllm_engine, "_async_llm", start)
    with pytest.raises(KeyboardInterrupt):
        VllmEngine(EngineConfig(engine="vllm"))
    assert llm.shutdowns == 1


def test_vllm_is_stopped_where_its_tokenizer_cannot_be_read(
    llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(llm: Llm) -> None:
        raise OSError("no tokenizer")

    monkeypatch.setattr(Llm, "get_tokenizer", broken)
    with pytest.raises(OSError, match="no tokenizer"):
        VllmEngine(EngineConfig(engine="vllm"))
    assert llm.shutdowns == 1


def test_vllm_that_does_not_start_is_told_with_its_reason(
    llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(config: EngineConfig, weights: Path) -> Llm:
        raise ValueError("too little memory")

    monkeypatch.setattr(vllm_engine, "_async_llm", start)
    with pytest.raises(HaggleError, match="vLLM cannot start: too little memory"):
        VllmEngine(EngineConfig(engine="vllm"))
    assert llm.shutdowns == 0
