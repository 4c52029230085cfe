"""What every remote engine does: waits and asks again, keeps order and answers, counts, stops."""

from __future__ import annotations

import builtins
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from haggle.errors import HaggleError
from serving.engines import EngineConfig, load_engine
from serving.engines.accounting import Account, Reply, cost
from serving.engines.config import Prices
from serving.engines.request_cache import RequestCache, request_key

pytest.importorskip("tenacity")
from serving.engines.remote import retry_after

KEY = "sk-very-secret-7f3a"
PRICES = {"input": 2.0, "output": 8.0, "as_of": "2026-11"}


def failing_first(service, completion, count: int, **failure):
    """The first `count` requests fail, later ones are answered."""
    return lambda number, heard: (
        service.reply({"error": {"message": "busy"}}, **failure)
        if number < count
        else service.reply(completion())
    )


# --- asking again


def test_a_429_is_asked_again_after_as_long_as_the_service_says(service, completion, remote, ask):
    service.plan = failing_first(service, completion, 1, status=429, headers={"Retry-After": "1"})
    engine = remote()
    answer = engine.generate([ask("hello")])[0]
    assert answer.text == "hello"
    first, second = service.heard
    assert second.at - first.at >= 1.0
    assert engine.usage().retries == 1
    assert engine.usage().failures == 0
    assert answer.latency_s < second.at - first.at  # the model's time, not the wait's


def test_a_retry_after_holds_back_the_other_requests_too(service, completion, remote, ask):
    def plan(number, heard):
        if number == 0:
            return service.reply({}, status=429, headers={"Retry-After": "1"})
        return service.reply(completion(), wait_s=0.2)

    service.plan = plan
    remote(parallel=1).generate([ask("one"), ask("two"), ask("three")])
    first, *later = service.heard
    assert min(heard.at for heard in later) - first.at >= 1.0


def test_a_service_that_asks_for_hours_is_not_waited_for(service, completion, remote, ask):
    service.plan = failing_first(
        service, completion, 9, status=429, headers={"Retry-After": "7200"}
    )
    with pytest.raises(HaggleError, match="asks to wait 7200 s") as told:
        remote().generate([ask("hello")])
    assert "parallel" in told.value.hint
    assert len(service.heard) == 1


@pytest.mark.parametrize("status", [408, 500, 502, 503, 529])
def test_a_passing_failure_is_asked_again(service, completion, remote, ask, status):
    service.plan = failing_first(service, completion, 2, status=status)
    engine = remote()
    assert engine.generate([ask("hello")])[0].text == "hello"
    assert engine.usage().retries == 2


def test_attempts_are_bounded_and_the_end_says_what_to_do(service, remote, ask):
    service.plan = lambda number, heard: service.reply({"error": {"message": "oh no"}}, status=500)
    engine = remote(attempts=3)
    with pytest.raises(HaggleError, match=r"no answer in 3 attempts: HTTP 500: .*oh no") as told:
        engine.generate([ask("hello")])
    assert len(service.heard) == 3
    assert service.url in told.value.where
    assert told.value.hint
    assert engine.usage().failures == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_other_refusals_are_not_asked_again(service, remote, ask, status):
    service.plan = lambda number, heard: service.reply(
        {"error": {"message": "not like this"}}, status=status
    )
    with pytest.raises(HaggleError, match=f"HTTP {status}: not like this") as told:
        remote().generate([ask("hello")])
    assert told.value.hint
    assert len(service.heard) == 1


def test_a_timeout_is_asked_again_and_then_told(service, completion, remote, ask):
    service.plan = lambda number, heard: service.reply(completion(), wait_s=1.0)
    with pytest.raises(
        HaggleError, match=r"no answer in 2 attempts: timed out after 0.2 s"
    ) as told:
        remote(timeout_s=0.2, attempts=2).generate([ask("hello")])
    assert "timeout_s" in told.value.hint
    assert len(service.heard) == 2


def test_a_lost_connection_is_asked_again(service, completion, remote, ask):
    service.plan = lambda number, heard: service.reply(completion(), cut=number == 0)
    engine = remote()
    assert engine.generate([ask("hello")])[0].text == "hello"
    assert engine.usage().retries == 1


def test_where_nobody_listens_a_person_is_told(service, remote, ask):
    service.close()
    with pytest.raises(HaggleError, match="no connection") as told:
        remote(attempts=2).generate([ask("hello")])
    assert "running" in told.value.hint


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("-3", 0.0), ("", None), ("soon", None)],
)
def test_a_retry_after_in_seconds(value, seconds):
    assert retry_after({"retry-after": value}) == seconds


def test_a_retry_after_as_a_date():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    assert 85 < (retry_after({"retry-after": soon}) or 0) <= 90
    assert retry_after({}) is None


# --- batches


def test_at_most_parallel_requests_run_at_once_and_the_order_is_kept(
    service, completion, remote, ask
):
    def plan(number, heard):
        line = heard.body["messages"][-1]["content"]
        late = 0.3 if "line 0" in line else 0.1
        return service.reply(completion(line.rpartition(" ")[2]), wait_s=late)

    service.plan = plan
    engine = remote(parallel=3)
    answers = engine.generate([ask(f"line {n}") for n in range(9)])
    assert [a.text for a in answers] == [str(n) for n in range(9)]
    assert service.most_at_once == 3


def test_two_batches_at_once_share_the_limit(service, completion, remote, ask):
    service.plan = lambda number, heard: service.reply(completion(), wait_s=0.1)
    engine = remote(parallel=2)
    lines = [ask(f"line {n}") for n in range(4)]
    threads = [threading.Thread(target=engine.generate, args=(lines,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(service.heard) == 8
    assert service.most_at_once == 2


def test_an_empty_batch_asks_nothing(service, remote):
    assert remote().generate([]) == []
    assert service.heard == []


def test_what_was_under_way_when_a_batch_failed_is_kept(service, completion, remote, ask, tmp_path):
    def plan(number, heard):
        if "bad" in heard.body["messages"][-1]["content"]:
            return service.reply({"error": {"message": "no"}}, status=400)
        return service.reply(completion(), wait_s=0.4)

    service.plan = plan
    engine = remote(parallel=2, cache=tmp_path / "cache.sqlite")
    with pytest.raises(HaggleError, match="HTTP 400"):
        engine.generate([ask("good"), ask("bad"), *(ask(f"later {n}") for n in range(9))])
    sent = len(service.heard)
    assert sent <= 4  # those that had not begun were never sent
    assert engine.generate([ask("good")])[0].text == "hello"
    assert len(service.heard) == sent


def test_waits_end_when_another_request_of_the_batch_fails(service, remote, ask):
    def plan(number, heard):
        if "bad" in heard.body["messages"][-1]["content"]:
            return service.reply({"error": {"message": "no"}}, status=400, wait_s=0.3)
        return service.reply({}, status=503, headers={"Retry-After": "30"})

    service.plan = plan
    start = time.monotonic()
    with pytest.raises(HaggleError, match="HTTP 400"):
        remote(parallel=2).generate([ask("waits"), ask("bad")])
    assert time.monotonic() - start < 10


def test_a_closed_engine_says_so(remote, ask):
    engine = remote()
    engine.close()
    with pytest.raises(HaggleError, match="was closed"):
        engine.generate([ask("hello")])
    with pytest.raises(HaggleError, match="was closed"):
        next(engine.stream(ask("hello")))


# --- the request cache


def test_a_kept_answer_makes_no_request_and_survives_reopening(
    service, completion, remote, ask, tmp_path
):
    service.plan = lambda number, heard: service.reply(completion(f"answer {number}"))
    file = tmp_path / "deep" / "cache.sqlite"
    first = remote(cache=file)
    made = first.generate([ask("hello")])[0]
    assert first.generate([ask("hello")])[0] == made
    first.close()
    again = remote(cache=file, prices=PRICES)
    assert again.generate([ask("hello")])[0] == made  # tokens and latency as they were
    assert list(again.stream(ask("hello"))) == ["answer 0", made]
    assert len(service.heard) == 1
    usage = again.usage()
    assert (usage.answers, usage.from_cache) == (2, 2)
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cost) == (0, 0, 0.0)


def test_whatever_decides_an_answer_makes_another_request(
    service, completion, remote, ask, constrain, tmp_path
):
    service.plan = lambda number, heard: service.reply(completion())
    file = tmp_path / "cache.sqlite"
    engine = remote(cache=file)
    requests = [
        ask("hello"),
        ask("hello!"),
        ask("hello", constrain("END")),
        ask("hello", constrain("CASUAL")),
        ask("hello", temperature=0.7),
        ask("hello", temperature=0.7, seed=1),
        ask("hello", max_tokens=41),
    ]
    engine.generate(requests)
    remote(cache=file, model="other").generate([ask("hello")])
    remote(cache=file, extra_body={"top_k": 1}).generate([ask("hello")])
    assert len(service.heard) == 9
    engine.generate(requests)
    assert len(service.heard) == 9


def test_a_streamed_answer_is_kept_too(service, remote, ask, tmp_path):
    chunk = {"object": "chat.completion.chunk", "model": "m-1", "id": "x", "created": 0}
    service.plan = lambda number, heard: service.reply(
        None,
        events=[
            chunk | {"choices": [{"index": 0, "delta": {"content": "hi"}}]},
            chunk | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            "[DONE]",
        ],
    )
    engine = remote(cache=tmp_path / "cache.sqlite")
    *_, streamed = engine.stream(ask("hello"))
    assert engine.generate([ask("hello")]) == [streamed]
    assert len(service.heard) == 1


def test_empty_answers_are_not_kept(service, completion, remote, ask, tmp_path):
    service.plan = lambda number, heard: service.reply(completion("" if number == 0 else "hello"))
    engine = remote(cache=tmp_path / "cache.sqlite")
    assert [engine.generate([ask("hello")])[0].text for _ in range(2)] == ["", "hello"]


CLIENT = """
import sys
from pathlib import Path
from haggle.engine import GenerationRequest, Message
from serving.engines import EngineConfig, load_engine
url, file = sys.argv[1:]
engine = load_engine(EngineConfig(engine="openai", model="m", parallel=2,
                                  openai={"base_url": url, "cache": file}))
for n in range(1000):
    engine.generate([GenerationRequest((Message("user", f"line {n} {m}"),)) for m in range(2)])
    print(n, flush=True)
"""


def test_answers_outlive_a_process_killed_at_any_moment(service, completion, remote, tmp_path):
    from haggle.engine import GenerationRequest, Message

    service.plan = lambda number, heard: service.reply(completion(), wait_s=0.02)
    file = tmp_path / "cache.sqlite"
    arguments = [sys.executable, "-c", CLIENT, service.url + "/v1", str(file)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        done = [client.stdout.readline() for _ in range(5)]
        client.kill()
    assert done == [f"{n}\n" for n in range(5)]
    sent = len(service.heard)
    engine = remote(cache=file)
    finished = [
        GenerationRequest((Message("user", f"line {n} {m}"),)) for n in range(5) for m in range(2)
    ]
    assert [a.text for a in engine.generate(finished)] == ["hello"] * 10
    assert len(service.heard) == sent


@pytest.mark.skipif(sys.platform == "win32", reason="sends an interrupt")
def test_an_interrupt_does_not_wait_for_a_slow_service(service, tmp_path):
    service.plan = lambda number, heard: service.reply({}, wait_s=60)
    arguments = [sys.executable, "-c", CLIENT, service.url + "/v1", str(tmp_path / "cache.sqlite")]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as client:
        while len(service.heard) < 2:
            time.sleep(0.05)
        client.send_signal(signal.SIGINT)
        assert client.stderr is not None
        assert "KeyboardInterrupt" in client.stderr.read()
        assert client.wait(30) != 0


def test_two_processes_worth_of_threads_share_a_cache(tmp_path):
    caches = [RequestCache(tmp_path / "cache.sqlite") for _ in range(3)]

    def fill(cache: RequestCache, start: int) -> None:
        for n in range(start, start + 30):
            cache.put(str(n), {"n": n})

    threads = [
        threading.Thread(target=fill, args=(cache, 20 * at)) for at, cache in enumerate(caches)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(cache) for cache in caches] == [70, 70, 70]
    assert caches[0].get("69") == {"n": 69}
    for cache in caches:
        cache.close()
    assert caches[0].get("69") is None


def test_a_file_that_is_no_cache_is_named_and_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be taken for one " * 40, encoding="utf-8")
    before = text.read_bytes()
    with pytest.raises(HaggleError, match=r"notes\.txt: cannot be used"):
        RequestCache(text)
    assert text.read_bytes() == before
    newer = tmp_path / "newer.sqlite"
    with sqlite3.connect(newer) as file:
        file.execute("PRAGMA user_version = 99")
    file.close()
    with pytest.raises(HaggleError, match="format 99"):
        RequestCache(newer)


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path):
    cache = RequestCache(tmp_path / "cache.sqlite")
    cache.put("a", {})
    assert cache._file is not None
    cache._file.execute("PRAGMA max_page_count = 4")  # what a full disk looks like from here
    with pytest.raises(HaggleError, match="full"):
        cache.put("b", {"text": "x" * 100_000})
    assert cache.get("a") == {}
    cache.close()


def test_the_order_of_a_schemas_keys_is_part_of_a_request():
    assert request_key({"a": 1, "b": 2}) != request_key({"b": 2, "a": 1})
    assert request_key("m", {"a": "\ud83d"}) == request_key("m", {"a": "\ud83d"})


# --- accounting


def test_tokens_and_cost_add_up(service, completion, remote, ask):
    usages = [
        {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050},
        {
            "prompt_tokens": 3000, "completion_tokens": 150, "total_tokens": 3150,
            "prompt_tokens_details": {"cached_tokens": 1000},
            "completion_tokens_details": {"reasoning_tokens": 100},
        },
        None,
    ]  # fmt: skip
    service.plan = lambda number, heard: service.reply(completion(usage=usages[number]))
    engine = remote(parallel=1, prices=PRICES | {"cached_input": 0.5})
    answers = engine.generate([ask(f"line {n}") for n in range(3)])
    assert [(a.completion_tokens, a.thought_tokens) for a in answers] == [
        (50, 0),
        (50, 100),
        (0, 0),
    ]
    usage = engine.usage()
    assert (usage.answers, usage.uncounted) == (3, 1)
    assert (usage.prompt_tokens, usage.cached_tokens) == (4000, 1000)
    assert (usage.completion_tokens, usage.thought_tokens) == (100, 100)
    assert usage.cost == pytest.approx((3000 * 2.0 + 1000 * 0.5 + 200 * 8.0) / 1e6)
    assert (usage.currency, usage.prices_as_of) == ("USD", "2026-11")
    assert usage.model_versions == {"m-1": 3}
    assert usage.finish_reasons == {"stop": 3}


def test_without_prices_there_is_no_cost(service, completion, remote, ask):
    service.plan = lambda number, heard: service.reply(completion())
    engine = remote()
    engine.generate([ask("hello")])
    assert engine.usage().cost is None
    assert engine.usage().prompt_tokens == 100


def test_cached_tokens_cost_the_full_price_where_no_other_is_known():
    reply = Reply("x", prompt_tokens=10, cached_tokens=5, completion_tokens=1)
    assert cost(reply, Prices.model_validate(PRICES)) == pytest.approx((10 * 2 + 8) / 1e6)


def test_prices_need_their_date():
    with pytest.raises(ValueError, match="as_of"):
        Prices.model_validate({"input": 1, "output": 2})


def test_truncated_answers_are_passed_on_as_such_and_counted(
    service, completion, remote, ask, constrain
):
    cut = completion('{"last":"', finish_reason="length")
    service.plan = lambda number, heard: service.reply(cut)
    engine = remote()
    answer = engine.generate([ask("hello", constrain("END"))])[0]
    assert (answer.text, answer.finish_reason) == ('{"last":"', "length")
    assert (engine.usage().truncated, engine.usage().outside_schema) == (1, 0)


def test_answers_outside_their_schema_are_passed_on_and_counted(
    service, completion, remote, ask, constrain, caplog
):
    texts = ['{"last": "OFFER_SELL", "state": "END", "say": "Bye."}', '{"state":"END"}', "Bye."]
    service.plan = lambda number, heard: service.reply(completion(texts[number]))
    engine = remote(parallel=1)
    answers = engine.generate([ask("bye", constrain("END"), seed=n) for n in range(3)])
    assert [a.text for a in answers] == texts
    assert engine.usage().outside_schema == 2
    assert caplog.text.count("does not keep its schema") == 1


# --- model versions


def changing(service, completion):
    return lambda number, heard: service.reply(completion(model="m-1" if number < 2 else "m-2"))


def test_a_changed_model_version_stops_the_run(service, completion, remote, ask):
    service.plan = changing(service, completion)
    engine = remote()
    engine.generate([ask("one")])
    engine.generate([ask("two")])
    for line in ("three", "four"):
        with pytest.raises(HaggleError, match="'m-2' answers, 'm-1' did before"):
            engine.generate([ask(line)])


def test_a_changed_model_version_can_be_recorded_instead(service, completion, remote, ask, caplog):
    service.plan = changing(service, completion)
    engine = remote(on_version_change="record", parallel=1)
    engine.generate([ask(f"line {n}") for n in range(5)])
    assert engine.usage().model_versions == {"m-1": 2, "m-2": 3}
    assert caplog.text.count("the model changed") == 1


def test_a_version_that_changed_between_two_runs_is_noticed_by_the_cache(
    service, completion, remote, ask, tmp_path
):
    service.plan = changing(service, completion)
    file = tmp_path / "cache.sqlite"
    first = remote(cache=file)
    first.generate([ask("one"), ask("two")])
    resumed = remote(cache=file)
    with pytest.raises(HaggleError, match="the model changed"):
        resumed.generate([ask("one"), ask("two"), ask("three")])
    with RequestCacheAt(file) as cache:
        assert len(cache) == 2  # the other version's answer was not kept


class RequestCacheAt(RequestCache):
    def __enter__(self) -> RequestCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def test_a_service_that_names_no_version_is_not_suspected():
    account = Account(None, "stop")
    for version in ("", "m-1", "", "m-1"):
        account.add(Reply("x", version=version), from_cache=False, outside=False)
    assert account.total().model_versions == {"m-1": 2}


# --- keys


def test_the_key_comes_from_the_environment_and_goes_nowhere_else(
    service, completion, remote, ask, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("HAGGLE_TEST_KEY", KEY)
    file = tmp_path / "cache.sqlite"
    service.plan = lambda number, heard: (
        service.reply(completion())
        if number == 0
        else service.reply({"error": {"message": f"Incorrect key: {KEY}"}}, status=401)
    )
    caplog.set_level("DEBUG", logger="serving")
    engine = remote(api_key_env="HAGGLE_TEST_KEY", cache=file)
    engine.generate([ask("hello")])
    assert service.heard[0].headers["authorization"] == f"Bearer {KEY}"
    with pytest.raises(HaggleError, match="HTTP 401") as told:
        engine.generate([ask("again")])
    assert "api_key_env" in told.value.hint
    seen = (str(told.value), caplog.text, repr(engine.config), repr(engine.usage()))
    assert not any(KEY in text for text in seen)
    assert KEY.encode() not in file.read_bytes()


def test_a_key_that_is_not_set_is_told_before_anything_is_asked(service, remote, monkeypatch):
    monkeypatch.delenv("HAGGLE_TEST_KEY", raising=False)
    with pytest.raises(HaggleError, match="HAGGLE_TEST_KEY is not set"):
        remote(api_key_env="HAGGLE_TEST_KEY")
    assert service.heard == []


def test_no_other_key_of_the_environment_is_sent(service, completion, remote, ask, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, KEY)
    service.plan = lambda number, heard: service.reply(completion())
    remote().generate([ask("hello")])
    assert KEY not in str(service.heard[0].headers)


@pytest.mark.parametrize(("engine", "package"), [("openai", "openai"), ("gemini", "google")])
def test_a_missing_package_names_the_extra(monkeypatch, engine, package):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {package!r}")
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, f"serving.engines.{engine}_engine", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(HaggleError, match=r"haggle\[api\]"):
        load_engine(EngineConfig(engine=engine))


@pytest.mark.parametrize("name", ["openai", "gemini_flash", "gemini_pro"])
def test_shipped_remote_configs_start(name, monkeypatch, tmp_path: Path):
    from serving.engines import read_engine_config

    pytest.importorskip("openai" if name == "openai" else "google.genai")
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    config = read_engine_config(name)
    engine = load_engine(config)
    engine.close()
    assert engine.model == config.model
    assert os.listdir(tmp_path) == ([] if name == "openai" else ["runs"])
