"""Gemini's REST form, against a stand-in: what is sent, what is read, what thoughts cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from haggle.core.codec import to_schema
from haggle.core.engine import Engine, Generation, GenerationRequest, Message
from haggle.core.errors import HaggleError
from serving.engines import EngineConfig, load_engine, read_engine_config

pytest.importorskip("google.genai")
pytest.importorskip("tenacity")

KEY = "AIza-very-secret-5b1c"
PRICES = {"input": 0.30, "output": 2.50, "as_of": "2026-11"}


def answer(*parts: Any, finish: str | None = "STOP", **fields: Any) -> dict[str, Any]:
    """A GenerateContentResponse; a part is its text or a whole part."""
    content = {"role": "model", "parts": [{"text": p} if isinstance(p, str) else p for p in parts]}
    candidate = {"content": content, "index": 0} | ({"finishReason": finish} if finish else {})
    usage = {
        "promptTokenCount": 1000, "candidatesTokenCount": 50, "thoughtsTokenCount": 200,
        "totalTokenCount": 1250,
    }  # fmt: skip
    body = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}
    return body | fields


def camel(record: dict[str, Any]) -> dict[str, Any]:
    """The keys in the service's own spelling; it reads the client's snake_case as well."""
    return {re.sub("_(.)", lambda m: m[1].upper(), key): v for key, v in record.items()}


@pytest.fixture
def gemini(service, monkeypatch) -> Iterator[Callable[..., Any]]:
    """Starts a `gemini` engine on the stand-in that waits only briefly between attempts."""
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    started = []

    def start(*, parallel: int = 4, **options: Any) -> Any:
        quick = {"base_url": service.url, "first_wait_s": 0.01, "timeout_s": 30.0}
        config = {"engine": "gemini", "model": "gemini-2.5-flash", "parallel": parallel}
        engine = load_engine(EngineConfig(**config, gemini=quick | options))  # type: ignore[arg-type]
        started.append(engine)
        return engine

    yield start
    for engine in started:
        engine.close()


# --- requests


def test_a_request_has_the_services_form(service, gemini, ask, constrain):
    service.plan = lambda number, heard: service.reply(answer("hello"))
    constraint = constrain("END", "OFFER_SELL")
    asked = ask("bye", constraint, max_tokens=80, temperature=0.7, seed=5)
    request = replace(
        asked,
        messages=(
            *asked.messages,
            Message("assistant", '{"say":"Sure."}'),
            Message("user", "player: and now?"),
        ),
    )
    engine = gemini(thinking_budget=0)
    assert isinstance(engine, Engine)
    engine.generate([request])
    heard = service.heard[0]
    assert heard.path == "/v1/models/gemini-2.5-flash:generateContent"
    assert heard.headers["x-goog-api-key"] == KEY
    body = heard.body
    assert [part["text"] for part in body["systemInstruction"]["parts"]] == [
        asked.messages[0].content
    ]
    assert [(c["role"], c["parts"][0]["text"]) for c in body["contents"]] == [
        ("user", asked.messages[1].content),
        ("model", '{"say":"Sure."}'),
        ("user", "player: and now?"),
    ]
    config = body["generationConfig"]
    assert camel(config.pop("thinkingConfig")) == {"thinkingBudget": 0}
    assert config == {
        "maxOutputTokens": 80,
        "temperature": 0.7,
        "seed": 5,
        "responseMimeType": "application/json",
        "responseJsonSchema": to_schema(constraint),
    }


def test_thinking_structure_and_room_are_the_configs(service, gemini, ask, constrain):
    service.plan = lambda number, heard: service.reply(answer("hello"))
    request = ask("bye", constrain("END"), max_tokens=80)
    gemini(thinking_level="low", thought_room=1000, structured="json_object").generate([request])
    gemini(structured="none", api_version="v1beta").generate([request])
    gemini().generate([ask("bye", max_tokens=80)])
    levels, free, unconstrained = (heard.body["generationConfig"] for heard in service.heard)
    assert camel(levels["thinkingConfig"]) == {"thinkingLevel": "LOW"}
    assert levels["maxOutputTokens"] == 1080
    assert levels["responseMimeType"] == "application/json"
    assert "responseJsonSchema" not in levels
    assert service.heard[1].path.startswith("/v1beta/models/")
    for config in (free, unconstrained):
        assert not {"responseMimeType", "responseJsonSchema", "thinkingConfig"} & set(config)


def test_a_budget_and_a_level_exclude_each_other():
    with pytest.raises(ValueError, match="not both"):
        EngineConfig(engine="gemini", gemini={"thinking_budget": 0, "thinking_level": "low"})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["gemini_flash", "gemini_pro"])
def test_the_shipped_configs_leave_room_for_the_thoughts_they_allow(name):
    config = read_engine_config(name).gemini
    assert config.prices is not None
    assert config.thought_room >= (config.thinking_budget or 0)


# --- answers


def test_thoughts_are_counted_paid_and_left_out_of_the_text(service, gemini, ask):
    thought = {"text": "What would a merchant say?", "thought": True}
    service.plan = lambda number, heard: service.reply(answer(thought, "Good ", "day!"))
    engine = gemini(prices=PRICES)
    made = engine.generate([ask("hello")])[0]
    assert replace(made, latency_s=0) == Generation("Good day!", 1000, 50, 200)
    usage = engine.usage()
    assert (usage.prompt_tokens, usage.completion_tokens, usage.thought_tokens) == (1000, 50, 200)
    assert usage.cost == pytest.approx((1000 * 0.30 + 250 * 2.50) / 1e6)
    assert usage.model_versions == {"gemini-2.5-flash": 1}
    assert usage.finish_reasons == {"STOP": 1}


def test_truncated_answers_are_passed_on_as_such(service, gemini, ask):
    service.plan = lambda number, heard: service.reply(answer("Good", finish="MAX_TOKENS"))
    engine = gemini()
    made = engine.generate([ask("hello")])[0]
    assert (made.text, made.finish_reason) == ("Good", "length")
    assert engine.usage().truncated == 1


def test_thoughts_that_eat_up_the_whole_answer_leave_an_empty_one(service, gemini, ask):
    empty = answer(finish="MAX_TOKENS")
    empty["candidates"][0]["content"] = {"role": "model"}
    service.plan = lambda number, heard: service.reply(empty)
    made = gemini().generate([ask("hello")])[0]
    assert (made.text, made.finish_reason) == ("", "length")


def test_a_blocked_prompt_or_answer_is_empty_and_counted(service, gemini, ask):
    def plan(number, heard):
        if number == 0:
            blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
            return service.reply(blocked | {"modelVersion": "gemini-2.5-flash"})
        return service.reply({"candidates": [{"finishReason": "SAFETY"}]})

    service.plan = plan
    engine = gemini(parallel=1)
    assert [a.text for a in engine.generate([ask("a"), ask("b")])] == ["", ""]
    assert engine.usage().finish_reasons == {"BLOCKED: PROHIBITED_CONTENT": 1, "SAFETY": 1}
    assert engine.usage().uncounted == 2


def test_a_changed_model_version_stops_the_run(service, gemini, ask):
    service.plan = lambda number, heard: service.reply(
        answer("hello", modelVersion="gemini-2.5-flash" if number < 2 else "gemini-3.5-flash")
    )
    engine = gemini()
    engine.generate([ask("one"), ask("two")])
    with pytest.raises(HaggleError, match=r"gemini-3\.5-flash' answers, 'gemini-2\.5-flash' did"):
        engine.generate([ask("three")])


def test_an_answer_is_kept_on_disk(service, gemini, ask, tmp_path):
    service.plan = lambda number, heard: service.reply(answer("hello"))
    file = tmp_path / "cache.sqlite"
    made = gemini(cache=file).generate([ask("hello")])
    assert gemini(cache=file).generate([ask("hello")]) == made
    gemini(cache=file, thinking_budget=128).generate([ask("hello")])
    assert len(service.heard) == 2
    assert KEY.encode() not in file.read_bytes()


# --- failures


def test_a_wait_told_in_the_body_is_kept(service, gemini, ask):
    busy = {
        "error": {
            "code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED",
            "details": [
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.2s"}
            ],
        }
    }  # fmt: skip
    service.plan = lambda number, heard: (
        service.reply(busy, status=429) if number == 0 else service.reply(answer("hello"))
    )
    engine = gemini()
    assert engine.generate([ask("hello")])[0].text == "hello"
    assert service.heard[1].at - service.heard[0].at >= 1.2
    assert engine.usage().retries == 1


@pytest.mark.parametrize("status", [500, 503])
def test_a_passing_failure_is_asked_again_by_us_alone(service, gemini, ask, status):
    error = {"error": {"code": status, "message": "overloaded", "status": "UNAVAILABLE"}}
    service.plan = lambda number, heard: service.reply(error, status=status)
    with pytest.raises(HaggleError, match=f"in 3 attempts: HTTP {status}: overloaded"):
        gemini(attempts=3).generate([ask("hello")])
    assert len(service.heard) == 3


def test_a_timeout_and_a_lost_connection_are_asked_again(service, gemini, ask):
    def plan(number, heard):
        late = 3.0 if number == 0 else 0.0
        return service.reply(answer("hello"), wait_s=late, cut=number == 1)

    service.plan = plan
    engine = gemini(timeout_s=1.5)
    assert engine.generate([ask("hello")])[0].text == "hello"
    assert engine.usage().retries == 2


def test_a_wrong_key_is_told_without_naming_it(service, gemini, ask):
    error = {
        "error": {
            "code": 400, "message": f"API key not valid: {KEY}", "status": "INVALID_ARGUMENT",
            "details": [{"reason": "API_KEY_INVALID"}],
        }
    }  # fmt: skip
    service.plan = lambda number, heard: service.reply(error, status=400)
    with pytest.raises(HaggleError, match="HTTP 400: API key not valid") as told:
        gemini().generate([ask("hello")])
    assert "GEMINI_API_KEY" in told.value.hint
    assert KEY not in str(told.value)
    assert len(service.heard) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<html>Please log in</html>", "other than JSON"),
        ({}, "no candidates"),
        ([1, 2], "the service"),
        ({"candidates": "none"}, "the service"),
    ],
)
def test_a_body_that_is_no_answer_is_told_at_once(service, gemini, ask, body, message):
    service.plan = lambda number, heard: service.reply(body)
    with pytest.raises(HaggleError, match=message) as told:
        gemini().generate([ask("hello")])
    assert "base_url" in told.value.hint
    assert len(service.heard) == 1


def test_the_key_must_be_set(gemini, monkeypatch):
    monkeypatch.delenv("GEMINI_API_KEY")
    with pytest.raises(HaggleError, match="GEMINI_API_KEY is not set"):
        gemini()


def test_the_environment_cannot_turn_it_to_another_service(service, gemini, ask, monkeypatch):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_API_KEY", "another")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
    service.plan = lambda number, heard: service.reply(answer("hello"))
    assert gemini().generate([ask("hello")])[0].text == "hello"
    assert service.heard[0].headers["x-goog-api-key"] == KEY


# --- streams


def test_a_stream_comes_in_pieces_and_ends_with_the_whole(service, gemini, ask):
    pieces = [answer("Good", finish=None), answer(" day", finish=None), answer("!")]
    service.plan = lambda number, heard: service.reply(None, events=pieces)
    engine = gemini()
    *texts, last = engine.stream(ask("hello"))
    assert texts == ["Good", " day", "!"]
    assert replace(last, latency_s=0) == Generation("Good day!", 1000, 50, 200)
    path = "/v1/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert service.heard[0].path == path


def test_a_stream_that_fails_before_its_first_word_is_asked_again(service, gemini, ask):
    def plan(number, heard):
        if number == 0:
            return service.reply({"error": {"code": 503, "message": "busy"}}, status=503)
        return service.reply(None, events=[] if number == 1 else [answer("hello")])

    service.plan = plan
    engine = gemini()
    assert [*engine.stream(ask("hello"))][:-1] == ["hello"]
    assert engine.usage().retries == 2


def test_a_stream_broken_off_halfway_is_an_error_not_an_answer(service, gemini, ask):
    service.plan = lambda number, heard: service.reply(None, events=[answer("Good", finish=None)])
    engine = gemini()
    stream = engine.stream(ask("hello"))
    assert next(stream) == "Good"
    with pytest.raises(HaggleError, match="broke off"):
        list(stream)
    assert engine.usage().answers == 0


def test_a_prompt_of_system_text_alone_is_possible(service, gemini):
    service.plan = lambda number, heard: service.reply(answer("hello"))
    gemini().generate([GenerationRequest((Message("user", "hi"),))])
    assert "systemInstruction" not in service.heard[0].body
