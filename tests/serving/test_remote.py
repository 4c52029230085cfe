"""What every remote engine does: waits and asks again, keeps the order of a batch, hides its key."""

from __future__ import annotations

import builtins
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from haggle.core.engine import GenerationRequest, Message
from haggle.core.errors import HaggleError
from serving.engines import EngineConfig, load_engine

pytest.importorskip("tenacity")
from serving.engines.remote import retry_after

KEY = "sk-very-secret-7f3a"


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
    sent = threading.Event()

    def plan(number, heard):
        if "bad" in heard.body["messages"][-1]["content"]:
            sent.set()
            return service.reply({"error": {"message": "no"}}, status=400, wait_s=0.3)
        sent.wait(10)  # a wait asked for earlier would hold the other request back too
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


# --- a process that is stopped


CLIENT = """
import sys
from pathlib import Path
from haggle.core.engine import GenerationRequest, Message
from serving.engines import EngineConfig, load_engine
url, file = sys.argv[1:]
engine = load_engine(EngineConfig(engine="openai", model="m", parallel=2,
                                  openai={"base_url": url, "cache": file}))
for n in range(1000):
    engine.generate([GenerationRequest((Message("user", f"line {n} {m}"),)) for m in range(2)])
    print(n, flush=True)
"""


def test_answers_outlive_a_process_killed_at_any_moment(service, completion, remote, tmp_path):
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
    with pytest.raises(HaggleError, match=r"pip install .*\.\[api\]"):
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
